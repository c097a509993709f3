"""Times of the stages with their intervals, speedups, correctness; and the speedups as a figure."""

from __future__ import annotations

from collections.abc import Callable

from moe_prof.figures import speedups
from moe_prof.render.tables import MISSING, cell_text
from moe_prof.report.material import Material, Source
from moe_prof.report.parts import (
    Cell,
    Context,
    Missing,
    Part,
    Table,
    by_source,
    picture,
    why_missing,
)
from moe_prof.rows import Row
from moe_prof.units import digits_text, share_text, time_range_text, time_text

Form = Callable[[float], str]


def make(material: Material) -> Context | Missing:
    """A table and a figure for each session with times."""
    return by_source(material, _part, "no session has times; 'moe-prof bench' measures them")


def _part(source: Source) -> Part | None:
    timed = [name for name in source.variants if source.index.row(name, "time") is not None]
    if not timed:
        return None
    shown = picture(
        speedups(source.rows, timed),
        f"speedups-{source.number}",
        "Speedup over scalar, median and 95 % interval, logarithmic.",
    )
    notes = why_missing(source, timed, "time")
    return Part(pictures=shown, tables=(_table(source, timed),), notes=notes)


def _times(value: float) -> str:
    return f"{digits_text(value)}x"


def _scientific(value: float) -> str:
    return f"{value:.1e}"


_COLUMNS: tuple[tuple[str, str, Form], ...] = (
    ("over autovec", "speedup_over_autovec", _times),
    ("rel. RMSE", "rel_rmse", _scientific),
    ("roofline", "roofline_fraction", share_text),
    ("waiting", "spin_fraction", share_text),
)


def _table(source: Source, variants: list[str]) -> Table:
    """Columns without any value are left out."""
    columns: list[tuple[str, list[Cell]]] = [
        ("variant", [Cell(name) for name in variants]),
        ("time", [_cell(source, name, "time", time_text) for name in variants]),
        ("95 % interval", [_interval(source, name, "time", time_range_text) for name in variants]),
        ("speedup", [_cell(source, name, "speedup", _times) for name in variants]),
        ("95 % interval", [_interval(source, name, "speedup", _range) for name in variants]),
        *(
            (title, [_cell(source, name, metric, form) for name in variants])
            for title, metric, form in _COLUMNS
        ),
        ("path", [Cell(source.index.text(name, "isa") or MISSING) for name in variants]),
        ("threads", [_cell(source, name, "threads", "{:.0f}".format) for name in variants]),
    ]
    kept = [(title, cells) for title, cells in columns if any(c.text != MISSING for c in cells)]
    rows = tuple(zip(*(cells for _, cells in kept), strict=True))
    return Table("Stages: times of one forward", tuple(title for title, _ in kept), rows)


def _cell(source: Source, variant: str, metric: str, form: Form) -> Cell:
    row: Row | None = source.index.row(variant, metric)
    return Cell(cell_text(row, form, mark=True), source.anchor(row))


def _interval(
    source: Source, variant: str, metric: str, form: Callable[[float, float], str]
) -> Cell:
    low, high = (source.index.value(variant, f"{metric}_ci_{end}") for end in ("low", "high"))
    return Cell(MISSING if low is None or high is None else form(low, high))


def _range(low: float, high: float) -> str:
    return f"{digits_text(low)} .. {digits_text(high)}"
