"""Timelines of threads, read back from tidy rows: what each did in one forward. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from moe_prof.measure.timeline import Step, Timeline
from moe_prof.rows import Row

SPAN = "phase_span"
"""A step of one thread: its length, with its begin in ``time_s``, its phase and thread."""
FORWARD = "timeline_time"
"""The forward that the steps are of."""


def timeline_of(rows: Iterable[Row], variant: str) -> Timeline | None:
    """The timeline of a variant; None where its rows hold none."""
    wall_s: float | None = None
    lanes: dict[str, list[Step]] = {}
    for row in rows:
        if row.variant != variant or row.value is None:
            continue
        if row.metric == FORWARD:
            wall_s = row.value
        elif row.metric == SPAN and row.thread is not None and row.time_s is not None:
            step = Step(row.phase or "", row.time_s, row.time_s + row.value)
            lanes.setdefault(row.thread, []).append(step)
    if not wall_s or not lanes:
        return None
    ordered = sorted(lanes, key=lambda name: (len(name), name))  # numbers as text
    return Timeline(wall_s, tuple(tuple(lanes[name]) for name in ordered))
