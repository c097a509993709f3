"""Totals of imported outputs under the tools' own names."""

from __future__ import annotations

from moe_prof.render.import_view import MAX_TOTALS, remark, value_text, where
from moe_prof.report.material import Material, Source
from moe_prof.report.parts import Cell, Context, Missing, Part, Table, by_source
from moe_prof.report.sections.functions import MOST_TABLES, left_out

_PARTS = ("function", "instruction")


def make(material: Material) -> Context | Missing:
    """A table for each variant of each imported session."""
    return by_source(material, _part, "no session was imported; 'moe-prof import' makes one")


def _part(source: Source) -> Part | None:
    if source.session.manifest.command != "import":
        return None
    tables = []
    notes = []
    for variant in source.variants:
        rows = [
            row
            for row in source.rows
            if row.variant == variant and row.scope not in _PARTS and row.repeat is None
        ]
        lines = tuple(
            (
                Cell(row.metric),
                Cell(value_text(row), source.anchor(row)),
                Cell(where(row)),
                Cell(remark(row), wide=True),
            )
            for row in rows[:MAX_TOTALS]
        )
        if lines:
            titles = ("metric", "value", "where", "remark")
            tables.append(Table(f"Totals of {variant}", titles, lines))
        if len(rows) > MAX_TOTALS:
            notes.append(f"{variant}: {len(rows) - MAX_TOTALS} further rows are in the data below.")
    notes += left_out(tables)
    return Part(tables=tuple(tables[:MOST_TABLES]), notes=tuple(notes)) if tables else None
