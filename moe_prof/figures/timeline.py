"""What each thread does over the time of one forward: its phases, and waiting between them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from moe_prof.analysis.timelines import timeline_of
from moe_prof.figures import style
from moe_prof.kernels.info import PHASES
from moe_prof.measure.timeline import Timeline
from moe_prof.rows import Row
from moe_prof.units import time_scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_LANES = 16
"""Threads that a figure shows."""
WAITING = "waiting"


def timeline(rows: Iterable[Row], variant: str) -> Figure | None:
    """One lane a thread; None where the rows hold no timeline."""
    found = timeline_of(rows, variant)
    if found is None:
        return None
    lanes = found.threads[:MOST_LANES]
    seen = list(dict.fromkeys(step.phase for lane in lanes for step in lane))
    phases = [*(name for name in PHASES if name in seen), *(n for n in seen if n not in PHASES)]
    with style.look():
        lines = (len(phases) + 1 + 2) // 3
        figure = style.new_figure(style.bars_height_in(len(lanes), 0.6 + 0.17 * lines))
        axes = figure.subplots()
        _draw(axes, found, phases)
        style.name_rows(axes, [f"T{number}" for number in range(len(lanes))])
        style.legend_below(figure, axes, 3)
    return figure


def _draw(axes: Axes, found: Timeline, phases: list[str]) -> None:
    """The waiting ground first, then each phase's steps in its colour."""
    scale, unit = time_scale(found.wall_s)
    lanes = found.threads[:MOST_LANES]
    axes.barh(
        range(len(lanes)), [found.wall_s * scale] * len(lanes), height=0.72, color=style.GREY,
        alpha=0.35, label=WAITING, edgecolor="none",
    )  # fmt: skip
    colours = [colour for colour in style.CYCLE if colour != style.GREY]
    names = (*PHASES, *(name for name in phases if name not in PHASES))  # colours as in the others
    for phase in phases:
        colour = colours[names.index(phase) % len(colours)]
        for number, lane in enumerate(lanes):
            steps = [step for step in lane if step.phase == phase]
            axes.broken_barh(
                [(step.begin_s * scale, step.length_s * scale) for step in steps],
                (number - 0.36, 0.72), color=colour, linewidth=0,
                label=style.fitted_name(phase) if number == 0 else None,
            )  # fmt: skip
    axes.set_xlim(0, found.wall_s * scale)
    axes.set_xlabel(f"{unit} since the forward's begin")
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.tick_params(axis="x", length=2)
