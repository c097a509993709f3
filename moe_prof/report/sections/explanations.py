"""What the rules of ``explain`` find in the sessions together, with links to their evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from moe_prof.explain import CERTAINTIES, Finding, explain
from moe_prof.render.findings import CERTAINTY_TITLES, NOTHING_CERTAIN, evidence_text
from moe_prof.report.material import Material
from moe_prof.report.parts import Cell, Context, Missing
from moe_prof.rows import Row

MOST_EVIDENCE = 8
MOST_STAGES = 4


@dataclass(frozen=True, slots=True)
class Told:
    """One finding on the page; ``evidence`` are links where the rows are listed."""

    subject: str
    finding: Finding
    evidence: tuple[Cell, ...]
    more: int


def make(material: Material) -> Context | Missing:
    """Findings by certainty, the certain ones first."""
    found = explain([source.session for source in material.sources])
    if not found:
        return Missing("no rule found the rows that it needs")
    groups = [
        (CERTAINTY_TITLES[certainty], told)
        for certainty in CERTAINTIES
        if (told := [_told(material, one) for one in found if one.certainty == certainty])
    ]
    certain = any(one.certainty == "certain" for one in found)
    return {"groups": groups, "remark": "" if certain else NOTHING_CERTAIN}


def _told(material: Material, finding: Finding) -> Told:
    shown = _links(material, finding.evidence[:MOST_EVIDENCE])
    return Told(
        _subject(finding.stages), finding, shown, max(0, len(finding.evidence) - MOST_EVIDENCE)
    )


def _subject(stages: Sequence[str]) -> str:
    more = len(stages) - MOST_STAGES
    names = ", ".join(stages[:MOST_STAGES])
    return f"{names} and {more} more" if more > 0 else names


def _links(material: Material, rows: Sequence[Row]) -> tuple[Cell, ...]:
    return tuple(Cell(evidence_text([row]), material.anchor(row)) for row in rows)
