"""Evidence on a program from what watching, sampling, simulation and the ceilings gave; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from moe_prof.analysis import program_demands, program_verdict
from moe_prof.analysis.ceilings import Ceilings
from moe_prof.analysis.program_demands import ProgramEvidence
from moe_prof.machine import Machine
from moe_prof.program import code
from moe_prof.program.counting import Counted
from moe_prof.program.sampling import Sampled
from moe_prof.program.watch import ThreadTime, Watched

FEW_SAMPLES = 20


def evidence_of(watched: Watched) -> ProgramEvidence:
    """What a watched run alone tells; pure."""
    threads = watched.threads
    most = max((t.run_s for t in threads), default=0.0)
    active = [t for t in threads if t.run_s >= program_verdict.ACTIVE_MIN * most]
    total = sum(t.run_s for t in active)
    others = sum(t.run_s for t in threads if not t.is_main)
    team = len(active)
    helping = [t for t in threads if not t.is_main and t.spells]
    if others >= program_verdict.OTHERS_MIN * sum(t.run_s for t in threads):
        team = max(team, min(2, watched.most_threads))  # many short ones, one after the other
    queued = sum(t.run_s + t.queued_s for t in threads)
    return ProgramEvidence(
        wall_s=watched.wall_s,
        user_s=watched.user_s,
        sys_s=watched.sys_s,
        cpus=watched.cpus,
        minor_faults=watched.minor_faults + watched.major_faults,
        voluntary=watched.voluntary,
        max_rss_bytes=watched.max_rss_bytes or 0,
        active_threads=max(1, team),
        most_threads=watched.most_threads,
        runnable=queued / watched.wall_s if threads else watched.cpu_s / watched.wall_s,
        single_share=watched.single_share,
        busiest=most * len(active) / total if total else 1.0,
        main_is_busiest=_is_main(threads, most),
        blocked=_blocked(active),
        spells=sum(t.spells for t in helping),
        spells_s=sum(t.run_s for t in helping),
        spells_over=max((t.spells_over_s for t in helping), default=0.0) / watched.wall_s,
        idle_cpus=watched.idle_cpus,
    )


def with_samples(evidence: ProgramEvidence, sampled: Sampled) -> ProgramEvidence:
    """The evidence with what samples add; pure."""
    several = len(sampled.seen) > 1
    system = sum(sampled.system.values())
    faults = sampled.system.get("fault", 0)
    return replace(
        evidence,
        polling=sampled.waiting,
        own_polling=sampled.own_polling,
        locking=sampled.locking,
        walking=sampled.walking,
        busiest=sampled.busiest if several else evidence.busiest,
        main_is_busiest=sampled.main_is_busiest if several else evidence.main_is_busiest,
        yielding=sampled.system.get("yield", 0) / sampled.count,
        faulting=faults / system if system >= FEW_SAMPLES else None,
        own_share=sampled.own_share,
        shared_line=sampled.shared_lines,
        pointer_share=sampled.pointers,
    )


def with_counts(evidence: ProgramEvidence, found: Counted) -> ProgramEvidence:
    """The evidence with simulated counts; counted ones stay; pure."""
    bounds: Counter[str] = Counter()
    slots, total = 0.0, 0.0
    for analysis in found.loops:
        if analysis.throughput is not None:
            cycles = analysis.iterations * analysis.throughput.simulated_cycles
            bound: str = analysis.throughput.bound
            if bound == "ports" and code.divides_in_chain(
                [instruction.text for instruction in analysis.loop.usual_path]
            ):
                bound = "dependency"  # the divider is busy because each division waits for the last
            bounds[bound] += round(cycles)
            slots += analysis.iterations * analysis.throughput.issue_slots
            total += cycles
    width = evidence.machine.width
    return replace(
        evidence,
        instructions=evidence.instructions or found.instructions,
        loop_bound=bounds.most_common(1)[0][0] if bounds else None,
        loop_cycles=found.demand.simulated_cycles if found.demand is not None else None,
        loop_slots=slots / (width * total) if width and total else None,
        pointer_share=max(evidence.pointer_share, found.pointer_share),
        mispredictions=evidence.mispredictions or found.mispredictions,
        l1_misses=found.l1_misses,
        l2_misses=found.l2_misses,
        l3_misses=found.l3_misses,
        fetch_misses=found.fetch_misses,
        cut_off=found.cut_off,
        whole_misses=found.whole_misses,
        part_instructions=None if evidence.instructions else found.part_instructions,
    )


def machine_of(machine: Machine, found: Ceilings, team: int) -> program_demands.Machine:
    """Clock, latencies and bandwidths of a machine; pure."""
    core = machine.core()
    last = machine.cache(3)
    levels = ("l2", "l3", "memory")
    latency = tuple(found.value(f"latency_{level}", 1) for level in levels)
    bandwidth = tuple(
        None if (rate := found.value(f"read_{level}", team)) is None else rate / team
        for level in levels
    )
    return program_demands.Machine(
        clock_hz=found.clock_hz,
        width=core.width if core is not None else None,
        penalty_cycles=core.mispredict_penalty_cycles if core is not None else 15.0,
        latency_s=(latency[0], latency[1], latency[2]),
        bandwidth=(bandwidth[0], bandwidth[1], bandwidth[2]),
        l3_bytes=last.size_bytes if last is not None else None,
    )


def _blocked(active: Sequence[ThreadTime]) -> float | None:
    """Share of their time that threads slept in locks, on average."""
    known = [thread.blocked for thread in active if thread.blocked is not None]
    return sum(known) / len(known) if known else None


def _is_main(threads: tuple[ThreadTime, ...], most: float) -> bool:
    return any(t.is_main and t.run_s >= most for t in threads)
