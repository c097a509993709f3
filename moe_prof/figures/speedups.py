"""Speedups over the baseline with their 95 % intervals, on a logarithmic axis."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from moe_prof.analysis.query import RowIndex
from moe_prof.figures.style import (
    BLUE,
    INK,
    LINE,
    bars_height_in,
    known,
    look,
    name_rows,
    new_figure,
)
from moe_prof.rows import Row
from moe_prof.units import digits_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METRIC = "speedup"
_ROOM = 2.2  # space behind the largest value for its text


def speedups(rows: Iterable[Row], variants: Sequence[str] | None = None) -> Figure | None:
    """A point and its interval for each variant with a speedup; the line at 1 is the baseline."""
    index = RowIndex(rows)
    found = [
        (name, value)
        for name in variants or index.variants
        if (value := known(index.value(name, METRIC))) is not None and value > 0
    ]
    if not found:
        return None
    names = [name for name, _ in found]
    with look():
        figure = new_figure(bars_height_in(len(found), 0.5))
        axes = figure.subplots()
        ends: list[float] = []
        for at, (name, value) in enumerate(found):
            low, high = (known(index.value(name, f"{METRIC}_ci_{end}")) for end in ("low", "high"))
            ends += [end for end in (value, low, high) if end is not None and end > 0]
            if low is not None and high is not None and low > 0:
                axes.plot([low, high], [at, at], color=INK, linewidth=1.4)
                axes.plot([low, high], [at, at], "|", color=INK, markersize=6)
            axes.plot([value], [at], "o", color=BLUE, markersize=5)
            axes.annotate(
                f"{digits_text(value)}x", (max(value, high or 0.0), at), xytext=(6, 0),
                textcoords="offset points", va="center",
            )  # fmt: skip
        axes.set_xscale("log")
        axes.set_xlim(0.8 * min(1.0, *ends), _ROOM * max(1.0, *ends))
        _plain_ticks(axes.get_xlim(), axes.set_xticks)
        axes.axvline(1.0, color=LINE, linewidth=0.8)
        axes.grid(axis="x")
        axes.set_xlabel("speedup over scalar")
        name_rows(axes, names)
    return figure


def _plain_ticks(limits: tuple[float, float], set_ticks: object) -> None:
    """1, 2, 5, 10... as plain numbers, few enough to stand side by side."""
    assert callable(set_ticks)
    steps = (1, 10, 100, 1000) if limits[1] / limits[0] > 30 else (1, 2, 5, 10, 20, 50)
    ticks = [step for step in (0.1, 0.2, 0.5, *steps) if limits[0] <= step <= limits[1]]
    set_ticks(ticks, [f"{step:g}" for step in ticks])
    set_ticks([], minor=True)
