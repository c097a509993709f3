"""Speedups, and when there is none."""

import pytest

from moe_prof.analysis.speedup import NoRatio, distances, speedup_of
from moe_prof.measure import VariantTiming
from moe_prof.stats import Interval

QUIET = [1.0, 1.01, 1.02, 0.99, 1.0, 1.01, 1.0, 1.02]
WILD = [1.0, 1.0, 9.0, 9.0, 1.0, 9.0, 1.0, 1.0]


def timed(values, variant="packed", **changes):
    """A trusted timing of one process."""
    samples = {(0, index): value for index, value in enumerate(values)}
    return VariantTiming(**({"variant": variant, "status": "ok", "samples_s": samples} | changes))


def refused(timing, baseline):
    """Why there is no speedup."""
    found = speedup_of(timing, baseline)
    assert isinstance(found, NoRatio)
    return found


def test_a_ratio_with_its_interval():
    """Twice as fast."""
    found = speedup_of(timed(QUIET), timed([2 * v for v in QUIET], "scalar"))
    assert isinstance(found, Interval)
    assert found.value == pytest.approx(2.0)
    assert found.low is not None


@pytest.mark.parametrize("lone", ["packed", "scalar"])
def test_one_sample_gives_no_speedup(lone):
    """Neither of the variant nor of the baseline."""
    sides = {
        name: timed(QUIET[:1] if name == lone else QUIET, name) for name in ("packed", "scalar")
    }
    found = refused(sides["packed"], sides["scalar"])
    assert found == NoRatio(f"{lone}: one sample: no interval, so no speedup")


def test_the_baseline_against_itself():
    """One by definition, however few samples there are."""
    scalar = timed([2.0], "scalar")
    found = speedup_of(scalar, scalar)
    assert isinstance(found, Interval)
    assert found.value == 1.0


@pytest.mark.parametrize("noisy", ["packed", "scalar"])
def test_noise_gives_no_speedup(noisy):
    """An interval wider than the median, on either side."""
    sides = {name: timed(WILD if name == noisy else QUIET, name) for name in ("packed", "scalar")}
    found = refused(sides["packed"], sides["scalar"])
    assert found.noisy
    assert found.reason.startswith(f"too noisy: the interval of the time of {noisy} is +-")


def test_reasons_of_missing_times():
    """The variant's own first, then the baseline's."""
    wrong = timed(QUIET, status="wrong", reason="wrong result")
    assert refused(wrong, None).reason == "wrong result"
    assert refused(timed(QUIET), None).reason == "the baseline was not measured"
    assert "the baseline packed has no time: wrong" in refused(timed(QUIET, "a"), wrong).reason


def test_distance_is_told_by_the_paired_ratio():
    """Ten percent slower in every pair is separable although the machine drifts by half."""
    drift = [1.0 + 0.05 * index for index in range(10)]
    found = distances([timed(drift, "a"), timed([1.1 * v for v in drift], "b")])
    assert (found["a"].separable, found["b"].separable) == (False, True)
    assert found["b"].ratio.value == pytest.approx(1.1)


def test_overlapping_samples_are_not_separable():
    """The same times in another order."""
    found = distances([timed(QUIET, "a"), timed(QUIET[::-1], "b")])
    assert not found["a"].separable
    assert not found["b"].separable


@pytest.mark.parametrize(
    ("slow", "fast", "separable"),
    [(1, 1, False), (1, 18, False), (1, 19, True), (3, 3, True), (2, 5, True), (2, 4, False)],
)
def test_few_samples_are_told_apart_by_their_ranks(slow, fast, separable):
    """All above all others, which chance does in at most one of twenty cases."""
    found = distances([timed([5.0 + i for i in range(slow)], "a"), timed([1.0] * fast, "b")])
    assert found["a"].separable == separable


def test_wrong_variants_have_no_distance():
    """The fastest wrong answer is no yardstick."""
    assert set(distances([timed(QUIET, "a"), timed([0.1], "b", status="wrong")])) == {"a"}
