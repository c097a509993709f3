"""The verdict: the one cause that bounds a variant, with its evidence, or ``unknown``.

The rules are tried in order; the first whose condition holds gives the verdict. A rule whose
figures are missing does not hold. The order follows the top-down method: first whether threads
work at all, then where the slots of working threads go (A. Yasin, ISPASS 2014). The thresholds are
this project's choice: each is the share from which removing the cause alone is worth the work.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from moe_prof.analysis.crowding import is_crowded
from moe_prof.units import share_text

Cause = Literal[
    "instruction_bound", "dependency_bound", "port_bound", "branch_bound", "frontend_bound",
    "l2_bound", "l3_bound", "dram_latency_bound", "dram_bandwidth_bound", "spin_bound",
    "imbalance", "serial_bound", "false_sharing", "oversubscribed", "page_fault_bound",
    "denormals", "syscall_bound", "too_short", "unknown",
]  # fmt: skip
Level = Literal["l1", "l2", "l3", "memory"]
LoopBound = Literal["dependency", "ports", "dispatch"]

WAITING_MIN = 0.25
SERIAL_SHARE_MIN = 0.7
IMBALANCE_MIN = 1.2
BRANCH_MIN = 0.2
FRONTEND_MIN = 0.25
ROOFLINE_MIN = 0.7
LOOP_MIN = 0.5

MORE_PER_INSTRUCTION = (
    "make each instruction do more: vectorize, use int8 dot products, pack the weights"
)
DOCTOR = "run 'moe-prof doctor' to see which collectors would tell more"
BACKEND_CAUSE_MIN = 0.25
RETIRING_MIN = 0.5


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of one variant's run; None where a figure could not be had.

    Attributes:
        threads / usable_cpus: threads of the variant, CPUs that the process may use.
        shared_cpus / others: CPUs on which it may run, CPUs' worth of time that other programs used
            on them meanwhile.
        waiting: share of thread time spent waiting, 0..1.
        busiest: working time of the busiest thread over the mean of all threads.
        serial: working time of the busiest thread over the working time of all threads.
        retiring, bad_speculation, frontend, memory, core: fractions of slots.
        level: where the layer's weights live (the smallest level that holds them).
        cycles: working cycles of one forward, all threads.
        loop_cycles: cycles that the hot loops alone need, by a throughput model of the core.
        loop_bound: what binds most of them: the dependency chain, execution ports, or the width.
        roofline: floor over time, the floor from ceilings of the path that ran, 0..1.
        roofline_limit: which ceiling sets that floor.
        instructions_per_mac: instructions per useful multiply-accumulate.
        measured: whether the slots were counted by hardware.
        why_no_slots: why there are no fractions of slots, "" when there are.
    """

    threads: int
    usable_cpus: int
    shared_cpus: float | None = None
    others: float | None = None
    waiting: float | None = None
    busiest: float | None = None
    serial: float | None = None
    retiring: float | None = None
    bad_speculation: float | None = None
    frontend: float | None = None
    memory: float | None = None
    core: float | None = None
    level: Level | None = None
    cycles: float | None = None
    loop_cycles: float | None = None
    loop_bound: LoopBound | None = None
    roofline: float | None = None
    roofline_limit: Literal["compute", "memory"] | None = None
    instructions_per_mac: float | None = None
    measured: bool = False
    why_no_slots: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The cause, why it is believed, and what to try."""

    cause: Cause
    evidence: str
    advice: str


Rule = Callable[[Evidence], Verdict | None]


def judge(evidence: Evidence) -> Verdict:
    """The first rule that holds, else ``unknown``."""
    for rule in RULES:
        verdict = rule(evidence)
        if verdict is not None:
            return verdict
    if evidence.why_no_slots:
        return Verdict("unknown", f"its slots are not known: {evidence.why_no_slots}", DOCTOR)
    return Verdict("unknown", "no cause stands out in the figures that could be had here", DOCTOR)


def _oversubscribed(e: Evidence) -> Verdict | None:
    """Threads that wait for a CPU count as working in their own timers: their share is known."""
    without_cpu = 1 - e.usable_cpus / e.threads
    return _too_many_threads(e) if without_cpu >= WAITING_MIN else None


def _too_many_threads(e: Evidence) -> Verdict:
    return Verdict(
        "oversubscribed",
        f"{e.threads} threads on {e.usable_cpus} usable CPUs",
        f"use --threads {e.usable_cpus}",
    )


def _crowded(e: Evidence) -> Verdict | None:
    """Waiting that other programs can cause gives no verdict on the kernel."""
    if e.threads == 1 or e.waiting is None or e.waiting < WAITING_MIN:
        return None
    if not is_crowded(e.threads, e.shared_cpus, e.others):
        return None
    return Verdict(
        "unknown",
        f"threads wait {share_text(e.waiting)} of their time, but other programs kept "
        f"{e.others:.1f} of {e.shared_cpus:.0f} CPUs busy meanwhile, which makes threads wait",
        f"repeat on an idle machine, or with --threads {_threads_left(e)}",
    )


def _threads_left(e: Evidence) -> int:
    """The team for which the other programs leave CPUs."""
    return max(1, int((e.shared_cpus or 0.0) - (e.others or 0.0)))


def _waiting(e: Evidence) -> Verdict | None:
    if e.threads == 1 or e.waiting is None or e.waiting < WAITING_MIN:
        return None
    if e.threads > e.usable_cpus:
        return _too_many_threads(e)
    share = f"threads wait {share_text(e.waiting)} of their time"
    if e.serial is not None and e.serial > SERIAL_SHARE_MIN:
        return Verdict(
            "serial_bound",
            f"{share}; one thread does {share_text(e.serial)} of the work",
            "split the work inside a token (experts or output blocks as tasks), or use one thread",
        )
    if e.busiest is not None and e.busiest > IMBALANCE_MIN:
        return Verdict(
            "imbalance",
            f"{share}; the busiest thread works {e.busiest:.2f} times the mean",
            "cut the largest bucket, balance by rows instead of experts, or schedule dynamically",
        )
    return Verdict(
        "spin_bound",
        f"{share}, evenly",
        "merge parallel regions and barriers, or give each thread more work between them",
    )


def _branches(e: Evidence) -> Verdict | None:
    if not e.measured or e.bad_speculation is None or e.bad_speculation < BRANCH_MIN:
        return None  # the simulated predictor gives an upper bound only, no ground for a verdict
    return Verdict(
        "branch_bound",
        f"Bad_Speculation {share_text(e.bad_speculation)} of slots",
        "replace unpredictable branches by masks or selects; sort work by its branch",
    )


def _frontend(e: Evidence) -> Verdict | None:
    if e.frontend is None or e.frontend < FRONTEND_MIN:
        return None
    return Verdict(
        "frontend_bound",
        f"Frontend_Bound {share_text(e.frontend)} of slots",
        "shrink the hot code: unroll less, keep cold paths out of line, align the loop",
    )


def _roofline(e: Evidence) -> Verdict | None:
    if e.roofline is None or e.roofline < ROOFLINE_MIN or e.roofline_limit is None:
        return None
    share = f"runs at {share_text(e.roofline)} of the floor that this path's ceilings allow"
    if e.roofline_limit == "compute":
        return Verdict(
            "port_bound",
            f"{share}; int8 and fp32 arithmetic set the floor",
            "use a path with more multiply-accumulates per instruction, or more cores",
        )
    return None if e.level in (None, "l1") else _bandwidth(e.level, share)


def _bandwidth(level: str, evidence: str) -> Verdict:
    causes: dict[str, tuple[Cause, str]] = {
        "l2": ("l2_bound", "reuse a loaded weight for more tokens; tile for the L1"),
        "l3": ("l3_bound", "keep an expert's weights in one core's L2; group tokens by expert"),
        "memory": ("dram_bandwidth_bound", "read each weight once: group tokens by expert"),
    }
    cause, advice = causes[level]
    return Verdict(cause, f"{evidence}; the weights live in the {level}", advice)


def _memory(e: Evidence) -> Verdict | None:
    if e.memory is None or e.memory < BACKEND_CAUSE_MIN or e.memory < (e.core or 0.0):
        return None
    if e.level in (None, "l1"):
        return None
    return _bandwidth(e.level, f"Memory_Bound {share_text(e.memory)} of slots")


def _loop(e: Evidence) -> Verdict | None:
    if not e.cycles or e.loop_cycles is None or e.loop_bound is None:
        return None
    share = e.loop_cycles / e.cycles
    if share < LOOP_MIN:
        return None
    need = f"the hot loops need {min(1.0, share):.0%} of the working cycles"
    if e.loop_bound == "dependency":
        return Verdict(
            "dependency_bound",
            f"{need} for their dependency chains",
            "use more independent accumulators",
        )
    if e.loop_bound == "ports":
        return Verdict(
            "port_bound",
            f"{need} on their execution ports",
            "use instructions that do more per port: wider vectors, int8 dot products, fewer "
            "widenings",
        )
    return Verdict(
        "instruction_bound",
        f"{need} to issue their instructions{_per_mac(e)}",
        MORE_PER_INSTRUCTION,
    )


def _instructions(e: Evidence) -> Verdict | None:
    if e.retiring is None or e.retiring < RETIRING_MIN:
        return None
    return Verdict(
        "instruction_bound",
        f"Retiring {share_text(e.retiring)} of slots{_per_mac(e)}: the pipeline is busy, with too "
        "many instructions",
        MORE_PER_INSTRUCTION,
    )


def _core(e: Evidence) -> Verdict | None:
    if e.core is None or e.core < BACKEND_CAUSE_MIN or e.core < (e.memory or 0.0):
        return None
    if e.loop_bound is None or e.loop_bound == "dispatch":
        return None
    cause: Cause = "dependency_bound" if e.loop_bound == "dependency" else "port_bound"
    return Verdict(
        cause,
        f"Core_Bound {share_text(e.core)} of slots; {e.loop_bound} binds the hot loops",
        "use more independent accumulators, or instructions that do more per port",
    )


def _per_mac(e: Evidence) -> str:
    if e.instructions_per_mac is None:
        return ""
    return f"; {e.instructions_per_mac:.3g} instructions per multiply-accumulate"


RULES: tuple[Rule, ...] = (
    _oversubscribed,
    _crowded,
    _waiting,
    _branches,
    _frontend,
    _roofline,
    _loop,
    _instructions,
    _memory,
    _core,
)
