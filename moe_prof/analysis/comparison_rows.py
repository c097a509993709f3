"""Comparisons as tidy rows: ``time_ratio`` with its interval, ``effect_size``, ``comparison``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moe_prof.analysis.comparison import COLLECTOR, Comparison, CountRatio
from moe_prof.analysis.decision import Ratio
from moe_prof.rows import Row, unavailable

RATIO, EFFECT, VERDICT = "time_ratio", "effect_size", "comparison"
"""``comparison`` has its verdict in ``source``: faster, slower, same or too noisy."""


def rows(comparisons: Iterable[Comparison]) -> list[Row]:
    """All rows, labelled with the new side's run, scenario and variant."""
    return [row for one in comparisons for row in _rows(one)]


def pairing_text(one: Comparison) -> str:
    """How the two were sampled."""
    if one.ratio is not None and one.ratio.paired:
        return "paired: same rounds of one run"
    if one.run_id == one.old_run_id:
        return "unpaired: one run, but not the same rounds"
    return "unpaired: two runs"


def _rows(one: Comparison) -> list[Row]:
    labels: dict[str, Any] = {
        "run_id": one.run_id, "scenario": one.pair.new_scenario, "variant": one.pair.new,
        "collector": COLLECTOR,
    }  # fmt: skip
    against = f"{one.metric} over that of {one.pair.old}"
    if one.run_id != one.old_run_id:
        against += f" in {one.old_run_id}"
    if one.ratio is None:
        reason = one.reason or "no time was measured"
        found = [unavailable(metric, "1", reason, **labels) for metric in (RATIO, VERDICT)]
    else:
        found = _time_rows(one, one.ratio, against, labels)
    return [*found, *(_count_row(count, one, labels) for count in one.counts)]


def _time_rows(one: Comparison, ratio: Ratio, against: str, labels: dict[str, Any]) -> list[Row]:
    interval = ratio.interval
    how = pairing_text(one)
    if one.drift is not None:
        how += f"; stretched by the baseline's own ratio {one.drift:.4g}"
    found = [
        Row(
            metric=RATIO, value=interval.value, unit="1", n=interval.n,
            source=f"{against}; {how}", **labels,
        )
    ]  # fmt: skip
    for end, value in (("ci_low", interval.low), ("ci_high", interval.high)):
        name = f"{RATIO}_{end}"
        found.append(
            unavailable(name, "1", interval.reason, **labels)
            if value is None
            else Row(
                metric=name, value=value, unit="1", source=f"95 % interval, {interval.method}",
                **labels,
            )
        )  # fmt: skip
    measure = "rounds slower minus rounds faster" if ratio.paired else "Cliff's delta"
    found.append(Row(metric=EFFECT, value=ratio.effect, unit="1", source=measure, **labels))
    if one.verdict is None:
        found.append(unavailable(VERDICT, "1", one.reason, **labels))
    else:
        found.append(Row(metric=VERDICT, value=None, unit="1", source=one.verdict, **labels))
    return found


def _count_row(count: CountRatio, one: Comparison, labels: dict[str, Any]) -> Row:
    return Row(
        metric=f"{count.metric}_ratio", value=count.ratio, unit="1", phase=count.phase,
        scope=count.scope, provenance=count.provenance,
        source=f"{count.new:.6g} over {count.old:.6g} {count.unit} of {one.pair.old}; no interval",
        **labels,
    )  # fmt: skip
