"""Verdict rows: evidence gathered from tidy rows, judged, and said in rows again."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from moe_prof.analysis.crowding import shared_cpus, used_by_others
from moe_prof.analysis.query import RowIndex
from moe_prof.analysis.roofline import Floor
from moe_prof.analysis.verdict import Evidence, Verdict, judge
from moe_prof.collectors.llvm_mca import Bound
from moe_prof.collectors.simulate import SimulatedCounts
from moe_prof.rows import Provenance, Row
from moe_prof.topdown.stand_ins import METRIC as MODELLED_ISA

COLLECTOR = "verdict"
UNTIMED_ADVICE = "put that right first, then measure again"
MORE_TIME_ADVICE = "give it more time by --max-time, or measure fewer variants in it"
_LATE = re.compile(r"time limit|too long for the limit|left no time")
"""In the words of what came too late."""


def verdict_rows(
    rows: Sequence[Row],
    variants: Sequence[str],
    *,
    scenario: str,
    usable_cpus: int,
    floors: Mapping[str, Floor],
    simulated: Mapping[str, SimulatedCounts],
) -> list[Row]:
    """Three rows a variant: ``verdict`` (the cause), ``verdict_evidence``, ``verdict_advice``.

    A variant without a time (wrong, crashed, out of time) is ``unknown``, with its reason.
    """
    index = RowIndex(rows)
    made: list[Row] = []
    for variant in variants:
        timed = index.row(variant, "time")
        if timed is not None and timed.value is None:
            advice = MORE_TIME_ADVICE if _LATE.search(timed.source) else UNTIMED_ADVICE
            verdict = Verdict("unknown", f"it has no time: {timed.source}", advice)
            made += _rows(verdict, scenario, variant, measured=False)
            continue
        found = _evidence(
            index,
            variant,
            usable_cpus=usable_cpus,
            floor=floors.get(variant),
            simulated=simulated.get(variant),
        )
        other = index.text(variant, MODELLED_ISA)
        verdict = _judge_with_stand_in(found, other) if other else judge(found)
        made += _rows(verdict, scenario, variant, measured=found.measured)
    return made


def _evidence(
    index: RowIndex,
    variant: str,
    *,
    usable_cpus: int,
    floor: Floor | None,
    simulated: SimulatedCounts | None,
) -> Evidence:
    busy = index.by_thread(variant, "busy_time")
    total_s = sum(busy.values())
    retiring = index.row(variant, "Retiring")
    demand = simulated.demand if simulated is not None else None
    return Evidence(
        threads=int(index.value(variant, "threads") or 1),
        usable_cpus=usable_cpus,
        shared_cpus=shared_cpus(index, variant),
        others=used_by_others(index, variant),
        waiting=index.value(variant, "spin_fraction"),
        busiest=max(busy.values()) * len(busy) / total_s if total_s > 0 else None,
        serial=max(busy.values()) / total_s if total_s > 0 else None,
        retiring=index.value(variant, "Retiring"),
        bad_speculation=index.value(variant, "Bad_Speculation"),
        frontend=index.value(variant, "Frontend_Bound"),
        memory=index.value(variant, "Backend_Bound.Memory_Bound"),
        core=index.value(variant, "Backend_Bound.Core_Bound"),
        level=floor.level if floor is not None else None,
        cycles=index.value(variant, "working_cycles"),
        loop_cycles=demand.simulated_cycles if demand is not None else None,
        loop_bound=_loop_bound(simulated),
        roofline=index.value(variant, "roofline_fraction_path"),
        roofline_limit=floor.limit if floor is not None else None,
        instructions_per_mac=index.value(variant, "instructions_per_mac"),
        measured=retiring is not None and retiring.provenance == "measured",
        why_no_slots=retiring.source if retiring is not None and retiring.value is None else "",
    )


def _judge_with_stand_in(evidence: Evidence, path: str) -> Verdict:
    """By what is known of the path that was timed; else by the slots of the one that stands in."""
    verdict = judge(_without_slots(evidence, path))
    modelled = judge(evidence)
    if verdict.cause != "unknown" or modelled.cause == "unknown":
        return verdict
    text = f"on its {path} path, which was simulated in place of the one timed: {modelled.evidence}"
    return replace(modelled, evidence=text)


def _without_slots(evidence: Evidence, path: str) -> Evidence:
    return replace(
        evidence, retiring=None, bad_speculation=None, frontend=None, memory=None, core=None,
        cycles=None, loop_cycles=None, loop_bound=None, instructions_per_mac=None,
        why_no_slots=f"those of its {path} path were modelled, another one was timed",
    )  # fmt: skip


def _loop_bound(simulated: SimulatedCounts | None) -> Bound | None:
    """What binds the larger part of the hot loops' cycles."""
    cycles: Counter[Bound] = Counter()
    for analysis in simulated.loops if simulated is not None else ():
        if analysis.throughput is not None:
            cycles[analysis.throughput.bound] += round(
                analysis.iterations * analysis.throughput.simulated_cycles
            )
    return cycles.most_common(1)[0][0] if cycles else None


def _rows(verdict: Verdict, scenario: str, variant: str, *, measured: bool) -> list[Row]:
    provenance: Provenance = "measured" if measured else "modelled"
    texts = (
        ("verdict", verdict.cause),
        ("verdict_evidence", verdict.evidence),
        ("verdict_advice", verdict.advice),
    )
    return [
        Row(
            scenario=scenario,
            variant=variant,
            collector=COLLECTOR,
            metric=metric,
            value=None,
            unit="1",
            provenance=provenance,
            source=text,
        )
        for metric, text in texts
    ]
