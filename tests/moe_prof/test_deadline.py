"""The end of a bounded run."""

from __future__ import annotations

import time

import pytest

from moe_prof.deadline import RESERVE_MOST_S, Deadline


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The monotonic clock, as the only entry of a list."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_without_a_limit_it_never_passes(clock: list[float]) -> None:
    """Steps get the most that they may take."""
    deadline = Deadline(None)
    clock[0] += 1e9

    assert (deadline.passed, deadline.end_s, deadline.left_s(240.0)) == (False, None, 240.0)


@pytest.mark.parametrize(("limit_s", "reserve_s"), [(10.0, 1.0), (600.0, RESERVE_MOST_S)])
def test_some_time_is_kept(clock: list[float], limit_s: float, reserve_s: float) -> None:
    """Steps end before the limit, so that the result is there at the limit."""
    deadline = Deadline(limit_s)
    clock[0] += 4.0

    assert deadline.left_s(1e6) == pytest.approx(limit_s - reserve_s - 4.0)


def test_past_the_end_no_step_begins(clock: list[float]) -> None:
    """Nothing is left, never less than nothing; the reason names the limit."""
    deadline = Deadline(10.0)
    clock[0] += 9.0

    assert (deadline.passed, deadline.left_s(240.0)) == (True, 0.0)
    assert deadline.reason == "the time limit of 10 s was reached before it was counted"


def test_a_step_takes_no_more_than_it_may(clock: list[float]) -> None:
    """A long limit does not let one tool hang for all of it."""
    assert Deadline(3600.0).left_s(240.0) == 240.0


def test_a_part_ends_early(clock: list[float]) -> None:
    """A fifth of the limit, and never later than the whole."""
    whole = Deadline(10.0)
    assert whole.part(0.2).left_s(240.0) == pytest.approx(2.0)
    clock[0] += 8.0
    assert whole.part(0.2).left_s(240.0) == pytest.approx(1.0)
    assert Deadline(None).part(0.2).end_s is None


def test_time_that_is_stopped_does_not_count(clock: list[float]) -> None:
    """Compiling takes nothing of the limit, though it failed."""
    deadline = Deadline(10.0)
    with pytest.raises(ValueError, match="no"), deadline.stopped():
        clock[0] += 60.0
        raise ValueError("no")

    assert deadline.left_s(240.0) == 9.0


def test_a_share_is_of_the_whole_limit(clock: list[float]) -> None:
    """No more than is left; none without a limit."""
    deadline = Deadline(10.0)
    shares = [deadline.share_s(0.4)]
    clock[0] += 7.0

    assert [*shares, deadline.share_s(0.4)] == [4.0, 2.0]
    assert Deadline(None).share_s(0.4) is None
