"""Counters of variants side by side: one small panel of bars a metric."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from moe_prof.analysis.query import RowIndex
from moe_prof.figures import style
from moe_prof.rows import Row
from moe_prof.units import count_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METRICS = (
    "instructions", "cycles", "IPC", "branch-misses", "branch_mispredictions", "cache-references",
    "cache-misses", "l1d_misses", "ll_misses",
)  # fmt: skip
"""Those that are shown, unless others are asked for."""
_PANEL_COLUMNS = 2


def counters(
    rows: Iterable[Row],
    variants: Sequence[str] | None = None,
    metrics: Sequence[str] = METRICS,
) -> Figure | None:
    """Bars from 0 by variant, a panel for each metric that any variant has."""
    index = RowIndex(rows)
    names = list(variants or index.variants)
    found = {
        metric: [style.known(index.value(name, metric)) for name in names] for metric in metrics
    }
    found = {metric: values for metric, values in found.items() if any(v for v in values)}
    names_known = [
        at for at in range(len(names)) if any(values[at] is not None for values in found.values())
    ]
    if not found or not names_known:
        return None
    with style.look():
        lines = -(-len(found) // _PANEL_COLUMNS)
        height = lines * style.bars_height_in(len(names_known), 0.28)
        figure = style.new_figure(height + 0.05)
        panels = figure.subplots(lines, _PANEL_COLUMNS, sharey=True, squeeze=False).flatten()
        for panel, (metric, values) in zip(panels, found.items(), strict=False):
            shown = [values[at] for at in names_known]
            bars = panel.barh(
                range(len(shown)), [v or 0.0 for v in shown], height=0.7, color=style.SKY
            )
            labels = ["-" if value is None else count_text(value) for value in shown]
            panel.bar_label(bars, labels, padding=2)
            panel.set_title(metric, loc="left")
            panel.set_xlim(0, 1.7 * max(value or 0.0 for value in shown))
            panel.set_xticks([])
            panel.spines[["left", "bottom"]].set_visible(False)
            style.name_rows(panel, [names[at] for at in names_known])
        for panel in panels[len(found) :]:
            panel.set_visible(False)
    return figure
