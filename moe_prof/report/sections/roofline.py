"""How near each variant comes to this machine's ceilings, and the ceilings themselves."""

from __future__ import annotations

from typing import get_args

from moe_prof.analysis import ceilings
from moe_prof.render.tables import MISSING, cell_text
from moe_prof.report.material import Material, Source
from moe_prof.report.parts import Cell, Context, Missing, Part, Table, by_source, plain_table
from moe_prof.rows import Row
from moe_prof.units import bytes_text, count_text, share_text, time_text


def make(material: Material) -> Context | Missing:
    """Tables for each session that measured ceilings."""
    return by_source(
        material, _part, "no session measured ceilings; 'moe-prof topdown' measures them"
    )


def _part(source: Source) -> Part | None:
    fractions = _fractions(source)
    found = ceilings.from_rows(filter(_is_ceiling, source.rows))
    tables = tuple(table for table in (fractions, _ceilings(found)) if table is not None)
    return Part(tables=tables) if tables else None


def _is_ceiling(row: Row) -> bool:
    """Whether a row is one of those that ``ceilings`` writes."""
    known = row.unit in get_args(ceilings.Unit) and (row.thread or "1").isdecimal()
    return row.scope == "machine" and row.metric.startswith("ceiling_") and known


def _fractions(source: Source) -> Table | None:
    index = source.index
    rows = []
    for name in source.variants:
        best, own = (index.row(name, f"roofline_fraction{end}") for end in ("", "_path"))
        if best is None:
            continue
        rows.append(
            (
                Cell(name),
                Cell(cell_text(best, share_text, mark=True), source.anchor(best)),
                Cell(cell_text(own, share_text, mark=True), source.anchor(own)),
                Cell(index.text(name, "roofline_ceiling") or MISSING),
            )
        )
    titles = ("variant", "of the machine's floor", "of its path's floor", "ceiling that sets it")
    return Table("Share of the roofline", titles, tuple(rows)) if rows else None


def _ceilings(found: ceilings.Ceilings) -> Table | None:
    teams = found.thread_counts
    if not teams:
        return None
    names = list(dict.fromkeys(entry.name for entry in found.entries))
    titles = ("ceiling", *(f"{n} thread{'s' if n > 1 else ''}" for n in teams))
    rows = [(name, *(_rate(found.find(name, team)) for team in teams)) for name in names]
    return plain_table("Ceilings measured on this machine", titles, rows)


def _rate(entry: ceilings.Ceiling | None) -> str:
    if entry is None or entry.value is None:
        return MISSING
    if entry.unit == "s":
        return time_text(entry.value)
    if entry.unit == "bytes/s":
        return f"{bytes_text(entry.value)}/s"
    return f"{count_text(entry.value)}{'' if entry.unit == 'Hz' else ' '}{entry.unit}"
