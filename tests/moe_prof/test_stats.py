"""Statistics: coverage, A/A and the detection of small changes on simulated timings."""

import math

import numpy as np
import pytest

from moe_prof.stats import (
    MIN_SAMPLES,
    Interval,
    cliffs_delta,
    keyed,
    median_interval,
    order_rank,
    ratio_interval,
)

TRIALS = 200
GAMMA_MEDIAN = 1.678347
"""Median of the gamma distribution with shape 2 and scale 1."""


def timings(generator, workers, rounds, *, scale=1.0, noise=0.02, layout=0.0, drift=None):
    """Right-skewed samples of one variant: per-worker layout effect, optional common drift."""
    samples = {}
    for worker in range(workers):
        shift = layout * generator.standard_normal()
        for index in range(rounds):
            skewed = generator.gamma(2.0) - GAMMA_MEDIAN
            common = 0.0 if drift is None else drift[worker, index]
            samples[worker, index] = scale * math.exp(
                noise / math.sqrt(2) * skewed + shift + common
            )
    return samples


def share_covered(workers, rounds, *, truth, make):
    """Share of trials in which the interval holds the truth."""
    hits = 0
    for trial in range(TRIALS):
        interval = make(np.random.default_rng(trial), workers, rounds)
        hits += interval.low <= truth <= interval.high
    return hits / TRIALS


def one_median(generator, workers, rounds):
    """Interval of the median of one variant."""
    return median_interval(timings(generator, workers, rounds))


def one_ratio(generator, workers, rounds):
    """Interval of a ratio whose truth is 2, with layout effects and a common drift."""
    drift = 0.05 * generator.standard_normal((workers, rounds))
    first = timings(generator, workers, rounds, scale=2.0, layout=0.003, drift=drift)
    second = timings(generator, workers, rounds, layout=0.003, drift=drift)
    return ratio_interval(first, second)


@pytest.mark.parametrize("rounds", [6, 15, 40])
def test_median_interval_of_one_worker_covers_95_percent(rounds):
    """Order statistics guarantee the confidence: at least 0.95 less the error of 200 trials."""
    assert 0.92 <= share_covered(1, rounds, truth=1.0, make=one_median) <= 1.0


@pytest.mark.parametrize(("workers", "rounds"), [(3, 3), (3, 15), (2, 10)])
def test_median_interval_of_several_workers_covers_95_percent(workers, rounds):
    """The hierarchical bootstrap covers about as often as it says."""
    assert 0.92 <= share_covered(workers, rounds, truth=1.0, make=one_median) <= 1.0


@pytest.mark.parametrize(("workers", "rounds"), [(1, 12), (3, 4), (3, 15)])
def test_ratio_interval_covers_95_percent(workers, rounds):
    """With layout effects and drift, the truth is inside in about 95 of 100 trials."""
    assert 0.92 <= share_covered(workers, rounds, truth=2.0, make=one_ratio) <= 1.0


def test_interval_is_not_trivially_wide():
    """The interval of 3 x 15 samples with 2 % noise is within 3 % of the ratio."""
    widths = [one_ratio(np.random.default_rng(t), 3, 15).half_width for t in range(20)]
    assert max(widths) < 0.06
    assert float(np.median(widths)) < 0.04


def test_pairing_cancels_common_drift():
    """A drift that both share is far larger than the resulting interval."""
    generator = np.random.default_rng(5)
    drift = 0.3 * generator.standard_normal((1, 40))
    first = timings(generator, 1, 40, noise=0.001, drift=drift)
    second = timings(generator, 1, 40, noise=0.001, drift=drift)
    assert ratio_interval(first, second).half_width < 0.005


def test_ratio_is_that_of_the_medians():
    """The estimate is the quotient of the printed medians."""
    first, second = keyed([1.0, 4.0, 9.0]), keyed([1.0, 2.0, 3.0])
    assert ratio_interval(first, second).value == 2.0


def test_samples_without_partner_still_count():
    """A baseline of six rounds is compared with all 60 samples of the fast variant."""
    generator = np.random.default_rng(3)
    fast = timings(generator, 3, 20)
    slow = {k: v for k, v in timings(generator, 3, 20, scale=50.0).items() if k[1] in (3, 13)}
    interval = ratio_interval(slow, fast)
    assert interval.n == 6
    assert interval.low < 50 < interval.high


def test_baseline_of_one_worker_only_has_an_interval():
    """Draws without that worker are left out instead of spoiling the interval."""
    generator = np.random.default_rng(4)
    fast = timings(generator, 3, 10)
    slow = timings(generator, 1, 10, scale=5.0)
    interval = ratio_interval(slow, fast)
    assert 4.5 < interval.low < interval.value < interval.high < 5.5


def test_few_samples_give_no_interval():
    """Five samples: a median, no interval, and the reason."""
    assert median_interval(keyed([1.0, 2.0, 3.0, 4.0, 5.0])) == Interval(
        3.0, None, None, 5, "none", "5 samples; an interval needs at least 6"
    )


def test_no_samples_give_nothing():
    """Missing is None, never 0."""
    assert median_interval({}) is None
    assert ratio_interval({}, keyed([1.0])) is None


def test_six_samples_use_their_whole_range():
    """The smallest sample with a 95 % interval."""
    interval = median_interval(keyed([6.0, 1.0, 2.0, 5.0, 3.0, 4.0]))
    assert (interval.low, interval.value, interval.high) == (1.0, 3.5, 6.0)


@pytest.mark.parametrize(("count", "rank"), [(5, -1), (6, 0), (9, 1), (20, 5), (100, 39)])
def test_order_rank_matches_published_tables(count, rank):
    """Ranks (one less than the 1-based ones of the usual tables of the sign test)."""
    assert order_rank(count) == rank
    assert (rank >= 0) == (count >= MIN_SAMPLES)


def test_same_seed_gives_the_same_interval():
    """A report is reproducible."""
    generator = np.random.default_rng(9)
    first, second = timings(generator, 3, 5), timings(generator, 3, 5)
    assert ratio_interval(first, second) == ratio_interval(first, second)


@pytest.mark.parametrize(
    ("first", "second", "delta"),
    [([3, 4], [1, 2], 1.0), ([1, 2], [3, 4], -1.0), ([1, 2], [1, 2], 0.0), ([2], [1, 2], 0.5)],
)
def test_cliffs_delta_counts_dominance(first, second, delta):
    """Hand-counted pairs."""
    assert cliffs_delta(first, second) == delta


def test_cliffs_delta_needs_samples():
    """Nothing to compare is an error, not 0."""
    with pytest.raises(ValueError, match="both sides"):
        cliffs_delta([], [1.0])
