"""Ratios recomputed from counts, one PMU at a time: IPC and miss rates.

perf's own comments are not used: on hybrid CPUs it divides one PMU's count by another's, newer
versions omit them, and a decimal comma cuts them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from moe_prof.collectors.perf_reading import EventName, Reading, take_apart
from moe_prof.rows import Status

# Above what any core retires: 8 wide with fused pairs, rounded up.
MAX_IPC = 12.0

# (metric, dividend, divisor, largest possible value)
RATIOS: tuple[tuple[str, str, str, float], ...] = (
    ("IPC", "instructions", "cycles", MAX_IPC),
    ("branch_miss_rate", "branch-misses", "branches", 1.0),
    ("cache_miss_rate", "cache-misses", "cache-references", 1.0),
    ("l1d_miss_rate", "l1-dcache-load-misses", "l1-dcache-loads", 1.0),
    ("llc_miss_rate", "llc-load-misses", "llc-loads", 1.0),
    ("dtlb_miss_rate", "dtlb-load-misses", "dtlb-loads", 1.0),
)

_PlaceKey = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Ratio:
    """One quotient; ``value`` is None where a count is missing, ``note`` says which.

    Attributes:
        metric: the ratio's name.
        pmu: the PMU of both counts, None where perf names none.
        running_pct: the smaller of both shares of time counted.
        at: the divisor's reading, for place and time.
        note: the two counts, or what is wrong.
    """

    metric: str
    value: float | None
    status: Status
    pmu: str | None
    running_pct: float | None
    at: Reading
    note: str


def ratios(readings: Iterable[Reading]) -> list[Ratio]:
    """Every ratio of which at least one count is there, per place, PMU and event modifier."""
    groups: dict[_PlaceKey, dict[str, Reading]] = {}
    for reading in readings:
        if not reading.event:
            continue
        name = take_apart(reading.event)
        group = groups.setdefault(_key(reading, name), {})
        if name.base not in group or group[name.base].value is None:
            group[name.base] = reading
    found = []
    for group in groups.values():
        for metric, dividend, divisor, largest in RATIOS:
            if dividend in group and divisor in group:
                found.append(_ratio(metric, group[dividend], group[divisor], largest))
    return found


def _ratio(metric: str, dividend: Reading, divisor: Reading, largest: float) -> Ratio:
    running = [r.running_pct for r in (dividend, divisor) if r.running_pct is not None]
    running_pct = min(running, default=None)
    pmu = take_apart(divisor.event).pmu
    note = f"{dividend.event} / {divisor.event}"
    missing = next((r for r in (dividend, divisor) if r.value is None), None)
    value: float | None = None
    status: Status = "ok"
    if missing is not None:
        status, note = missing.status, f"{missing.event}: {missing.status.replace('_', ' ')}"
    elif not divisor.value or dividend.value is None:
        status, note = "not_counted", f"{divisor.event} is 0"
    else:
        value = dividend.value / divisor.value
        if not 0 <= value <= largest:
            status, note = "out_of_bounds", f"{note}: beyond 0 to {largest:g}"
        elif running_pct is not None and running_pct < 100:
            status = "multiplexed"
    return Ratio(metric, value, status, pmu, running_pct, divisor, note)


def _key(reading: Reading, name: EventName) -> _PlaceKey:
    return (
        reading.block, reading.summary, reading.time_s, reading.scope, reading.thread,
        reading.cgroup, name.pmu, name.modifiers,
    )  # fmt: skip
