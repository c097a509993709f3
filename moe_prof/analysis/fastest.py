"""Which variant is the fastest, as far as the samples can tell. Pure functions on tidy rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from moe_prof.analysis.query import RowIndex

RATIO, SLOWER = "time_over_fastest", "slower_than_fastest"
"""Metrics: the median over the lowest one, paired; and whether the two are separable (1) or not."""
NOISY_HALF_WIDTH = 1.0
"""Half of an interval's width over its median, beyond which a figure says nothing."""


@dataclass(frozen=True, slots=True)
class Leaders:
    """The front of the field.

    Attributes:
        names: the variant with the lowest median, then those that cannot be told from it.
        time_s: that median.
        noisy: its interval is wider than its value.
    """

    names: tuple[str, ...]
    time_s: float
    noisy: bool


def leaders(index: RowIndex, variants: Sequence[str]) -> Leaders | None:
    """The fastest variants; None where nothing was timed."""
    timed = [(t, v) for v in variants if (t := index.value(v, "time")) is not None]
    if not timed:
        return None
    time_s, best = min(timed)
    equal = [v for _, v in sorted(timed) if v != best and index.value(v, SLOWER) == 0]
    half_width = time_half_width(index, best)
    noisy = half_width is not None and half_width > NOISY_HALF_WIDTH
    return Leaders((best, *equal), time_s, noisy)


def time_half_width(index: RowIndex, variant: str) -> float | None:
    """Half of the width of the time's interval over the median; None without an interval."""
    value = index.value(variant, "time")
    low, high = index.value(variant, "time_ci_low"), index.value(variant, "time_ci_high")
    if not value or low is None or high is None:
        return None
    return (high - low) / (2 * value)


def too_early_to_tell(index: RowIndex, variants: Sequence[str]) -> str:
    """Why several variants lead: single samples, or intervals that overlap."""
    counts = [row.n for v in variants if (row := index.row(v, "time")) is not None]
    if counts and max(count or 0 for count in counts) == 1:
        return "one sample each has no interval"
    return "the interval of their paired ratio contains 1, or there are too few samples for one"
