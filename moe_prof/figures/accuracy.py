"""What one activation scale for all tokens costs, beside one for every token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from moe_prof.analysis.accuracy import SCHEMES, ScaleError
from moe_prof.figures import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLES = {"per_token": "a scale for each token", "shared": "one scale for all tokens"}


def scale_errors(errors: Sequence[ScaleError]) -> Figure | None:
    """Median relative error of a token by scheme and batch, on a logarithmic axis."""
    if not errors:
        return None
    with style.look():
        cases = list(dict.fromkeys(error.case for error in errors))
        figure = style.new_figure(style.bars_height_in(len(cases), 0.85))
        axes = figure.subplots()
        for scheme, colour, mark in zip(SCHEMES, (style.BLUE, style.VERMILION), "os", strict=True):
            found = {error.case: 100 * error.median_token for error in errors
                     if error.scheme == scheme}  # fmt: skip
            axes.plot(
                [found[case] for case in found], [cases.index(case) for case in found], mark,
                color=colour, label=TITLES[scheme], markersize=5,
            )  # fmt: skip
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.grid(axis="x")
        axes.set_xlabel("median relative error of a token, %")
        style.name_rows(axes, cases)
        style.legend_below(figure, axes, 1)
    return figure
