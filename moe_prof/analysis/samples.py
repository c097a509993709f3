"""Timings out of the rows of a session, by process and round. Pure.

``bench`` and ``topdown`` name both in a row's source (``process 0, round 3``). Older sessions name
the process only, and its rounds are known in their order; an imported file is one process.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from moe_prof.rows import Row
from moe_prof.stats import Key

TIME_METRICS = ("time", "Optimized time", "time_elapsed", "duration_time")
"""What a whole run's or forward's time is called, by this tool and by others; the first counts."""

_PLACE = re.compile(r"(?:process|worker) (?P<process>\d+)(?:, round (?P<round>\d+))?")


@dataclass(frozen=True, slots=True)
class Timed:
    """One variant's timings under one metric.

    Attributes:
        value_s: their summary; None when there is none.
        reason: why there is none, or "".
        samples_s: by (process, round).
        exact: whether the rounds are known, not only their order.
    """

    metric: str
    value_s: float | None
    reason: str
    samples_s: dict[Key, float]
    exact: bool


def timed(rows: Iterable[Row], metric: str) -> Timed | None:
    """The timings among rows of one variant and scenario; None when the metric is not there."""
    wanted = [row for row in rows if row.metric == metric and _is_whole(row)]
    if not wanted:
        return None
    summary = next((row for row in reversed(wanted) if row.repeat is None), None)
    samples, exact = _samples(row for row in wanted if row.repeat is not None)
    value_s = summary.value if summary is not None else None
    if value_s is not None and not samples:
        samples = {(0, 0): value_s}
    reason = summary.source if summary is not None and value_s is None else ""
    return Timed(metric, value_s, reason, samples, exact)


def time_metrics(rows: Iterable[Row]) -> tuple[str, ...]:
    """Metrics of rows that are times of the whole, the best known first."""
    sampled = dict.fromkeys(
        row.metric
        for row in rows
        if row.unit == "s" and _is_whole(row) and row.repeat is not None and row.level is None
    )
    return tuple(dict.fromkeys((*TIME_METRICS, *sampled)))


def _is_whole(row: Row) -> bool:
    """About all of a run: no part of the machine, of the forward, of the time or of the code."""
    parts = (row.phase, row.thread, row.cpu, row.time_s)
    return all(part is None for part in parts) and row.scope not in ("function", "instruction")


def _samples(rows: Iterable[Row]) -> tuple[dict[Key, float], bool]:
    """Samples by key, and whether every row told its round."""
    found: dict[Key, float] = {}
    order: dict[int, int] = {}
    exact = True
    for row in rows:
        if row.value is None or row.value <= 0 or row.repeat is None:
            continue
        place = _PLACE.match(row.source)
        process = int(place["process"]) if place is not None else row.repeat
        index = order.get(process, 0)
        order[process] = index + 1
        if place is not None and place["round"] is not None:
            index = int(place["round"])
        else:
            exact = False
        found[process, index] = row.value
    return found, exact and bool(found)
