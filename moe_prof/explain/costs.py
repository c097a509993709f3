"""How many cycles counted misses can explain: upper bounds, from published penalties.

A mispredicted branch costs 15 to 20 cycles on cores since 2010 (A. Fog, "The microarchitecture of
Intel, AMD and VIA CPUs"); a miss of the last level 200 to 400 cycles at memory latencies of 70 to
120 ns. Both can overlap with work, so the real cost is less.
"""

from __future__ import annotations

from moe_prof.explain.stage import Stage

MISPREDICT_CYCLES = 20.0
MEMORY_CYCLES = 300.0
LARGEST_CLOCK_HZ = 6.5e9
"""No CPU core runs faster; more cycles a second are those of several threads."""


def mispredict_share(stage: Stage) -> float | None:
    """Share of the cycles that mispredicted branches can have cost at most."""
    cycles, misses = stage.value("cycles"), stage.value("branch-misses")
    if not cycles or misses is None:
        return None
    return misses * MISPREDICT_CYCLES / cycles


def memory_share(stage: Stage) -> float | None:
    """Share of the cycles that counted cache misses can have cost at most."""
    cycles, misses = stage.value("cycles"), stage.value("cache-misses")
    if not cycles or misses is None:
        return None
    return misses * MEMORY_CYCLES / cycles


def miss_share(stage: Stage) -> float | None:
    """Both together; None where neither was counted."""
    known = [s for s in (mispredict_share(stage), memory_share(stage)) if s is not None]
    return sum(known) if known else None


def cpus_busy(stage: Stage) -> float | None:
    """The least number of CPUs that were busy: cycles a second over the fastest clock."""
    time, cycles = stage.time(), stage.row("cycles")
    if time is None or cycles is None or not time.value or cycles.value is None:
        return None
    if time.metric == "time" and cycles.scope != "roi":
        return None  # one forward's time beside the cycles of a whole process
    return cycles.value / time.value / LARGEST_CLOCK_HZ
