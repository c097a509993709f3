"""Statistics of repeated timings: intervals, ratios and effect size. Pure.

Timings have a hierarchy: a process (worker) has its own memory layout, and the rounds inside one
share it. So a sample is keyed by ``(worker, round)``, and two variants measured in the same round
are a pair: what disturbed the machine in that round disturbed both.

Methods:

* one worker: the interval of the median is the distribution-free one of order statistics, from the
  binomial distribution of how many samples lie below the median (David, Nagaraja: Order
  Statistics, 3rd edition, section 7.1);
* several workers, and every ratio: a percentile bootstrap that draws workers first and then rounds
  inside each (Davison, Hinkley: Bootstrap Methods and their Application, section 3.8), always both
  members of a pair together. Kalibera and Jones (Rigorous Benchmarking in Reasonable Time, 2013)
  explain why the levels must not be mixed.

Timings are skewed, so medians are compared and not means. Below six samples no 95 % interval is
given: even the whole range of five covers the median in only 94 % of the cases.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from moe_prof.units import plural_text

F64 = npt.NDArray[np.float64]
Key = tuple[int, int]
"""(worker, round) of a sample."""
Samples = Mapping[Key, float]
Method = Literal["order statistics", "bootstrap", "moderated t", "none"]

CONFIDENCE = 0.95
MIN_SAMPLES = 6
"""Fewest samples with a 95 % interval: 1 - 2 * 2**-6 = 0.969, and one less gives 0.938."""
BOOTSTRAP_DRAWS = 4000


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its confidence interval.

    Attributes:
        value: the estimate.
        low / high: the interval's ends, None when it cannot be given.
        n: samples (of a ratio: of the side that has fewer).
        method: how the interval was found.
        reason: why there is none.
    """

    value: float
    low: float | None
    high: float | None
    n: int
    method: Method
    reason: str = ""

    @property
    def half_width(self) -> float | None:
        """Half of the interval's width as a fraction of the estimate."""
        if self.low is None or self.high is None:
            return None
        return (self.high - self.low) / (2 * abs(self.value))


def keyed(values: Sequence[float], worker: int = 0) -> dict[Key, float]:
    """Values of one worker, in the order of their rounds."""
    return {(worker, index): value for index, value in enumerate(values)}


def median_interval(
    samples: Samples, *, confidence: float = CONFIDENCE, seed: int = 0
) -> Interval | None:
    """The median of ``samples`` with its interval; None without samples.

    Source: order statistics or the bootstrap of the module's text.
    """
    if not samples:
        return None
    values = np.array(list(samples.values()))
    median, count = float(np.median(values)), len(values)
    if count < MIN_SAMPLES:
        return Interval(median, None, None, count, "none", too_few_text(count))
    if len({worker for worker, _ in samples}) == 1:
        below = order_rank(count, confidence)
        ordered = np.sort(values)
        low, high = float(ordered[below]), float(ordered[count - 1 - below])
        return Interval(median, low, high, count, "order statistics")
    (medians,) = _bootstrap((samples,), seed)
    low, high = _percentiles(medians, confidence)
    return Interval(median, low, high, count, "bootstrap")


def order_rank(count: int, confidence: float = CONFIDENCE) -> int:
    """Index r such that sorted samples r and count-1-r enclose the median with ``confidence``.

    r is the largest index with P(Binomial(count, 1/2) <= r) <= (1 - confidence) / 2, hence the
    coverage is at least the one asked for; -1 when even the whole range covers less.
    """
    rank, below = -1, 0
    while True:
        below += math.comb(count, rank + 1)  # in units of 2**-count, exact
        if below / 2**count > (1 - confidence) / 2:
            return rank
        rank += 1


def ratio_interval(
    numerator: Samples,
    denominator: Samples,
    *,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> Interval | None:
    """median(numerator) / median(denominator) with its interval; None when one has no samples.

    Samples with the same key are drawn together, so that a disturbance common to both cancels; a
    sample without partner (a slow baseline is measured in fewer rounds) still counts on its side.

    Source: the bootstrap of the module's text.
    """
    if not numerator or not denominator:
        return None
    value = float(np.median(list(numerator.values())) / np.median(list(denominator.values())))
    count = min(len(numerator), len(denominator))
    if count < MIN_SAMPLES:
        return Interval(value, None, None, count, "none", too_few_text(count))
    above, below = _bootstrap((numerator, denominator), seed)
    low, high = _percentiles(above / below, confidence)
    return Interval(value, low, high, count, "bootstrap")


def cliffs_delta(first: Sequence[float], second: Sequence[float]) -> float:
    """How often a value of ``first`` exceeds one of ``second`` minus how often it is less: -1..1.

    An effect size that no outlier moves: 0 means no difference, 1 that every value of ``first`` is
    the larger. Source: Cliff, Dominance statistics, Psychological Bulletin 114, 1993.

    Raises:
        ValueError: one of the two is empty.
    """
    if not len(first) or not len(second):
        raise ValueError("an effect size needs samples on both sides")
    ordered = np.sort(np.asarray(second, dtype=np.float64))
    values = np.asarray(first, dtype=np.float64)
    less = np.searchsorted(ordered, values, side="left").sum()
    greater = (len(ordered) - np.searchsorted(ordered, values, side="right")).sum()
    return float(less - greater) / (len(values) * len(ordered))


def too_few_text(count: int) -> str:
    """Why so few samples have no interval."""
    return f"{plural_text(count, 'sample')}; an interval needs at least {MIN_SAMPLES}"


def _percentiles(values: F64, confidence: float) -> tuple[float, float]:
    tail = (1 - confidence) / 2
    low, high = np.nanquantile(values, [tail, 1 - tail])
    return float(low), float(high)


def _bootstrap(sides: tuple[Samples, ...], seed: int) -> tuple[F64, ...]:
    """Medians of each side over the draws, (BOOTSTRAP_DRAWS,) each; NaN where a draw has none."""
    tables = _tables(sides)
    generator = np.random.default_rng(seed)
    chosen = generator.integers(0, len(tables), (BOOTSTRAP_DRAWS, len(tables)))
    widest = max(table.shape[1] for table in tables)
    drawn = np.full((len(sides), BOOTSTRAP_DRAWS, len(tables), widest), np.nan)
    for slot in range(len(tables)):
        for index, table in enumerate(tables):
            (draws,) = np.nonzero(chosen[:, slot] == index)
            rounds = _drawn_rounds(table, len(draws), generator)
            drawn[:, draws, slot, : table.shape[1]] = table[:, rounds]
    return tuple(_row_medians(side.reshape(BOOTSTRAP_DRAWS, -1)) for side in drawn)


def _tables(sides: tuple[Samples, ...]) -> list[F64]:
    """Per worker a table (sides, rounds) of samples, NaN where a side lacks a round."""
    keys = sorted(set().union(*sides))
    tables = []
    for worker in sorted({worker for worker, _ in keys}):
        rounds = [key for key in keys if key[0] == worker]
        tables.append(np.array([[side.get(key, np.nan) for key in rounds] for side in sides]))
    return tables


def _drawn_rounds(table: F64, draws: int, generator: np.random.Generator) -> npt.NDArray[np.intp]:
    """Rounds drawn with replacement, (draws, rounds): each from those with the same sides present.

    Otherwise a draw could hold no sample of a side that was measured in a few rounds only.
    """
    present = ~np.isnan(table)
    rounds = np.empty((draws, table.shape[1]), np.intp)
    for pattern in np.unique(present, axis=1).T:
        (members,) = np.nonzero((present == pattern[:, None]).all(axis=0))
        rounds[:, members] = members[generator.integers(0, len(members), (draws, len(members)))]
    return rounds


def _row_medians(values: F64) -> F64:
    """Median of each row, NaN left out; a row of NaN gives NaN."""
    ordered = np.sort(values, axis=1)
    count = (~np.isnan(ordered)).sum(axis=1)
    rows = np.arange(len(ordered))
    low, high = ordered[rows, np.maximum(count - 1, 0) // 2], ordered[rows, count // 2]
    return np.where(count > 0, (low + high) / 2, np.nan)
