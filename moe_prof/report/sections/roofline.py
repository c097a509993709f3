"""Variants and phases under this machine's ceilings, and the ceilings themselves."""

from __future__ import annotations

from typing import Any, get_args

from matplotlib.figure import Figure

from moe_prof.analysis import ceilings, roofline_points
from moe_prof.figures.style import look
from moe_prof.render import roofline_plot
from moe_prof.render.roofline_view import points_table
from moe_prof.render.tables import MISSING
from moe_prof.report.material import Material, Source
from moe_prof.report.parts import (
    Context,
    Missing,
    Part,
    Table,
    by_source,
    picture,
    plain_table,
    table_of,
)
from moe_prof.rows import Row
from moe_prof.units import bytes_text, count_text, time_text

SIZE_INCHES = (7.2, 4.6)


def make(material: Material) -> Context | Missing:
    """A figure and tables for each session that measured ceilings."""
    return by_source(
        material, _part, "no session measured ceilings; 'moe-prof topdown' measures them"
    )


def _part(source: Source) -> Part | None:
    machine = source.session.manifest.machine
    measured = ceilings.from_rows(filter(_is_ceiling, source.rows))
    known = ceilings.with_capacities(measured, _caches(machine.get("caches")))
    if not any(entry.value is not None for entry in known.entries):
        return None
    cpus = machine.get("usable_cpus")
    points, reasons = roofline_points.points(
        source.rows, known, usable_cpus=cpus if isinstance(cpus, int) and cpus > 0 else 1
    )
    figure = None
    if points:
        with look():
            figure = Figure()
            roofline_plot.draw(figure, points, known, size_inches=SIZE_INCHES)
            figure.axes[0].xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    labels = dict.fromkeys(point.scenario for point in points)
    tables = [
        table_of(points_table(label, points), f"{label}: under the roofline") for label in labels
    ]
    return Part(
        pictures=picture(
            figure,
            f"roofline-{source.number}",
            "Rate over arithmetic intensity, both logarithmic; lines are ceilings measured here.",
            large=True,
        ),
        tables=(*tables, _ceilings(known)),
        notes=tuple(f"No point for {reason}." for reason in reasons),
    )


def _is_ceiling(row: Row) -> bool:
    """Whether a row is one of those that ``ceilings`` writes."""
    named = row.unit in get_args(ceilings.Unit) and (row.thread or "1").isdecimal()
    return row.scope == "machine" and row.metric.startswith("ceiling_") and named


def _caches(facts: object) -> list[dict[str, Any]]:
    """The caches of a manifest that tell their level and size."""
    found = facts if isinstance(facts, list | tuple) else ()
    return [c for c in found if isinstance(c, dict) and {"level", "size_bytes"} <= c.keys()]


def _ceilings(found: ceilings.Ceilings) -> Table:
    teams = found.thread_counts
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
