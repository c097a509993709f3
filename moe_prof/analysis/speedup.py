"""Ratios of variants' times, and when there is no ground for one. Pure.

A ratio of single samples is no more than two numbers, and a median whose interval is wider than
itself says nothing: both give the reason in place of a speedup.

Whether two variants differ is read from the interval of their paired ratio. Where there are too few
samples for that, they differ if every sample of the one exceeds every sample of the other and
chance would do so in at most one of twenty cases (the exact rank-sum test, Mann and Whitney, Annals
of Mathematical Statistics 18, 1947: one of ``comb(n + m, n)`` orders).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from moe_prof.analysis.fastest import NOISY_HALF_WIDTH
from moe_prof.measure.results import VariantTiming
from moe_prof.stats import CONFIDENCE, Interval, Samples, median_interval, ratio_interval


@dataclass(frozen=True, slots=True)
class NoRatio:
    """Why there is none; ``noisy`` when the samples scatter too much."""

    reason: str
    noisy: bool = False


@dataclass(frozen=True, slots=True)
class Distance:
    """A variant against the fastest one: the ratio of times, and whether the samples tell it."""

    ratio: Interval
    separable: bool


def speedup_of(timing: VariantTiming, baseline: VariantTiming | None) -> Interval | NoRatio:
    """Baseline's time over the variant's, or the reason why there is none."""
    if not timing.trusted:
        return NoRatio(timing.reason or "no sample was taken")
    if baseline is None:
        return NoRatio("the baseline was not measured")
    refusal = _no_ground(timing, baseline)
    ratio = None if refusal else ratio_interval(baseline.samples_s, timing.samples_s)
    if ratio is None:
        return refusal or NoRatio("no sample was taken")
    half_width = _half_width(ratio)
    if half_width > NOISY_HALF_WIDTH:
        return NoRatio(_noisy("the ratio", half_width), noisy=True)
    return ratio


def distances(timings: Sequence[VariantTiming]) -> dict[str, Distance]:
    """Every trusted variant against the one with the lowest median."""
    trusted = {t.variant: t.samples_s for t in timings if t.trusted}
    medians = {
        variant: interval.value
        for variant, samples in trusted.items()
        if (interval := median_interval(samples)) is not None
    }
    if not medians:
        return {}
    best = min(medians, key=lambda variant: medians[variant])
    found = {}
    for variant, samples in trusted.items():
        ratio = ratio_interval(samples, trusted[best])
        if ratio is not None:
            found[variant] = Distance(
                ratio, variant != best and _separable(samples, ratio, best=trusted[best])
            )
    return found


def _no_ground(timing: VariantTiming, baseline: VariantTiming) -> NoRatio | None:
    """Why the samples of the two allow no ratio."""
    if not baseline.trusted:
        why = baseline.reason or "no sample"
        return NoRatio(f"the baseline {baseline.variant} has no time: {why}")
    for side in (timing, baseline):
        if len(side.samples_s) == 1 and timing.variant != baseline.variant:
            return NoRatio(f"{side.variant}: one sample: no interval, so no speedup")
        half_width = _half_width(median_interval(side.samples_s))
        if half_width > NOISY_HALF_WIDTH:
            return NoRatio(_noisy(f"the time of {side.variant}", half_width), noisy=True)
    return None


def _separable(samples: Samples, ratio: Interval, *, best: Samples) -> bool:
    if ratio.low is not None:
        return ratio.low > 1
    orders = math.comb(len(samples) + len(best), len(best))
    return min(samples.values()) > max(best.values()) and 1 / orders <= 1 - CONFIDENCE + 1e-12


def _half_width(interval: Interval | None) -> float:
    width = None if interval is None else interval.half_width
    return 0.0 if width is None else width


def _noisy(what: str, half_width: float) -> str:
    return f"too noisy: the interval of {what} is +-{100 * half_width:.0f} %"
