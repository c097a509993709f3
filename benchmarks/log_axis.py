"""Logarithmic axes of plots: plain numbers at 1, 2 and 5 times powers of ten."""

from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator


def label_plainly(axis: Axis) -> None:
    """Replace the powers of ten of a logarithmic axis, whose labels run into each other when it
    spans less than a decade or two."""
    axis.set_major_locator(LogLocator(10, (1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())
