"""Several measurements of the same thing: numbered as repetitions, with their mean."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import replace

from moe_prof.rows import Row, Status

_KEPT: tuple[Status, ...] = ("out_of_bounds", "multiplexed", "below_threshold")


def numbered(rows: Iterable[Row], number: int) -> list[Row]:
    """The rows as repetition ``number``; repetitions and intervals within it keep no number."""
    return [row if row.time_s is not None else replace(row, repeat=number) for row in rows]


def with_means(rows: Sequence[Row]) -> list[Row]:
    """The rows and, for each metric at one place that only repetitions have, their mean."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    summarised: set[tuple[object, ...]] = set()
    for row in rows:
        key = (
            row.scenario, row.variant, row.collector, row.scope, row.cpu, row.thread, row.phase,
            row.metric, row.unit, row.source if row.scope in ("function", "instruction") else "",
        )  # fmt: skip
        if row.repeat is None:
            summarised.add(key)
        elif row.time_s is None:
            groups.setdefault(key, []).append(row)
    means = [_mean(group) for key, group in groups.items() if key not in summarised]
    return [*rows, *means]


def _mean(rows: Sequence[Row]) -> Row:
    values = [row.value for row in rows if row.value is not None]
    if not values:
        return replace(rows[0], repeat=None, stddev=None, n=None)
    running = [row.mux_pct for row in rows if row.mux_pct is not None]
    found = {row.status for row in rows}
    return replace(
        rows[0],
        repeat=None,
        value=math.fsum(values) / len(values),
        stddev=statistics.stdev(values) if len(values) > 1 else None,
        n=len(values),
        mux_pct=min(running, default=None),
        status=next((status for status in _KEPT if status in found), "ok"),
        provenance=next(row.provenance for row in rows if row.value is not None),
        source=f"mean of {len(values)} repetitions",
    )
