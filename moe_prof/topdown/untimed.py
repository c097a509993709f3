"""Rows of variants without a time (wrong, crashed, out of time): the reason in place of values."""

from __future__ import annotations

from collections.abc import Iterable

from moe_prof.collectors import builtin
from moe_prof.measure.results import PhaseTimes, VariantTiming
from moe_prof.rows import Row
from moe_prof.scenario import Scenario
from moe_prof.topdown.counted import missing_counts, missing_nodes


def untimed_rows(timings: Iterable[VariantTiming], scenario: Scenario) -> list[Row]:
    """What the other variants have counted or modelled, missing with the reason."""
    rows: list[Row] = []
    for timing in timings:
        if timing.trusted:
            continue
        why = timing.reason or "no sample was taken"
        rows += builtin.phase_rows(PhaseTimes(timing.variant, reason=why), scenario)
        rows += missing_counts(scenario.label, timing.variant, why)
        rows += missing_nodes(scenario.label, timing.variant, why)
    return rows
