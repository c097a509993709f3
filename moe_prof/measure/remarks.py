"""What a reader should know before trusting the times: one line each, with its remedy. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from moe_prof.measure.crowd import Crowd
from moe_prof.measure.results import VariantTiming
from moe_prof.stats import median_interval

CROWDED_CPUS = 0.15
"""CPUs' worth of time that may be missing for the largest team before it counts."""
WIDE_HALF_WIDTH = 0.1


def remarks(timings: Sequence[VariantTiming], crowds: Sequence[Crowd]) -> list[str]:
    """All that apply; ``crowds`` are the other programs' shares, one a process."""
    trusted = [timing for timing in timings if timing.trusted]
    return [line for line in (_crowded(trusted, crowds), _wide(trusted)) if line]


def _crowded(timings: Sequence[VariantTiming], crowds: Sequence[Crowd]) -> str:
    """Whether other programs left fewer CPUs than the largest team has threads."""
    threads = max((timing.threads or 1 for timing in timings), default=0)
    if not crowds or not threads:
        return ""
    cpus, others = crowds[0].cpus, statistics.mean(crowd.others for crowd in crowds)
    if others + threads <= cpus + CROWDED_CPUS:
        return ""
    return (
        f"other programs kept {others:.1f} of {cpus} CPUs busy, which slows teams of threads most; "
        "repeat on an idle machine, with fewer --threads, or with OMP_WAIT_POLICY=passive"
    )


def _wide(timings: Sequence[VariantTiming]) -> str:
    names = []
    for timing in timings:
        interval = median_interval(timing.samples_s)
        half_width = None if interval is None else interval.half_width
        if half_width is not None and half_width > WIDE_HALF_WIDTH:
            names.append(timing.variant)
    if not names:
        return ""
    return (
        f"intervals wider than +-{100 * WIDE_HALF_WIDTH:.0f} %: {', '.join(names)}; "
        "measure longer with --max-time"
    )
