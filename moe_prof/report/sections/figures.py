"""All summary figures as rows, which tables and explanations link to."""

from __future__ import annotations

from moe_prof.render.import_view import value_text
from moe_prof.report.material import Material, Source
from moe_prof.report.parts import Cell, Context, Missing, Table

_TITLES = ("metric", "variant", "part", "value", "provenance", "how, or why it is missing")


LONGEST_TEXT = 300


def make(material: Material) -> Context | Missing:
    """A folded table a session."""
    tables = [_table(source) for source in material.sources if source.listed]
    return {"tables": tables} if tables else Missing("the sessions hold no figures")


def shortened(text: str) -> str:
    """At most so much of a text that a table stays one."""
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"


def _table(source: Source) -> Table:
    rows = []
    for row in source.listed:
        thread = f"thread {row.thread}" if row.thread else None
        part = " ".join(text for text in (row.phase, thread, row.cpu) if text)
        rows.append(
            (
                Cell(row.metric),
                Cell(row.variant or "machine"),
                Cell(part),
                Cell(value_text(row)),
                Cell(row.provenance if row.status == "ok" else f"{row.provenance}, {row.status}"),
                Cell(shortened(row.source), wide=True),
            )
        )
    names = tuple(source.anchor(row) for row in source.listed)
    return Table(f"Figures of {source.label}", _TITLES, tuple(rows), names, folded=True)
