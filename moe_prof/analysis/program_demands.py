"""What is known of a program's run, and how many cycles each cause asks for.

Issuing, ports and dependency chains come from a throughput model of the hot loops, mispredictions
and misses from simulation or samples, times penalties and latencies measured on the machine. All
are lower bounds or estimates that say how they were made.
"""

from __future__ import annotations

from dataclasses import dataclass

from moe_prof.analysis.verdict import Cause
from moe_prof.units import bytes_text, count_text

FULL_SLOTS = 0.5
"""From this share of slots filled on, fewer instructions help more than other ports would."""
POINTER_MIN = 0.2
WALKING_MIN = 0.5
SMALL_SHARE = 0.8
BANDWIDTH_MIN = 0.35
OVERLAP = 0.2
"""Independent misses overlap: each costs at least this part of a latency (10 at once, and some)."""
LINE_BYTES = 64
MEMORY_CAUSES: tuple[Cause, ...] = (
    "l2_bound",
    "l3_bound",
    "dram_latency_bound",
    "dram_bandwidth_bound",
)


@dataclass(frozen=True, slots=True)
class Machine:
    """What the machine does at best; None where it could not be measured.

    Attributes:
        width: instructions issued per cycle.
        penalty_cycles: of a mispredicted branch.
        latency_s / bandwidth: by level: l2, l3, memory; of one thread while all of a team read.
        l3_bytes: size of the last cache.
    """

    clock_hz: float | None = None
    width: int | None = None
    penalty_cycles: float = 15.0
    latency_s: tuple[float | None, float | None, float | None] = (None, None, None)
    bandwidth: tuple[float | None, float | None, float | None] = (None, None, None)
    l3_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramEvidence:
    """What is known of one program's run; None where it could not be had.

    Attributes:
        active_threads: threads with a fair share of the CPU time.
        runnable: threads that ran or were ready to, on average over the wall time.
        most_threads: the most at one time.
        single_share: share of the wall time in which there was one thread only.
        polling: share of the samples in code that only waits.
        own_polling: the part of it in loops of the program itself, not in a runtime.
        locking / walking: share of the samples inside locks, and in loops that go through memory by
            small steps, whose lines are fetched before they are asked for.
        busiest: work of the busiest thread over the mean of the active ones.
        main_is_busiest / own_share: whether that is the main thread, and the share of its work in
            functions that no other thread ran.
        shared_line: share of samples in loops that write to a line that others write.
        blocked: share of the wall time in which an active thread slept in a lock, on average over
            them; None where the system does not tell.
        spells / spells_s / spells_over: how often threads other than the main one worked after a
            rest, how long in all, and over which share of the run.
        idle_cpus: CPUs that neither it nor another program used, on average over the wall time.
        yielding: share of the samples in which a thread gives its CPU away, having nothing to do.
        faulting: share of the system's samples that serve page faults.
        flushed_s / user_again_s: user time with denormals flushed to zero, and of a second run
            without, which is made where that is a gain.
        loop_bound: what binds most of the hot loops' cycles.
        loop_cycles: what they need at least, by the throughput model.
        loop_slots: share of the issue slots that they fill in that time.
        pointer_share: share of the samples, or instructions, in loops that follow pointers.
        fetch_misses: lines of code that the L1 did not hold.
        part_instructions: where all instructions are not known: those of a part of the program that
            holds its hot code; counts and cycles of loops are of that part then.
        cut_off / whole_misses: whether the simulation of instructions was cut off, and whether
            those of caches and branches ran to the end; what was cut off is scaled, or missing.
        slots: measured top-down nodes by name.
        sampled_by / loop_model: what took the samples, and what the loops' cycles come from.
    """

    wall_s: float
    user_s: float
    sys_s: float
    cpus: int
    minor_faults: int = 0
    voluntary: int = 0
    max_rss_bytes: int = 0
    active_threads: int = 1
    most_threads: int = 1
    runnable: float = 1.0
    single_share: float = 1.0
    polling: float | None = None
    own_polling: float = 0.0
    locking: float = 0.0
    walking: float = 0.0
    busiest: float = 1.0
    main_is_busiest: bool = True
    own_share: float | None = None
    shared_line: float | None = None
    blocked: float | None = None
    spells: int = 0
    spells_s: float = 0.0
    spells_over: float = 0.0
    idle_cpus: float | None = None
    yielding: float = 0.0
    faulting: float | None = None
    flushed_s: float | None = None
    user_again_s: float | None = None
    instructions: float | None = None
    loop_bound: str | None = None
    loop_cycles: float | None = None
    loop_slots: float | None = None
    pointer_share: float = 0.0
    mispredictions: float | None = None
    l1_misses: float | None = None
    l2_misses: float | None = None
    l3_misses: float | None = None
    fetch_misses: float | None = None
    part_instructions: float | None = None
    cut_off: bool = False
    whole_misses: bool = False
    slots: dict[str, float] | None = None
    measured_instructions: bool = False
    machine: Machine = Machine()
    sampled_by: str = "perf record, cpu-clock"
    loop_model: str = "throughput model of the hot loops"

    @property
    def cpu_s(self) -> float:
        """User and system time."""
        return self.user_s + self.sys_s

    @property
    def cycles(self) -> float | None:
        """Cycles of the user time at the calibrated clock."""
        clock = self.machine.clock_hz
        return self.user_s * clock if clock and self.user_s else None

    @property
    def filled(self) -> float | None:
        """Share of the issue slots that its instructions fill, by its cycles as they were."""
        if not self.cycles or self.instructions is None or not self.machine.width:
            return None
        return self.instructions / (self.cycles * self.machine.width)

    @property
    def stalled_cycles(self) -> float | None:
        """Cycles in which nothing can be issued, at most: those that issuing leaves over."""
        if not self.cycles or self.instructions is None or not self.machine.width:
            return None
        issuing = max(self.instructions / self.machine.width, self.loop_cycles or 0.0)
        return max(0.0, self.cycles - issuing)

    @property
    def team(self) -> int:
        """Threads that can run at once."""
        return max(1, min(self.active_threads, self.most_threads, self.cpus))


@dataclass(frozen=True, slots=True)
class Demand:
    """Cycles that one cause asks for, and how they were found."""

    cause: Cause
    cycles: float
    text: str


def demands(e: ProgramEvidence) -> list[Demand]:
    """What each cause asks for; what is not known is left out."""
    found: list[Demand] = []
    clock = e.machine.clock_hz or 0.0
    if e.loop_cycles is not None and e.loop_bound is not None:
        causes: dict[str, Cause] = {"dependency": "dependency_bound", "ports": "port_bound"}
        words = {"dependency": "for their dependency chains", "ports": "on execution ports"}
        cause = causes.get(e.loop_bound, "instruction_bound")
        if cause == "port_bound" and max(e.loop_slots or 0.0, e.filled or 0.0) >= FULL_SLOTS:
            cause = "instruction_bound"  # the ports are full because all of them are
        text = f"the hot loops need {count_text(e.loop_cycles)} cycles at least"
        how = "to issue their instructions"
        if cause != "instruction_bound":
            how = words[e.loop_bound]
        found.append(Demand(cause, e.loop_cycles, f"{text} {how}"))
    if e.mispredictions is not None:
        cycles = e.mispredictions * e.machine.penalty_cycles
        if not e.measured_instructions and e.stalled_cycles is not None:
            cycles = min(cycles, e.stalled_cycles)  # real predictors know what simple ones do not
        text = f"{count_text(e.mispredictions)} mispredictions of about 15 cycles"
        found.append(Demand("branch_bound", cycles, text))
    latency = e.machine.latency_s[0]
    if e.fetch_misses is not None and latency is not None:
        cycles = e.fetch_misses * latency * clock
        text = f"{count_text(e.fetch_misses)} lines of code come from beyond the L1"
        found.append(Demand("frontend_bound", cycles, text))
    return found + _memory_demands(e, clock)


def _memory_demands(e: ProgramEvidence, clock: float) -> list[Demand]:
    """Each level's misses that the next level serves."""
    l3_misses = e.l3_misses
    small = 0 < e.max_rss_bytes < SMALL_SHARE * (e.machine.l3_bytes or 0)
    if l3_misses is not None and small:
        l3_misses = min(l3_misses, e.max_rss_bytes / LINE_BYTES)  # each line once
    served = (
        (e.l1_misses, e.l2_misses, 0),
        (e.l2_misses, l3_misses, 1),
        (l3_misses, 0.0, 2),
    )
    found = []
    for missed, beyond, level in served:
        latency, rate = e.machine.latency_s[level], e.machine.bandwidth[level]
        if missed is None or latency is None or not rate:
            continue
        lines = max(0.0, missed - (beyond or 0.0))
        chained = e.pointer_share >= POINTER_MIN
        waiting = lines * latency * (1.0 if chained else OVERLAP) * clock
        moving = lines * LINE_BYTES / rate * clock
        walks = not chained and e.walking >= WALKING_MIN
        streams = walks or (not chained and _streams(e, lines, rate))
        cycles = moving if streams else max(waiting, moving)
        cause: Cause = "l2_bound" if level == 0 else "l3_bound"
        if level == 2:
            cause = "dram_bandwidth_bound" if streams else "dram_latency_bound"
        place = ("L2", "L3", "main memory")[level]
        how = "one after the other" if chained else "in order" if walks else "side by side"
        found.append(
            Demand(
                cause, cycles,
                f"{count_text(lines)} lines come from {place}, {how} ("
                f"{bytes_text(e.max_rss_bytes)} in use)",
            )
        )  # fmt: skip
    return found


def _streams(e: ProgramEvidence, lines: float, rate: float) -> bool:
    """Whether lines come at a fair part of the bandwidth of a thread."""
    return lines * LINE_BYTES >= BANDWIDTH_MIN * rate * e.user_s


def largest(found: list[Demand]) -> Demand | None:
    """The demand of most cycles; None where nothing is known."""
    return max(found, key=lambda d: d.cycles, default=None)
