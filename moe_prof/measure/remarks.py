"""What a reader should know before trusting the times: one line each, with its remedy. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from moe_prof.measure.results import VariantTiming
from moe_prof.stats import MIN_SAMPLES, median_interval

WIDE_HALF_WIDTH = 0.1


def remarks(timings: Sequence[VariantTiming]) -> list[str]:
    """All that apply."""
    trusted = [timing for timing in timings if timing.trusted]
    return [line for line in (_wide(trusted), _few(trusted)) if line]


def _wide(timings: Sequence[VariantTiming]) -> str:
    names = []
    for timing in timings:
        interval = median_interval(timing.samples_s)
        half_width = None if interval is None else interval.half_width
        if half_width is not None and half_width > WIDE_HALF_WIDTH:
            names.append(timing.variant)
    if not names:
        return ""
    return (
        f"intervals wider than +-{100 * WIDE_HALF_WIDTH:.0f} %: {', '.join(names)}; "
        "measure longer with --max-time"
    )


def _few(timings: Sequence[VariantTiming]) -> str:
    """Which variants have too few samples for an interval."""
    counts = {t.variant: len(t.samples_s) for t in timings if len(t.samples_s) < MIN_SAMPLES}
    if not counts:
        return ""
    fewest, most = min(counts.values()), max(counts.values())
    span = str(most) if fewest == most else f"{fewest}..{most}"
    taken = "one sample" if most == 1 else f"{span} samples"
    return (
        f"{taken}: no interval for {', '.join(counts)}; {MIN_SAMPLES} samples give one, with "
        "more time (--max-time) or rounds (--repeat)"
    )
