"""What each thread did in one forward, step by step, thinned to what a picture can show. Pure.

The spans come from the ``phases`` build (``moe_plan_spans`` of moe_prof.h); between them a thread
waited. A forward of many experts has thousands of them: then a thread's time is cut into slots of
equal length, and each slot shows what took most of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moe_prof.kernels.info import Spans

MOST_SPANS = 1500
"""Spans of all threads together that are kept one by one."""
FEWEST_SLOTS, MOST_SLOTS = 40, 300
"""Slots of a thread."""


@dataclass(frozen=True, slots=True)
class Step:
    """A thread in one phase, in seconds after the forward's begin."""

    phase: str
    begin_s: float
    end_s: float

    @property
    def length_s(self) -> float:
        """How long it took."""
        return self.end_s - self.begin_s


@dataclass(frozen=True, slots=True)
class Timeline:
    """One forward.

    Attributes:
        wall_s: its time.
        threads: the steps of each thread, in order.
        slot_s: the length of the slots that were merged into, None where every step is there.
    """

    wall_s: float
    threads: tuple[tuple[Step, ...], ...]
    slot_s: float | None = None


def timeline(spans: Spans, names: Sequence[str]) -> Timeline | None:
    """The spans as steps, thinned where they are many; None where there are none.

    Args:
        names: of the phases, by their number.
    """
    threads = tuple(
        tuple(
            Step(names[phase], begin_s, min(end_s, spans.wall_s))
            for phase, begin_s, end_s in lane if begin_s < spans.wall_s
        )
        for lane in spans.threads
    )  # fmt: skip
    count = sum(len(lane) for lane in threads)
    if not count or spans.wall_s <= 0 or spans.left_out:
        return None
    if count <= MOST_SPANS:
        return Timeline(spans.wall_s, threads)
    slots = min(MOST_SLOTS, max(FEWEST_SLOTS, MOST_SPANS // len(threads)))
    slot_s = spans.wall_s / slots
    thinned = tuple(_thinned(lane, slots, slot_s) for lane in threads)
    return Timeline(spans.wall_s, thinned, slot_s)


def from_dict(data: Mapping[str, Any]) -> Timeline:
    """The inverse of ``dataclasses.asdict``."""
    threads = tuple(tuple(Step(**step) for step in lane) for lane in data["threads"])
    return Timeline(data["wall_s"], threads, data["slot_s"])


def _thinned(lane: Sequence[Step], slots: int, slot_s: float) -> tuple[Step, ...]:
    """One step for every run of slots in which the same phase, or waiting, takes most."""
    shares: list[dict[str, float]] = [{} for _ in range(slots)]
    for step in lane:
        first = min(slots - 1, int(step.begin_s / slot_s))
        last = min(slots - 1, int(step.end_s / slot_s))
        for slot in range(first, last + 1):
            low, high = max(step.begin_s, slot * slot_s), min(step.end_s, (slot + 1) * slot_s)
            shares[slot][step.phase] = shares[slot].get(step.phase, 0.0) + max(0.0, high - low)
    found: list[Step] = []
    for slot, share in enumerate(shares):
        phase = max(share, key=share.__getitem__, default="")
        if not phase or sum(share.values()) < slot_s / 2:
            continue
        begin_s, end_s = slot * slot_s, (slot + 1) * slot_s
        if found and found[-1].phase == phase and found[-1].end_s >= begin_s - slot_s / 4:
            found[-1] = Step(phase, found[-1].begin_s, end_s)
        else:
            found.append(Step(phase, begin_s, end_s))
    return tuple(found)
