"""The top-down tree as stacked bars: level 2 where a node's parts are known, else level 1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from moe_prof.analysis.query import RowIndex
from moe_prof.figures import style
from moe_prof.rows import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NODES: Mapping[str, str] = {
    "Retiring": style.GREEN,
    "Bad_Speculation": style.VERMILION,
    "Frontend_Bound": style.ORANGE,
    "Backend_Bound": style.BLUE,
    "SMT_Contention": style.GREY,
}
"""Nodes of level 1 and their colours; parts take lighter shades."""
_SHADES = (0.0, 0.45, 0.65, 0.8)


def slot_shares(index: RowIndex, variant: str) -> dict[str, float]:
    """Fractions of slots by node: the parts of a node where all are known, else the node."""
    found: dict[str, float] = {}
    for node in NODES:
        whole = style.known(index.value(variant, node))
        if whole is None:
            continue
        names = [
            n for n in index.metrics(variant) if n.startswith(f"{node}.") and n.count(".") == 1
        ]
        parts = {name: style.known(index.value(variant, name)) for name in names}
        known = {name: value for name, value in parts.items() if value is not None}
        found |= known if known and len(known) == len(parts) else {node: whole}
    return found


def slots(rows: Iterable[Row], variants: Sequence[str] | None = None) -> Figure | None:
    """One bar a variant, in percent of issue slots."""
    index = RowIndex(rows)
    found = {name: slot_shares(index, name) for name in variants or index.variants}
    found = {name: shares for name, shares in found.items() if shares}
    if not found:
        return None
    parts = {part for shares in found.values() for part in shares}
    colours = {part: colour for part, colour in _colours(parts).items() if part in parts}
    with style.look():
        lines = (len(colours) + 1) // 2
        figure = style.new_figure(style.bars_height_in(len(found), 0.6 + 0.17 * lines))
        axes = figure.subplots()
        shown = [{short(k): v for k, v in shares.items()} for shares in found.values()]
        style.stacked_bars(axes, shown, {short(part): c for part, c in colours.items()})
        style.name_rows(axes, [_label(index, name) for name in found])
        axes.set_xlabel("% of issue slots")
        style.legend_below(figure, axes, 2)
    return figure


def _label(index: RowIndex, variant: str) -> str:
    """The variant, with the path whose slots are shown where it is not the one that was timed."""
    path = index.text(variant, "modelled_isa")
    return f"{variant} ({path})" if path else variant


def short(node: str) -> str:
    """The last part of a node's name, as words."""
    return node.rpartition(".")[2].replace("_", " ")


def _colours(parts: Iterable[str]) -> dict[str, str]:
    """Colours in the tree's order."""
    made: dict[str, str] = {}
    for node, colour in NODES.items():
        below = sorted(part for part in parts if part.startswith(f"{node}."))
        made[node] = style.lighter(colour, _SHADES[-1]) if below else colour
        for number, part in enumerate(below):
            made[part] = style.lighter(colour, _SHADES[min(number, len(_SHADES) - 1)])
    return made
