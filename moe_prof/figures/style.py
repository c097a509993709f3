"""The look that all figures share: narrow enough for a phone, colours that all eyes tell apart.

Text and lines have two placeholder colours, which :mod:`moe_prof.figures.svg` replaces by those of
the page, light or dark. Names come from outside, so that ``$`` must not begin a formula.

Source of the palette: M. Okabe and K. Ito, Color Universal Design, 2008.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH_IN = 3.6
BAR_IN = 0.27
"""Height of one horizontal bar with its gap."""
TEXT_POINTS = 8.0
LONGEST_NAME = 20

INK, LINE = "#1b1f24", "#8c8f94"
"""Colours of text and of lines; a page replaces them by its own."""

BLUE, SKY, GREEN, ORANGE = "#0072b2", "#56b4e9", "#009e73", "#e69f00"
VERMILION, PURPLE, YELLOW, GREY = "#d55e00", "#cc79a7", "#f0e442", "#9aa0a6"
CYCLE = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, YELLOW, GREY)

_SETTINGS: dict[Any, Any] = {  # matplotlib types each key as a literal
    "text.parse_math": False,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": LINE,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": LINE,
    "grid.linewidth": 0.4,
    "grid.alpha": 0.5,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "font.size": TEXT_POINTS,
    "axes.titlesize": TEXT_POINTS,
    "axes.labelsize": TEXT_POINTS,
    "xtick.labelsize": TEXT_POINTS,
    "ytick.labelsize": TEXT_POINTS,
    "legend.fontsize": TEXT_POINTS,
    "legend.frameon": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "svg.fonttype": "none",
    "svg.hashsalt": "moe_prof",
}


@contextmanager
def look() -> Iterator[None]:
    """Figures made and written in this block have the look of all."""
    import matplotlib as mpl  # noqa: PLC0415  (slow to import, and few commands draw)

    with mpl.rc_context(_SETTINGS):
        yield


def new_figure(height_in: float) -> Figure:
    """An empty figure; call it inside :func:`look`."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    return Figure(figsize=(WIDTH_IN, height_in), layout="constrained")


def bars_height_in(bars: int, extra_in: float) -> float:
    """Height of a figure of horizontal bars, with room for axis and legend."""
    return bars * BAR_IN + extra_in


def name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Names beside horizontal bars, the first one on top."""
    axes.set_yticks(range(len(names)), [fitted_name(name) for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)


def fitted_name(name: str) -> str:
    """A name that leaves room for the bars, without what cannot be drawn."""
    text = "".join(c if c.isprintable() else "?" for c in " ".join(name.split()))
    return text if len(text) <= LONGEST_NAME else f"{text[: LONGEST_NAME - 1]}…"


def known(value: float | None) -> float | None:
    """The value where it can be drawn: a missing or infinite one cannot."""
    return value if value is not None and abs(value) < _LARGEST else None


def stacked_bars(
    axes: Axes, bars: Sequence[Mapping[str, float]], colours: Mapping[str, str]
) -> None:
    """One horizontal bar of shares (0..1) a row, with the percentage in parts that have room."""
    left = [0.0] * len(bars)
    for part, colour in colours.items():
        shares = [bar.get(part, 0.0) for bar in bars]
        drawn = axes.barh(
            range(len(bars)), [100 * share for share in shares], left=left, height=0.72,
            color=colour, label=f" {part}" if part.startswith("_") else part, edgecolor="none",
        )  # fmt: skip
        labels = [f"{100 * share:.0f}" if share >= _ROOM else "" for share in shares]
        for text in axes.bar_label(drawn, labels, label_type="center", color=_ink_on(colour)):
            text.set_fontsize(TEXT_POINTS - 0.5)
        left = [at + 100 * share for at, share in zip(left, shares, strict=True)]
    axes.set_xlim(0, max([100.0, *left]))
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.tick_params(axis="x", length=0)


def legend_below(figure: Figure, axes: Axes, columns: int) -> None:
    """The legend under the axis, in columns."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=columns, handlelength=0.9,
        handleheight=0.9, columnspacing=1.0, handletextpad=0.4,
    )  # fmt: skip


def lighter(colour: str, share: float) -> str:
    """The colour mixed with white."""
    mixed = (round(part + (255 - part) * share) for part in _channels(colour))
    return "#" + "".join(f"{part:02x}" for part in mixed)


_ROOM = 0.08
_LARGEST = 1e100


def _ink_on(colour: str) -> str:
    """Black or white, whichever stands out more (luminance of ITU-R BT.709)."""
    red, green, blue = _channels(colour)
    return "#000000" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 110 else "#ffffff"


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
