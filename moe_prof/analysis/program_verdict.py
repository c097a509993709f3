"""The verdict on any program: from what can be seen without counters, and from counters.

The order is that of the question "whose fault is it": is there enough time to judge; does it run at
all, or does the system work for it; do its threads wait, for a CPU, for each other, or for a cache
line; and only then what its working cycles are spent on. There the largest demand wins that
explains a fair part of the cycles (``EXPLAINED_MIN``): issuing, ports and dependency chains by a
throughput model of the hot loops, mispredictions and misses by simulation times measured latencies.
Demands are lower bounds or stated estimates, and a sibling thread may take half of a core's slots,
so the share that must be explained is well below one; what nothing explains is ``unknown``.

Source: A. Yasin, ISPASS 2014, for the order; thresholds are this project's choice, tried on the
programs of benchmarks/causes.
"""

from __future__ import annotations

from collections.abc import Callable

from moe_prof.analysis import program_threads as threads
from moe_prof.analysis.program_demands import (
    MEMORY_CAUSES,
    POINTER_MIN,
    Demand,
    ProgramEvidence,
    demands,
)
from moe_prof.analysis.program_demands import largest as largest_of
from moe_prof.analysis.verdict import DOCTOR, MORE_PER_INSTRUCTION, Cause, Verdict
from moe_prof.units import count_text, share_text, time_text

SHORTEST_S = 0.05
SYSTEM_MIN = 0.35
FAULTS_MIN = 0.5
"""First touches beside a longer computation are not what bounds it."""
FAULT_S = 0.5e-6
"""A minor page fault costs 0.25 to 2 us, zeroing and virtualized page tables included."""
FAULTS_OF_SYSTEM_MIN = 0.2
FAULTING_MIN = 0.5
SWITCHES_PER_S = 2000.0
IDLE_MIN = 0.9
ACTIVE_MIN = 0.05
OTHERS_MIN = 0.1
DENORMAL_GAIN = 1.4
MORE_TIME = "give it more time by --max-time, or less to do; 'moe-prof doctor' says what else helps"
EXPLAINED_MIN = 0.4
STALLED_MIN = 0.25
BUSY_MAX = 0.7
"""Where the core mostly stalls, what its stalls cost is estimated low: a misprediction costs its
penalty and what had been done ahead, a miss a page walk as well."""
CHAINED_MIN = 0.15
"""Page walks and other programs make a chain of misses several times as slow as the best."""
STALLS: frozenset[Cause] = frozenset(("branch_bound", "frontend_bound", *MEMORY_CAUSES))
PART_MIN = 0.6
"""Of the modelled cycles of a part of the program, what a cause must take to be named."""
OUTWEIGHING_MIN = 0.2
BRANCH_SLOTS_MIN = 0.2
SLOTS_MIN = 0.3


Rule = Callable[[ProgramEvidence], Verdict | None]


def judge_program(evidence: ProgramEvidence) -> Verdict:
    """The first rule that holds, else ``unknown``."""
    for rule in RULES:
        verdict = rule(evidence)
        if verdict is not None:
            return verdict
    late = evidence.cut_off and evidence.instructions is None
    more = late or evidence.machine.clock_hz is None
    return Verdict("unknown", _what_is_missing(evidence), MORE_TIME if more else DOCTOR)


def needs_more(evidence: ProgramEvidence) -> bool:
    """Whether the verdict depends on its working cycles, so that simulating them is worth it."""
    return all(rule(evidence) is None for rule in OUTER_RULES)


def _too_short(e: ProgramEvidence) -> Verdict | None:
    if max(e.cpu_s, e.wall_s / 2) >= SHORTEST_S:
        return None
    return Verdict(
        "too_short",
        f"it ends after {time_text(e.wall_s)} with {time_text(e.cpu_s)} of CPU time, most of "
        "which starts the process",
        "repeat its work inside the process",
    )


def _sleeping(e: ProgramEvidence) -> Verdict | None:
    if e.runnable >= 1 - IDLE_MIN:
        return None
    return Verdict(
        "unknown",
        f"it sleeps: its threads are ready to run {share_text(e.runnable)} of the time only, and "
        "what it waits for is outside of it",
        "look at its input, output and peers",
    )


def _system(e: ProgramEvidence) -> Verdict | None:
    share = e.sys_s / e.cpu_s if e.cpu_s else 0.0
    if share < SYSTEM_MIN:
        return None
    if max(e.polling or 0.0, e.yielding) >= threads.WAITING_MIN and e.team > 1:
        return None  # its threads call the system to wait
    text = f"{share_text(share)} of its CPU time is the system's"
    if _faults(e):
        if share < FAULTS_MIN:
            return None
        return Verdict(
            "page_fault_bound",
            f"{text}; {count_text(e.minor_faults)} page faults take most of it",
            "keep and reuse memory instead of mapping it anew; touch it once, before; huge pages",
        )
    if e.active_threads > 1 and e.voluntary > SWITCHES_PER_S * e.wall_s:
        return Verdict(
            "spin_bound",
            f"{text}; its threads went to sleep {count_text(e.voluntary)} times, waiting for each "
            "other",
            "give threads more work between locks and barriers",
        )
    return Verdict(
        "syscall_bound",
        f"{text}, with few page faults ({count_text(e.minor_faults)})",
        "call the system less often: larger buffers, batches",
    )


def _faults(e: ProgramEvidence) -> bool:
    """Whether page faults are the system's work: by its own functions, else by their number."""
    if e.faulting is not None:
        return e.faulting >= FAULTING_MIN
    return e.minor_faults * FAULT_S >= FAULTS_OF_SYSTEM_MIN * e.sys_s


def gains_by_flushing(e: ProgramEvidence) -> bool:
    """Whether it is clearly faster with denormals flushed than in each run without."""
    slow_s = e.user_s if e.user_again_s is None else min(e.user_s, e.user_again_s)
    return bool(e.flushed_s) and slow_s >= DENORMAL_GAIN * (e.flushed_s or 0.0)


def _denormals(e: ProgramEvidence) -> Verdict | None:
    if e.flushed_s is None or not gains_by_flushing(e):
        return None
    return Verdict(
        "denormals",
        f"with denormals flushed to zero it takes {time_text(e.flushed_s)} instead of "
        f"{time_text(e.user_s)}",
        "set flush-to-zero and denormals-are-zero, or scale the numbers",
    )


def _slots(e: ProgramEvidence) -> Verdict | None:
    """Measured top-down nodes, where the demands below do not say more."""
    nodes = e.slots or {}
    if nodes.get("Bad_Speculation", 0.0) >= BRANCH_SLOTS_MIN:
        share = share_text(nodes["Bad_Speculation"])
        return Verdict("branch_bound", f"Bad_Speculation {share} of slots", _ADVICE["branch_bound"])
    if nodes.get("Frontend_Bound", 0.0) >= SLOTS_MIN:
        share = share_text(nodes["Frontend_Bound"])
        return Verdict("frontend_bound", f"Frontend_Bound {share} of slots", "shrink the hot code")
    memory, core = (nodes.get(f"Backend_Bound.{n}_Bound", 0.0) for n in ("Memory", "Core"))
    if memory >= max(SLOTS_MIN, core):
        found = largest_of([d for d in demands(e) if d.cause in MEMORY_CAUSES])
        if found is not None:
            return Verdict(
                found.cause, f"Memory_Bound {share_text(memory)} of slots; {found.text}",
                _ADVICE[found.cause],
            )  # fmt: skip
    if core >= SLOTS_MIN and e.loop_bound in ("dependency", "ports"):
        cause: Cause = "dependency_bound" if e.loop_bound == "dependency" else "port_bound"
        return Verdict(cause, f"Core_Bound {share_text(core)} of slots", _ADVICE[cause])
    if nodes.get("Retiring", 0.0) >= 0.5:
        share = share_text(nodes["Retiring"])
        return Verdict("instruction_bound", f"Retiring {share} of slots", MORE_PER_INSTRUCTION)
    return None


_ADVICE: dict[Cause, str] = {
    "instruction_bound": MORE_PER_INSTRUCTION,
    "dependency_bound": "use more independent accumulators",
    "port_bound": "use instructions that do more per port, or spread work over other ports",
    "frontend_bound": "shrink the hot code: inline and unroll less, keep rare paths apart",
    "branch_bound": "replace unpredictable branches by masks or selects; sort work by its branch",
    "l2_bound": "make the working set fit the L1: tile, pack",
    "l3_bound": "make the working set fit the L2: tile, pack",
    "dram_latency_bound": "follow fewer pointers, prefetch, keep together what is used together",
    "dram_bandwidth_bound": "read each byte once: fuse passes, tile, use smaller types",
}


def _working(e: ProgramEvidence) -> Verdict | None:
    """The largest demand that explains a fair part of the working cycles."""
    largest, cycles = largest_of(demands(e)), e.cycles
    if largest is None or not cycles:
        return None
    if e.instructions is None:
        return _working_part(e)
    share = largest.cycles / cycles
    if share < _least_share(e, largest.cause) and not _outweighs(e, largest, share):
        return None
    return Verdict(
        largest.cause,
        f"{largest.text}: {share_text(min(1.0, share))} of its {count_text(cycles)} user cycles",
        _ADVICE[largest.cause],
    )


def _working_part(e: ProgramEvidence) -> Verdict | None:
    """By a part of the program, whose real cycles are not known: what outweighs all else in it.

    Only stalls are named so. Where instructions outweigh them, something unknown may as well.
    """
    if e.part_instructions is None or not e.machine.width:
        return None
    largest = largest_of([demand for demand in demands(e) if demand.cause in STALLS])
    total = _accounted(e, e.part_instructions / e.machine.width)
    if largest is None or largest.cycles < PART_MIN * total:
        return None
    return Verdict(
        largest.cause,
        f"{largest.text}: {share_text(largest.cycles / total)} of the cycles accounted for "
        f"in the {count_text(e.part_instructions)} instructions that were simulated",
        _ADVICE[largest.cause],
    )


def _outweighs(e: ProgramEvidence, stall: Demand, share: float) -> bool:
    """Whether a stall that explains a small part of the cycles outweighs all else that is known.

    A penalty is a best case: another thread on the core, or a long way to refill, doubles it.
    """
    if stall.cause not in STALLS or share < OUTWEIGHING_MIN or not e.machine.width:
        return False
    return stall.cycles >= PART_MIN * _accounted(e, (e.instructions or 0.0) / e.machine.width)


def _accounted(e: ProgramEvidence, issuing: float) -> float:
    """Cycles that the model knows of: the busy ones and all stalls, as if none overlapped."""
    found = demands(e)
    others = [demand.cycles for demand in found if demand.cause not in STALLS]
    return max([issuing, *others]) + sum(d.cycles for d in found if d.cause in STALLS)


def _least_share(e: ProgramEvidence, cause: Cause) -> float:
    """The share of the cycles that a cause must explain to be named."""
    if cause in MEMORY_CAUSES and e.pointer_share >= POINTER_MIN:
        return CHAINED_MIN
    stalls = e.cycles is not None and (e.loop_cycles or 0.0) < BUSY_MAX * e.cycles
    stalling = cause in STALLS
    return STALLED_MIN if stalling and stalls else EXPLAINED_MIN


def _what_is_missing(e: ProgramEvidence) -> str:
    if e.machine.clock_hz is None:
        return "its cycles are not known: the clock could not be calibrated"
    if e.instructions is None and e.cut_off:
        return "its simulation was cut off, and nothing tells how much of its instructions that saw"
    if e.instructions is None:
        return "its instructions could not be counted here, neither by hardware nor by simulation"
    largest, cycles = largest_of(demands(e)), e.cycles
    if largest is None or not cycles:
        return "no cause stands out in the figures that could be had here"
    return (
        f"the largest demand known explains {share_text(largest.cycles / cycles)} of its cycles "
        f"({largest.text})"
    )


OUTER_RULES: tuple[Rule, ...] = (
    _too_short, _sleeping, threads.one_by_one, threads.crowded_lock, threads.oversubscribed,
    _system, threads.only_polling, threads.waiting, threads.shared_line, threads.helped_seldom,
    threads.crowded_out,
)  # fmt: skip
RULES: tuple[Rule, ...] = (*OUTER_RULES, _denormals, _slots, _working)
