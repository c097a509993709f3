"""How much CPU other programs used while samples were taken.

Source: the ``cpu`` lines of /proc/stat (proc(5)), which count the whole machine, also from inside a
container; time stolen by a hypervisor counts as used by others.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

STAT = Path("/proc/stat")
IDLE_FIELDS = (3, 4)
"""Positions of idle and iowait; guest times, behind the eighth, are contained in user and nice."""
COUNTED_FIELDS = 8


@dataclass(frozen=True, slots=True)
class Crowd:
    """Use of the machine over a stretch of time.

    Attributes:
        cpus: CPUs of the whole machine.
        others: CPUs' worth of time that other programs used, on average.
    """

    cpus: int
    others: float


@dataclass(frozen=True, slots=True)
class Reading:
    """Counters at one moment: seconds of wall time, of all CPUs in use, of this process."""

    wall_s: float
    busy_s: float
    own_s: float
    cpus: int


def read() -> Reading | None:
    """The counters now; None where /proc/stat cannot be read."""
    try:
        parsed = parse_stat(STAT.read_text(), os.sysconf("SC_CLK_TCK"))
    except OSError:
        return None
    if parsed is None:
        return None
    busy_s, cpus = parsed
    return Reading(time.monotonic(), busy_s, time.process_time(), cpus)


def parse_stat(text: str, ticks_per_s: int) -> tuple[float, int] | None:
    """(seconds of use since boot, number of CPUs); None where there are no ``cpu`` lines."""
    busy_ticks, cpus = 0, 0
    for line in text.splitlines():
        name, *fields = line.split()[: COUNTED_FIELDS + 1] or [""]
        if name.startswith("cpu") and name != "cpu":
            cpus += 1
            busy_ticks += sum(
                int(field) for index, field in enumerate(fields) if index not in IDLE_FIELDS
            )
    return (busy_ticks / ticks_per_s, cpus) if cpus else None


def between(start: Reading | None, end: Reading | None) -> Crowd | None:
    """Use by others between two readings; None where one is missing or no time has passed."""
    if start is None or end is None or end.wall_s <= start.wall_s:
        return None
    others_s = (end.busy_s - start.busy_s) - (end.own_s - start.own_s)
    return Crowd(end.cpus, max(0.0, others_s / (end.wall_s - start.wall_s)))
