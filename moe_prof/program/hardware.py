"""Hardware counters of a whole program, where there are any: events, and top-down nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from moe_prof.analysis.program_demands import ProgramEvidence
from moe_prof.collectors.perf_collect import collect_counters, collect_topdown
from moe_prof.collectors.perf_rows import Labels
from moe_prof.errors import MoeProfError
from moe_prof.rows import Row
from moe_prof.session import Session
from moe_prof.topdown.counted import COLLECTOR, Counters, plainly_named


def with_counters(
    evidence: ProgramEvidence,
    command: Sequence[str],
    counters: Counters,
    session: Session,
    label: str,
    *,
    timeout_s: float,
    notes: list[str],
) -> ProgramEvidence:
    """Count the program under perf stat; rows go to the session, values into the evidence."""
    labels = Labels(variant=label, collector=COLLECTOR, scope="process")
    folder = session.raw / "perf"
    folder.mkdir(exist_ok=True)
    rows: list[Row] = []
    try:
        found = collect_counters(
            command, folder, labels, timeout_s=timeout_s, events=counters.events
        )
        rows += plainly_named(found.rows)
    except MoeProfError as error:
        notes.append(f"no counters: {error}")
    try:
        if counters.facts is not None and not counters.topdown_reason:
            slots = collect_topdown(
                command, folder, labels, facts=counters.facts, timeout_s=timeout_s
            )
            rows += [row for row in slots.rows if row.level is not None]
    except MoeProfError as error:
        notes.append(f"no top-down counters: {error}")
    session.add(rows)
    return evidence_from(evidence, rows)


def evidence_from(evidence: ProgramEvidence, rows: Sequence[Row]) -> ProgramEvidence:
    """The evidence with counted values; pure."""
    values = {row.metric: row.value for row in rows if row.value is not None and row.time_s is None}
    nodes = {row.metric: row.value for row in rows if row.level is not None and row.value}
    return replace(
        evidence,
        instructions=values.get("instructions", evidence.instructions),
        measured_instructions="instructions" in values,
        mispredictions=values.get("branch-misses", evidence.mispredictions),
        slots=nodes or None,
    )
