"""Where the figures come from: the legend of provenance, and what could not be had and why."""

from __future__ import annotations

from collections import Counter

from moe_prof.render.tables import LEGEND
from moe_prof.report.material import Material, Source
from moe_prof.report.parts import Cell, Context, Part, Table, titled
from moe_prof.rows import PROVENANCES

_MEANINGS = {
    "measured": "by a clock or a counter of the machine",
    "simulated": "counted exactly by an instrumenting tool, without time",
    "modelled": "computed by a documented model; its sources and validity stand in the code",
    "unavailable": "could not be had; the reason stands with it",
}
_NAMES_SHOWN = 6


def make(material: Material) -> Context:
    """The legend, then what each session lacks."""
    counts = Counter(row.provenance for source in material.sources for row in source.rows)
    legend = Table(
        "Provenance of the figures",
        ("provenance", "figures", "meaning"),
        tuple(
            (Cell(name), Cell(str(counts[name])), Cell(_MEANINGS[name], wide=True))
            for name in PROVENANCES
        ),
    )
    parts = [Part(texts=(f"Marks in tables: {LEGEND}.",), tables=(legend,))]
    for source in material.sources:
        lacking = _lacking(source)
        if lacking is not None:
            part = Part(tables=(lacking,))
            parts.append(titled(part, source.label) if len(material.sources) > 1 else part)
    return {"parts": parts}


def _lacking(source: Source) -> Table | None:
    """What could not be had, by reason."""
    found: dict[str, dict[str, None]] = {}
    for row in source.rows:
        if row.provenance == "unavailable" and row.source:
            subject = " ".join(part for part in (row.variant, row.metric) if part)
            found.setdefault(row.source, {})[subject] = None
    if not found:
        return None
    rows = tuple(
        (Cell(_names(list(what)), wide=True), Cell(why, wide=True)) for why, what in found.items()
    )
    return Table("What could not be had", ("figures", "reason"), tuple(rows))


def _names(names: list[str]) -> str:
    more = len(names) - _NAMES_SHOWN
    shown = ", ".join(names[:_NAMES_SHOWN])
    return f"{shown} and {more} more" if more > 0 else shown
