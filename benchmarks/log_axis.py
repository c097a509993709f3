"""Logarithmic axes of plots: plain numbers instead of powers of ten."""

from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator


def label_plainly(axis: Axis) -> None:
    """Label a logarithmic axis, what it shows being plotted, so that it has several labels and none
    runs into the next."""
    low, high = axis.get_view_interval()
    steps = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0) if high < 10.0 * low else (1.0, 2.0, 5.0)
    axis.set_major_locator(LogLocator(10, steps))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())
