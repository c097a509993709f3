"""The text of ``roofline``: points under their roofs, and the ceilings themselves."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from moe_prof.analysis.ceilings import Ceiling, Ceilings
from moe_prof.analysis.roofline_points import Point
from moe_prof.render.fitted import Column, FittedTable
from moe_prof.render.tables import MISSING
from moe_prof.units import count_text, digits_text, share_text, time_text

_HOUR_S, _DAY_S = 3600.0, 86400.0
OLD_S = 30 * _DAY_S


def points_view(points: Sequence[Point]) -> list[RenderableType]:
    """One table a scenario, each variant followed by its phases."""
    view: list[RenderableType] = []
    for label in dict.fromkeys(point.scenario for point in points):
        view += [Text(f"{label}: under the roofline", style="bold"), points_table(label, points)]
        view.append("")
    if view:
        view += [
            Text(
                "MAC/s: useful MACs over time; roof: the least of arithmetic and reading the "
                "weights once; of path: with the instructions of the variant's own path; phases: "
                "of the slowest thread, in the (slower) build with timers",
                style="dim",
            ),
            "",
        ]
    return view


def ceilings_view(found: Ceilings) -> FittedTable:
    """Every ceiling with each team."""
    teams = found.thread_counts
    table = FittedTable(
        "ceiling", [Column(f"{team} thread{'s' if team > 1 else ''}") for team in teams]
    )
    for name in dict.fromkeys(entry.name for entry in found.entries):
        cells = [_cell(found.find(name, team)) for team in teams]
        if any(cell != MISSING for cell in cells):
            table.add_row(name, *cells)
    return table


def missing_lines(found: Ceilings) -> list[str]:
    """Which ceilings are missing with every team, and why."""
    names = dict.fromkeys(entry.name for entry in found.entries)
    reasons: dict[str, list[str]] = {}
    for name in names:
        entries = [entry for entry in found.entries if entry.name == name]
        if all(entry.value is None for entry in entries):
            reasons.setdefault(entries[0].source, []).append(name)
    return [f"no {', '.join(which)}: {why}" for why, which in reasons.items()]


def age_text(age_s: float) -> str:
    """``now``, ``3 h ago``, ``12 days ago``."""
    if age_s < 60:
        return "now"
    if age_s < _HOUR_S:
        return f"{age_s / 60:.0f} min ago"
    return (
        f"{age_s / _HOUR_S:.0f} h ago" if age_s < 2 * _DAY_S else f"{age_s / _DAY_S:.0f} days ago"
    )


def points_table(label: str, points: Sequence[Point]) -> FittedTable:
    """One line a variant, each followed by its phases."""
    titles = ("T", "MAC/byte", "MAC/s", "roof", "of roof", "of path")
    table = FittedTable(
        "variant",
        (Column("path", "left"), *map(Column, titles), Column("limit", "left")),
    )
    for point in points:
        if point.scenario != label:
            continue
        reading = f"read {point.level if point.level == 'memory' else point.level.upper()}"
        table.add_row(
            point.variant if point.phase is None else f"  {point.phase}",
            point.isa or MISSING,
            str(point.threads),
            digits_text(point.intensity),
            count_text(point.rate),
            count_text(point.roof),
            _share(point.fraction),
            MISSING if point.path_fraction is None else _share(point.path_fraction),
            "compute" if point.limit == "compute" else reading,
        )
    return table


def _share(fraction: float) -> str:
    return share_text(fraction) + ("!" if fraction > 1 else "")


def _cell(entry: Ceiling | None) -> str:
    if entry is None or entry.value is None:
        return MISSING
    if entry.unit == "s":
        return time_text(entry.value)
    return f"{count_text(entry.value)}{'' if entry.unit == 'Hz' else ' '}{entry.unit}"
