"""What is asked of a measurement and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from moe_prof.kernels.build import Kind
from moe_prof.measure.crowd import Crowd
from moe_prof.measure.timeline import Timeline
from moe_prof.scenario import Scenario
from moe_prof.stats import Key, Samples

Status = Literal[
    "ok", "wrong", "crashed", "hung", "failed", "unavailable", "no_time", "interrupted"
]

WORKLOAD_FAILURES: frozenset[Status] = frozenset({"wrong", "crashed", "hung", "failed"})
"""States in which the variant itself is to blame (exit code 6)."""

DEFAULT_FACTORY = "moe_prof.measure.plans:kernel_plan"
DEFAULT_BUDGET_S = 20.0
DEFAULT_PROCESSES = 3
MOST_PROCESSES = 12
"""Where processes are added until there are enough samples."""
MIN_SAMPLE_S = 0.02
"""A sample lasts at least this long: the clock (tens of ns) and a timer interrupt vanish in it."""


@dataclass(frozen=True, slots=True)
class Job:
    """One variant to measure and what a correct result of it is.

    Attributes:
        variant: its name.
        isa: the instruction-set path to force, None for the best.
        threads: its threads, None for the request's.
        rel_rmse / worst_token: largest accepted relative RMSE over all values / of one token.
    """

    variant: str
    isa: str | None = None
    threads: int | None = None
    rel_rmse: float = 1e-3
    worst_token: float = 5e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to measure.

    Attributes:
        scenario: the workload's shape.
        jobs: the variants, in the order of the report.
        threads: threads of each variant, unless its job says otherwise.
        seed: of weights and tokens.
        repeat: rounds to measure, over all worker processes; None: as many as the time allows.
        max_time_s: bound of the whole measurement, None: about ``budget_s``, exceeded where a
            single round takes longer.
        processes: worker processes, each with its own memory layout.
        enough: asked after these processes whether the samples, by variant, say what they are for;
            as long as not, further processes follow while there is time, ``MOST_PROCESSES`` in all.
            None: no further ones. A forced number of rounds has none either.
        min_sample_s: shortest sample; loops are calibrated to reach it.
        hang_s: a step of the variant longer than this is taken for a hang; None: from the work.
        plan_factory: ``module:function`` that makes a plan, see ``moe_prof.measure.plans``.
        build: the build whose kernels are timed.
    """

    scenario: Scenario
    jobs: tuple[Job, ...]
    threads: int
    seed: int = 0
    repeat: int | None = None
    max_time_s: float | None = None
    budget_s: float = DEFAULT_BUDGET_S
    processes: int = DEFAULT_PROCESSES
    enough: Callable[[Mapping[str, Samples]], bool] | None = None
    min_sample_s: float = MIN_SAMPLE_S
    hang_s: float | None = None
    plan_factory: str = DEFAULT_FACTORY
    build: Kind = "release"


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantTiming:
    """What is known of one variant after a measurement.

    Attributes:
        status: ``ok``, or why there is no time to trust; samples taken before are kept.
        reason: in words, "" when ok.
        isa / threads / info: what really ran (the plan's own words), empty when it never started.
        rel_rmse / worst_error: against the oracle, worst over all checks; None when unchecked.
        worst_token: the token of the worst error.
        prepare_s: time to prepare the plan, in the first process.
        loops: forwards per sample.
        samples_s: seconds per forward by (process, round).
        cpu_s: CPU seconds per forward, all threads, by the same keys.
        warmups_s: per process (loops, seconds per forward) of calibration and warm-up.
        note: a remark for the report, e.g. measured in fewer rounds.
    """

    variant: str
    status: Status
    reason: str = ""
    isa: str = ""
    threads: int | None = None
    info: Mapping[str, object] = field(default_factory=dict)
    rel_rmse: float | None = None
    worst_error: float | None = None
    worst_token: int | None = None
    prepare_s: float | None = None
    loops: int | None = None
    samples_s: Mapping[Key, float] = field(default_factory=dict)
    cpu_s: Mapping[Key, float] = field(default_factory=dict)
    warmups_s: Mapping[int, tuple[tuple[int, float], ...]] = field(default_factory=dict)
    note: str = ""

    @property
    def trusted(self) -> bool:
        """Correct in every check and timed at least once."""
        return self.status == "ok" and bool(self.samples_s)


@dataclass(frozen=True, slots=True)
class ThreadTimes:
    """Seconds per forward of one thread, from the ``phases`` build.

    Attributes:
        busy_s / wait_s: working / waiting for other threads; their sum is the wall time.
        phases_s: the working time by phase name.
    """

    busy_s: float
    wait_s: float
    phases_s: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class PhaseTimes:
    """Phase timers of one variant.

    Attributes:
        threads: one entry a thread, empty when unavailable.
        wall_s: seconds per forward in this (slower) build.
        forwards: forwards behind the means.
        reason: why there are none, "" when there are.
        crowd: use of the machine by other programs meanwhile, None when unknown.
        timeline: the steps of one forward; None where they are not known.
    """

    variant: str
    threads: tuple[ThreadTimes, ...] = ()
    wall_s: float | None = None
    forwards: int = 0
    reason: str = ""
    crowd: Crowd | None = None
    timeline: Timeline | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """The result of measuring a request.

    Attributes:
        timings: one entry a job, in the same order.
        processes: worker processes that took samples.
        interrupted: Ctrl-C ended it; what was measured before is here.
        checked_tokens: tokens compared with the oracle.
        notes: remarks on the measurement as a whole.
        elapsed_s: wall time of all of it.
        crowd: use of the machine by other programs meanwhile, None when unknown.
    """

    timings: tuple[VariantTiming, ...]
    processes: int
    interrupted: bool
    checked_tokens: int
    notes: tuple[str, ...]
    elapsed_s: float
    crowd: Crowd | None = None

    def timing(self, variant: str) -> VariantTiming | None:
        """The entry of ``variant``, None when it was not asked for."""
        return next((t for t in self.timings if t.variant == variant), None)
