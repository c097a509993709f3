"""The columns that perf stat puts before a count: interval time, aggregation, number of CPUs."""

from __future__ import annotations

import re
from dataclasses import dataclass

# CPU3, S0, S0-D0, S0-D0-C1, S0-D0-CLS2, S0-D0-L3-ID8, N0
SCOPE_PATTERN = r"(?:CPU[0-9]+|S[0-9]+(?:-[A-Z]+[0-9]+)*(?:-ID[0-9]+)?|N[0-9]+)"
TIME_PATTERN = r"[0-9]+[.,][0-9]{9}"
_CPU = re.compile(r"CPU([0-9]+)")


@dataclass(frozen=True, slots=True)
class Place:
    """Where and when a row was counted; see :class:`Reading` for the fields."""

    time_s: float | None = None
    scope: str = ""
    cpus: int | None = None
    thread: str | None = None
    summary: bool = False

    @property
    def cpu(self) -> str | None:
        """The CPU's number for a ``CPU3`` scope."""
        match = _CPU.fullmatch(self.scope)
        return match[1] if match else None
