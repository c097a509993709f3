"""Users' libraries, checked before a tool runs them.

A tool shows a crash, but neither a wrong result nor a write out of bounds, and figures of a kernel
that is wrong are of no use. So a library first does one round of a measurement, in a process of its
own and between guards.
"""

from __future__ import annotations

from collections.abc import Sequence

from moe_prof.kernels.selection import is_library_path
from moe_prof.measure.jobs import job_of
from moe_prof.measure.parent import measure
from moe_prof.measure.results import Request, VariantTiming
from moe_prof.progress import Progress
from moe_prof.scenario import Scenario

CHECK_SHARE = 0.4
"""Of a command's time limit."""


def refused_libraries(
    names: Sequence[str],
    scenario: Scenario,
    *,
    threads: int,
    seed: int,
    max_time_s: float | None,
    progress: Progress,
) -> dict[str, VariantTiming]:
    """Those of the variants that are libraries and not right, or could not be checked.

    Raises:
        BuildError: the kernels cannot be built.
        UsageError: memory would not do.
        KeyboardInterrupt: Ctrl-C, after the process has been ended.
    """
    jobs = tuple(job_of(name) for name in names if is_library_path(name))
    if not jobs:
        return {}
    request = Request(
        scenario=scenario, jobs=jobs, threads=threads, seed=seed, repeat=1, processes=1,
        max_time_s=max_time_s,
    )  # fmt: skip
    done = measure(request, progress)
    if done.interrupted:
        raise KeyboardInterrupt
    return {timing.variant: timing for timing in done.timings if not timing.trusted}
