"""How much of the machine other programs used while a benchmark ran.

The same counters as ``moe_prof.measure.crowd``, with the time of this program's own ended children
taken off, since the contenders of a benchmark run in processes of their own.
"""

from __future__ import annotations

import resource
from dataclasses import dataclass

from moe_prof.measure import crowd


@dataclass(frozen=True, slots=True)
class Load:
    """CPUs of the machine, and CPUs' worth of time that other programs used on average."""

    cpus: int
    others: float


class Watch:
    """Begins to count when it is made."""

    def __init__(self) -> None:
        self._start = crowd.read()
        self._children_s = _children_s()

    def stop(self) -> Load | None:
        """Use by others since the start; every child must have ended. None where not known."""
        end = crowd.read()
        found = crowd.between(self._start, end)
        if found is None or self._start is None or end is None:
            return None
        own_s = _children_s() - self._children_s
        return Load(found.cpus, max(0.0, found.others - own_s / (end.wall_s - self._start.wall_s)))


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
