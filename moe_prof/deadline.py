"""The end of a run that ``--max-time`` bounds; a part is kept for ending tools and the result."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

RESERVE_SHARE, RESERVE_MOST_S = 0.1, 2.0
"""Of the limit: what starting up, ending tools and writing the session take."""


class Deadline:
    """Begins when it is made; without a limit it never passes."""

    def __init__(self, max_time_s: float | None) -> None:
        self._max_time_s = max_time_s
        self.end_s: float | None = None
        """By ``time.monotonic``; None without a limit."""
        if max_time_s is not None:
            reserve_s = min(RESERVE_SHARE * max_time_s, RESERVE_MOST_S)
            self.end_s = time.monotonic() + max_time_s - reserve_s

    def part(self, share: float) -> Deadline:
        """The end of a part that begins now and may take a share of the whole limit."""
        made = Deadline(None)
        made._max_time_s = self._max_time_s
        if self.end_s is not None and self._max_time_s is not None:
            made.end_s = min(self.end_s, time.monotonic() + share * self._max_time_s)
        return made

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """A time that does not count: compiling kernels is no measuring."""
        start_s = time.monotonic()
        try:
            yield
        finally:
            if self.end_s is not None:
                self.end_s += time.monotonic() - start_s

    def share_s(self, share: float) -> float | None:
        """A share of the whole limit, no more than what is left; None without a limit."""
        if self.end_s is None or self._max_time_s is None:
            return None
        return max(0.1, min(share * self._max_time_s, self.end_s - time.monotonic()))

    @property
    def passed(self) -> bool:
        """Whether no further step may begin."""
        return self.end_s is not None and time.monotonic() >= self.end_s

    @property
    def reason(self) -> str:
        """Why a figure is missing that came too late."""
        return f"the time limit of {self._max_time_s:g} s was reached before it was counted"

    def left_s(self, most_s: float) -> float:
        """Time that a step may take: what is left, ``most_s`` at most, never negative."""
        if self.end_s is None:
            return most_s
        return max(0.0, min(most_s, self.end_s - time.monotonic()))
