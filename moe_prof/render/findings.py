"""Findings for people and as tidy rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from moe_prof.explain.finding import CERTAINTIES, Certainty, Finding
from moe_prof.render.import_view import value_text
from moe_prof.rows import Provenance, Row
from moe_prof.units import count_text, share_text

COLLECTOR = "explain"
MAX_EVIDENCE = 8
ROUNDED_FROM = 1e5
NOTHING = (
    "Nothing certain can be said: no rule found the rows that it needs. Evidence comes from "
    "'moe-prof topdown', 'counters' and 'hotspots', or from counters brought by 'import'."
)
NOTHING_CERTAIN = "Nothing here is certain; what follows rests on assumptions or models."
_SHARES = ("rate", "fraction", "share", "Overhead", "Self", "% time")
CERTAINTY_TITLES: dict[Certainty, str] = {
    "certain": "Certain: follows from measured values",
    "likely": "Likely: rests on modelled values or on a stated assumption",
    "possible": "Possible: other causes would look the same",
}
_PROVENANCE: dict[Certainty, Provenance] = {
    "certain": "measured", "likely": "modelled", "possible": "modelled",
}  # fmt: skip


def body(findings: Sequence[Finding]) -> RenderableType:
    """The findings by certainty, each with its evidence, advice and source."""
    if not findings:
        return Text(NOTHING)
    parts: list[RenderableType] = []
    if not any(finding.certainty == "certain" for finding in findings):
        parts += [Text(NOTHING_CERTAIN), ""]
    for certainty in CERTAINTIES:
        own = [finding for finding in findings if finding.certainty == certainty]
        if own:
            parts.append(Text(CERTAINTY_TITLES[certainty], style="bold underline"))
            parts += [part for finding in own for part in _one(finding)]
            parts.append("")
    return Group(*parts[:-1])


def rows(findings: Sequence[Finding]) -> list[Row]:
    """Five rows a finding, joined by ``repeat``, its number; texts stand in ``source``."""
    made = []
    for number, finding in enumerate(findings):
        template = Row(
            scenario=finding.scenario,
            variant=", ".join(finding.stages),
            collector=COLLECTOR,
            repeat=number,
            metric="finding",
            value=None,
            unit="1",
            provenance=_PROVENANCE[finding.certainty],
        )
        texts = (
            ("finding", finding.rule),
            ("finding_text", finding.text),
            ("finding_evidence", evidence_text(finding.evidence)),
            ("finding_advice", finding.advice),
            ("finding_certainty", finding.certainty),
        )
        made += [replace(template, metric=metric, source=text) for metric, text in texts]
    if not made:
        made = [
            Row(
                collector=COLLECTOR, metric="finding", value=None, unit="1",
                provenance="unavailable", status="not_supported", source=NOTHING,
            )
        ]  # fmt: skip
    return made


def evidence_text(evidence: Sequence[Row]) -> str:
    """``IPC 0.21 (packed); cycles 103 G (packed)``."""
    shown = [_evidence(row) for row in evidence[:MAX_EVIDENCE]]
    if len(evidence) > MAX_EVIDENCE:
        shown.append(f"and {len(evidence) - MAX_EVIDENCE} further rows")
    return "; ".join(shown)


def _one(finding: Finding) -> list[RenderableType]:
    head = Text()
    head.append(", ".join(finding.stages), style="bold")
    head.append(f" {finding.rule}", style="cyan")
    head.append(f": {finding.text}")
    return [
        Padding(head, (0, 0, 0, 2)),
        Padding(Text(f"Evidence: {evidence_text(finding.evidence)}."), (0, 0, 0, 4)),
        Padding(Text(f"Try: {finding.advice}."), (0, 0, 0, 4)),
        Padding(Text(f"After: {finding.source}.", style="dim"), (0, 0, 0, 4)),
    ]


def _evidence(row: Row) -> str:
    where = [row.variant, row.phase, f"thread {row.thread}" if row.thread else None]
    if row.scope in ("process", "system"):
        where.append(f"{row.scope} scope")
    if row.provenance in ("simulated", "modelled"):
        where.append(row.provenance)
    name = row.metric
    if row.scope == "function" or row.metric.endswith("self_share"):
        name = f"{row.metric} of {row.source.partition('; ')[0]}"
    place = ", ".join(word for word in where if word)
    value = _value(row)
    return f"{name} {value} ({place})" if place else f"{name} {value}"


def _value(row: Row) -> str:
    if row.value is None:
        return row.source
    if row.unit == "1" and abs(row.value) <= 1 and row.metric.endswith(_SHARES):
        return share_text(row.value)
    if row.unit == row.metric or (row.unit == "1" and abs(row.value) >= ROUNDED_FROM):
        return count_text(row.value)
    return value_text(row)
