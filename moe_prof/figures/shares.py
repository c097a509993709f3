"""Where the work goes: by phase of the forward, and busy or waiting by thread."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from moe_prof.analysis.phase_shares import phase_shares
from moe_prof.analysis.query import RowIndex
from moe_prof.figures import style
from moe_prof.rows import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_THREADS = 32
"""Bars of threads that a figure shows; a table holds all."""


def phases(rows: Iterable[Row], variants: Sequence[str] | None = None) -> Figure | None:
    """One bar a variant: percent of its working time, or of its instructions, by phase."""
    index = RowIndex(rows)
    known = {name: phase_shares(index, name) for name in variants or index.variants}
    found = {name: shares.shares for name, shares in known.items() if shares is not None}
    if not found:
        return None
    whole = " or ".join(dict.fromkeys(s.whole for s in known.values() if s is not None))
    names = list(dict.fromkeys(phase for shares in found.values() for phase in shares))
    colours = {
        style.fitted_name(name): style.CYCLE[at % len(style.CYCLE)] for at, name in enumerate(names)
    }
    with style.look():
        lines = (len(names) + 2) // 3
        figure = style.new_figure(style.bars_height_in(len(found), 0.6 + 0.17 * lines))
        axes = figure.subplots()
        bars = [
            {style.fitted_name(phase): share for phase, share in shares.items()}
            for shares in found.values()
        ]
        style.stacked_bars(axes, bars, colours)
        style.name_rows(axes, list(found))
        axes.set_xlabel(f"% of {whole}")
        style.legend_below(figure, axes, 3)
    return figure


def threads(rows: Iterable[Row], variants: Sequence[str] | None = None) -> Figure | None:
    """One bar a thread of each variant: busy and waiting, in percent of the forward."""
    index = RowIndex(rows)
    bars: list[dict[str, float]] = []
    names: list[str] = []
    for variant in variants or index.variants:
        busy, wait = (index.by_thread(variant, metric) for metric in ("busy_time", "wait_time"))
        for thread, busy_s in busy.items():
            whole = style.known(busy_s + wait.get(thread, 0.0))
            if whole and whole > 0 and len(busy) > 1:
                bars.append({"busy": busy_s / whole, "waiting": wait.get(thread, 0.0) / whole})
                name = f"T{thread}" if thread.isdecimal() else thread
                names.append(f"{style.fitted_name(variant)[:16]} {name}")
    if not bars:
        return None
    bars, names = bars[:MOST_THREADS], names[:MOST_THREADS]
    with style.look():
        figure = style.new_figure(style.bars_height_in(len(bars), 0.75))
        axes = figure.subplots()
        style.stacked_bars(axes, bars, {"busy": style.BLUE, "waiting": style.ORANGE})
        style.name_rows(axes, names)
        axes.set_xlabel("% of the forward")
        style.legend_below(figure, axes, 2)
    return figure
