"""The decision faster/slower/same/too noisy: hundreds of simulated comparisons, and its rules."""

from collections import Counter

import pytest

from moe_prof.analysis.decision import LOOK_CONFIDENCE, exceeds, settled, time_ratio, verdict
from moe_prof.stats import Interval, keyed
from tests.moe_prof.analysis.timings import NOISES, two_sides

RUNS = 100


def said(noise, *, paired=True, **options):
    """How often each verdict is given in so many runs."""
    counts = Counter()
    for seed in range(RUNS):
        old, new = two_sides(seed, noise, **options)
        counts[verdict(time_ratio(old, new, same_run=paired).interval)] += 1
    return counts


@pytest.mark.parametrize("noise", NOISES)
def test_same_code_twice_is_the_same(noise):
    """A/A, paired: at least 95 of 100 runs say so, whatever the noise."""
    assert said(noise)["same"] >= 95


def said_with_stopping(noise, *, first=3, most=6, **options):
    """The same where processes are added until the verdict is settled; also how many, at most."""
    counts, used = Counter(), []
    for seed in range(RUNS):
        old, new = two_sides(seed, noise, processes=most, **options)
        for processes in range(first, most + 1):
            sides = [{k: v for k, v in side.items() if k[0] < processes} for side in (old, new)]
            if settled(*sides):
                break
        counts[verdict(time_ratio(*sides, same_run=True).interval)] += 1
        used.append(processes)
    return counts, used


ZEN4_S1 = {"placement": 0.018, "level": 0.01}
"""Measured there: plans prepared anew scatter by 2.6 % of their ratio, samples by 1.4 % of it."""
KEPT = {"layout": 0.0055, "level": 0.01, "most": 12}
"""Measured there with plans that keep their memory: processes scatter by 0.76 % of the ratio."""
KEPT_MORE = {"layout": 0.007, "level": 0.01, "most": 12}
"""Processes that scatter by 1 %."""


@pytest.mark.parametrize(
    ("noise", "scatter"), [("outliers", ZEN4_S1), ("outliers", KEPT), ("normal", KEPT_MORE)]
)
def test_same_code_is_the_same_with_the_scatter_that_was_measured(noise, scatter):
    """At least 95 of 100, although the run looks at its verdict after every process."""
    counts, used = said_with_stopping(noise, **scatter)
    assert counts["same"] >= 95
    assert max(used) <= scatter.get("most", 6)


@pytest.mark.parametrize("scatter", [ZEN4_S1, KEPT, KEPT_MORE])
def test_three_percent_are_found_with_the_scatter_that_was_measured(scatter):
    """In the first processes mostly."""
    counts, used = said_with_stopping("outliers", ratio=1.03, **scatter)
    assert counts["slower"] >= 95
    assert sum(count == 3 for count in used) >= 60


def test_processes_that_scatter_more_than_assumed_seldom_mislead():
    """1.5 %, twice the assumed: looking again and again makes about one in ten wrong."""
    counts, _ = said_with_stopping("normal", layout=0.0106, most=12)
    assert counts["faster"] + counts["slower"] <= 10


def test_a_verdict_is_settled_only_with_more_confidence():
    """Some runs of equal code say ``same`` with 95 % and are not settled; none without samples."""
    same, clear = 0, 0
    for seed in range(20):
        old, new = two_sides(seed, "normal", placement=0.018)
        found = time_ratio(old, new, same_run=True).interval
        wide = time_ratio(old, new, same_run=True, confidence=LOOK_CONFIDENCE).interval
        assert wide.half_width > 1.3 * found.half_width
        assert settled(old, new) == (verdict(wide) != "too noisy")
        same += verdict(found) == "same"
        clear += settled(old, new)
    assert clear < same
    assert not settled({}, new)


def test_a_limit_has_to_be_settled_too():
    """2.5 % slower is slower, but whether by more than 2.4 % stays open."""
    old, new = two_sides(5, "normal", ratio=1.025)
    assert settled(old, new)
    assert not settled(old, new, limit=0.024)
    assert settled(old, new, limit=0.1)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(("ratio", "word"), [(1.03, "slower"), (1 / 1.03, "faster")])
def test_three_percent_are_found(noise, ratio, word):
    """In at least 95 of 100 runs, and never taken for the opposite."""
    counts = said(noise, ratio=ratio)
    assert counts[word] >= 95
    assert set(counts) <= {word, "same", "too noisy"}


def test_two_runs_of_the_same_code_are_the_same():
    """Unpaired, on a machine that did not change between them."""
    assert said("normal", paired=False)["same"] >= 95


def test_two_runs_tell_three_percent():
    """Unpaired as well."""
    assert said("normal", paired=False, ratio=1.03)["slower"] >= 95


def test_layouts_beyond_the_assumed_are_seen_by_more_processes():
    """Processes that scatter by three times what is assumed: 12 of them hardly ever mislead."""
    counts = said("normal", layout=0.015, processes=12)
    assert counts["faster"] + counts["slower"] <= 8


def test_drift_that_is_not_shared_is_too_noisy_and_not_a_change():
    """Unpaired samples on a drifting machine: the processes show it."""
    counts = said("drifting", paired=False)
    assert counts["faster"] + counts["slower"] <= 10


def test_noise_is_called_noise():
    """30 % of scatter: no verdict on equal code."""
    counts = said("normal", level=0.3)
    assert counts["too noisy"] >= 85
    assert counts["same"] == 0


def test_one_process_claims_no_more_than_its_layout_allows():
    """A hundred quiet rounds of one process still leave +-1 % open."""
    old, new = two_sides(0, "normal", processes=1, rounds=100, layout=0.0, level=1e-4)
    assert time_ratio(old, new, same_run=True).interval.half_width > 0.01


def test_samples_of_different_processes_have_an_interval():
    """Six imported files a side: only their own scatter counts."""
    old = {(process, 0): value for process, value in enumerate((10, 11, 10, 10, 11, 10))}
    new = {(process, 0): 2.0 * value for (process, _), value in old.items()}
    found = time_ratio(old, new, same_run=False)
    assert found.interval.low < 2 < found.interval.high
    assert found.interval.half_width < 0.15
    assert found.effect == 1.0


def test_pairing_needs_rounds_in_common():
    """Other keys of the same run are no pairs."""
    old, new = two_sides(1, "normal")
    shifted = {(process, index + 100): value for (process, index), value in new.items()}
    assert time_ratio(old, new, same_run=True).paired
    assert not time_ratio(old, shifted, same_run=True).paired
    assert not time_ratio(old, new, same_run=False).paired


def test_few_samples_give_a_ratio_without_interval():
    """Five a side: the medians' ratio and the reason."""
    found = time_ratio(keyed([1.0] * 5), keyed([2.0] * 5), same_run=True)
    assert (found.interval.value, found.interval.low) == (2.0, None)
    assert "needs at least 6" in found.interval.reason
    assert found.paired


def test_no_samples_give_nothing():
    """Missing is None."""
    assert time_ratio({}, keyed([1.0]), same_run=True) is None


def test_the_interval_holds_the_ratio_that_is_told():
    """One process of four is disturbed: the median stays, the interval reaches to both."""
    old, new = two_sides(3, "normal", processes=4)
    new = {key: value * (3 if key[0] == 0 else 1) for key, value in new.items()}
    found = time_ratio(old, new, same_run=True).interval
    assert found.value == pytest.approx(1, abs=0.02)
    assert found.low <= found.value <= found.high
    assert verdict(found) == "too noisy"


def test_equal_samples_have_an_interval():
    """A clock too coarse to see anything: the ratio is 1, and layouts remain."""
    found = time_ratio(keyed([1.0] * 6), keyed([1.0] * 6), same_run=True).interval
    assert found.low < 1 == found.value < found.high


def test_a_widened_ratio_reaches_further_to_both_sides():
    """By the same factor, whichever way the baseline went."""
    old, new = two_sides(4, "normal")
    plain = time_ratio(old, new, same_run=True)
    for drift in (1.25, 0.8):
        stretched = plain.widened(drift).interval
        assert stretched.low == pytest.approx(plain.interval.low / 1.25)
        assert stretched.high == pytest.approx(plain.interval.high * 1.25)


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        (1.03, 1.05, "slower"), (0.95, 0.97, "faster"), (0.99, 1.01, "same"),
        (1.001, 1.019, "same"), (0.985, 0.995, "same"), (0.9, 1.1, "too noisy"),
        (0.99, 1.03, "too noisy"), (1.001, 1.03, "slower"), (None, None, "too noisy"),
    ],
)  # fmt: skip
def test_verdict(low, high, word):
    """The rules of the docstring, with the default margin of 2 %."""
    assert verdict(Interval(1.0, low, high, 20, "bootstrap")) == word


def test_a_wider_margin_calls_more_the_same():
    """``--margin 10%``."""
    assert verdict(Interval(1.05, 1.03, 1.07, 20, "bootstrap"), margin=0.1) == "same"


@pytest.mark.parametrize(
    ("low", "high", "answer"),
    [(1.04, 1.06, True), (1.0, 1.02, False), (1.02, 1.05, None), (0.5, 2.0, None),
     (None, None, None), (0.8, 0.9, False)],
)  # fmt: skip
def test_exceeding_a_limit(low, high, answer):
    """By more than 3 %: only where the interval lies on one side of it."""
    assert exceeds(Interval(1.0, low, high, 20, "bootstrap"), 0.03) is answer
