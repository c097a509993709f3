"""The time of a measurement: its budget, and how long each step of a variant may take. Pure."""

from __future__ import annotations

import time

from moe_prof.measure.results import DEFAULT_BUDGET_S, Status

HANG_BASE_S = 120.0
HANG_MACS_PER_S = 5e7
"""A forward slower than this, beyond the base, is taken for a hang."""
HANG_UNDER_LIMIT_S = 1.0
"""The base for compiled code where a time limit is shorter."""
HANG_SAMPLES = 20
SETUP_SHARE = 0.4
"""Of a hard time limit, what preparing or checking one variant may take."""
RESERVE_SHARE, RESERVE_MOST_S = 0.2, 1.5
"""Of a hard time limit, what is kept for starting up, ending processes and writing the result."""


class OutOfTimeError(Exception):
    """The hard time limit has passed; internal to the measurement."""


class Clock:
    """Time since the start against a budget, which is a limit (``hard``) or a wish."""

    def __init__(self, max_time_s: float | None, wish_s: float = DEFAULT_BUDGET_S) -> None:
        self.start_s = time.monotonic()
        self.hard = max_time_s is not None
        self.budget_s = wish_s
        if max_time_s is not None:
            self.budget_s = max_time_s - min(RESERVE_SHARE * max_time_s, RESERVE_MOST_S)

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.start_s

    @property
    def left_s(self) -> float:
        """Seconds of the budget that are left, negative when it is exceeded."""
        return self.budget_s - self.elapsed_s

    def step_limit(
        self, step: str, operations: int, *, sample_s: float | None, hang_s: float | None,
        compiled: bool = False,
    ) -> tuple[float, Status]:  # fmt: skip
        """How long to wait for the end of a step, and what it means when it does not end.

        Args:
            step: of the variant at hand, "" before there is one.
            operations: of one forward, or of preparing it, whatever is more.
            sample_s: what a sample of the variant takes, None before it is known.
            hang_s: the time after which a step hangs, None: from the work.
            compiled: nothing is compiled in the step; so where even very slow code would end
                within a short time limit, what does not end hangs.
        """
        slow_s = operations / HANG_MACS_PER_S
        if hang_s is None:
            hang_s = HANG_BASE_S + slow_s
            if step == "sample":
                hang_s = max(HANG_BASE_S / 10, HANG_SAMPLES * (sample_s or 0.0))
        limits: list[tuple[float, Status]] = [(hang_s, "hung")]
        if self.hard:
            limits.append((self.left_s, "no_time"))
            if step and step != "sample":
                limits.append((SETUP_SHARE * self.budget_s, "no_time"))
        limit_s, blame = min(limits)
        if compiled and step and limit_s >= HANG_UNDER_LIMIT_S + slow_s:
            return limit_s, "hung"
        return limit_s, blame


def late_text(blame: Status, step: str, limit_s: float) -> str:
    """What a step that did not end in time is told to have done."""
    if blame == "hung":
        return f"no answer during {step} within {limit_s:.3g} s: it hangs"
    return f"{step} takes longer than {limit_s:.3g} s, too long for the time limit"
