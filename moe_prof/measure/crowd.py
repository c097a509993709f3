"""How much CPU other programs used while samples were taken.

Source: the ``cpu`` lines of /proc/stat (proc(5)), which count every process of the machine, also
from inside a container; of them those of the CPUs that this process may use. Time stolen by a
hypervisor counts as used by others.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

STAT = Path("/proc/stat")
IDLE_FIELDS = (3, 4)
"""Positions of idle and iowait; guest times, behind the eighth, are contained in user and nice."""
COUNTED_FIELDS = 8
SHORTEST_S = 0.3
"""Over a shorter stretch the ticks of 10 ms are too coarse."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """Use of the machine over a stretch of time.

    Attributes:
        cpus: CPUs that this process may use.
        others: CPUs' worth of time that other programs used on them, on average.
    """

    cpus: int
    others: float


@dataclass(frozen=True, slots=True)
class Reading:
    """Counters at one moment: seconds of wall time, of its CPUs in use, of this process."""

    wall_s: float
    busy_s: float
    own_s: float
    cpus: int


def read() -> Reading | None:
    """The counters now; None where /proc/stat cannot be read."""
    try:
        parsed = parse_stat(STAT.read_text(), os.sysconf("SC_CLK_TCK"), os.sched_getaffinity(0))
    except OSError:
        return None
    if parsed is None:
        return None
    busy_s, cpus = parsed
    return Reading(time.monotonic(), busy_s, time.process_time(), cpus)


def parse_stat(text: str, ticks_per_s: int, usable: Collection[int]) -> tuple[float, int] | None:
    """(seconds of use since boot, number) of the usable CPUs; None where none has a line."""
    busy_ticks, cpus = 0, 0
    for line in text.splitlines():
        name, *fields = line.split()[: COUNTED_FIELDS + 1] or [""]
        if name.startswith("cpu") and name[3:].isdigit() and int(name[3:]) in usable:
            cpus += 1
            busy_ticks += sum(
                int(field) for index, field in enumerate(fields) if index not in IDLE_FIELDS
            )
    return (busy_ticks / ticks_per_s, cpus) if cpus else None


def between(start: Reading | None, end: Reading | None) -> Crowd | None:
    """Use by others between two readings; None where one is missing, or too soon to tell."""
    if start is None or end is None or end.wall_s - start.wall_s < SHORTEST_S:
        return None
    others_s = (end.busy_s - start.busy_s) - (end.own_s - start.own_s)
    return Crowd(end.cpus, max(0.0, others_s / (end.wall_s - start.wall_s)))


def average(crowds: Sequence[Crowd]) -> Crowd | None:
    """One crowd of several processes' stretches; None where none could be read."""
    if not crowds:
        return None
    return Crowd(crowds[0].cpus, statistics.mean(crowd.others for crowd in crowds))
