"""Functions by their own share, and imported functions by the tool's own columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from moe_prof.hotspots.names import short_name
from moe_prof.render.import_view import part_text
from moe_prof.report.material import Material, Source
from moe_prof.report.parts import Cell, Context, Missing, Part, Table, by_source
from moe_prof.rows import Row
from moe_prof.units import share_text

MOST_FUNCTIONS = 20
MOST_TABLES = 16
"""Of one session."""
MOST_COLUMNS = 4
LONGEST_NAME = 200
_OWN = {"self_share": "", "wait_self_share": "waiting"}
_TOTAL = {"total_share": "", "wait_total_share": "waiting"}


def make(material: Material) -> Context | Missing:
    """A table for each variant of each session with a profile."""
    return by_source(
        material, _part, "no session has a profile of functions; 'moe-prof hotspots' makes one"
    )


def split_name(source: str) -> tuple[str, str]:
    """Function and module of a row of the profile: ``name [module]``."""
    name, bracket, module = source.rpartition(" [")
    return (name, module.removesuffix("]")) if bracket else (source, "")


def _part(source: Source) -> Part | None:
    tables = []
    for variant in source.variants:
        rows = [row for row in source.rows if row.variant == variant]
        profiled = [r for r in rows if r.metric in (*_OWN, *_TOTAL) and r.thread is None]
        if profiled:
            tables.append(_profile(variant, profiled))
        imported = [row for row in rows if row.scope == "function" and row.repeat is None]
        if imported:
            tables.append(_imported(variant, imported))
    tables = [table for table in tables if table.rows]
    return Part(tables=tuple(tables[:MOST_TABLES]), notes=left_out(tables)) if tables else None


def left_out(tables: Sequence[Table]) -> tuple[str, ...]:
    """A note on tables beyond what a session shows."""
    captions = [table.caption for table in tables[MOST_TABLES:]]
    return (f"{len(captions)} further tables are left out.",) if captions else ()


def _profile(variant: str, rows: Iterable[Row]) -> Table:
    """Own and total share by function and phase, the largest first."""
    own: dict[tuple[str, str], float] = {}
    total: dict[tuple[str, str], float] = {}
    for row in rows:
        sums, places = (own, _OWN) if row.metric in _OWN else (total, _TOTAL)
        if row.value is not None:
            sums[row.source, places[row.metric] or row.phase or "-"] = row.value
    order = sorted(own, key=lambda key: -own[key])[:MOST_FUNCTIONS]
    lines = tuple(
        (
            Cell(short_name(split_name(key[0])[0])[:LONGEST_NAME], wide=True),
            Cell(share_text(own[key])),
            *([Cell(share_text(total.get(key)))] if total else []),
            Cell(key[1]),
            Cell(split_name(key[0])[1]),
        )
        for key in order
    )
    titles = ("function", "self", *(["total"] if total else []), "phase", "module")
    return Table(f"Functions of {variant}", titles, lines)


def _imported(variant: str, rows: list[Row]) -> Table:
    """The tool's first columns, by the first one."""
    metrics = list(dict.fromkeys(row.metric for row in rows))[:MOST_COLUMNS]
    found: dict[str, dict[str, Row]] = {}
    for row in rows:
        found.setdefault(row.source.partition("; ")[0], {}).setdefault(row.metric, row)
    first = metrics[0]
    order = sorted(
        found, key=lambda name: -((found[name][first].value or 0.0) if first in found[name] else 0)
    )[:MOST_FUNCTIONS]
    lines = tuple(
        (
            Cell(name[:LONGEST_NAME], wide=True),
            *(
                Cell(part_text(found[name][metric]) if metric in found[name] else "-")
                for metric in metrics
            ),
        )
        for name in order
    )
    return Table(f"Functions of {variant}, imported", ("function", *metrics), lines)
