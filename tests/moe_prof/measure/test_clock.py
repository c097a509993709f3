"""Budgets of measurements and limits of their steps."""

from __future__ import annotations

import time

import pytest

from moe_prof.measure import clock
from moe_prof.measure.clock import Clock, late_text

MACS = 5_000_000_000


@pytest.fixture
def now(monkeypatch):
    """The monotonic clock, as the only entry of a list."""
    value = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: value[0])
    return value


def limit(made, step, *, sample_s=None, hang_s=None):
    """The limit of a step with a forward of MACS."""
    return made.step_limit(step, MACS, sample_s=sample_s, hang_s=hang_s)


def test_a_wish_is_no_limit(now):
    """Only a hang ends a step: 100 s of the work beyond the base."""
    assert limit(Clock(None), "prepare") == (clock.HANG_BASE_S + 100.0, "hung")


def test_a_known_sample_hangs_sooner(now):
    """Twenty times what it took, and never less than a tenth of the base."""
    assert limit(Clock(None), "sample", sample_s=1.0) == (20.0, "hung")
    assert limit(Clock(None), "sample", sample_s=0.1) == (clock.HANG_BASE_S / 10, "hung")


def test_a_limit_is_shared_among_the_steps_of_setting_up(now):
    """Preparing may take a share only, sampling what is left; a part is kept for the end."""
    made = Clock(100.0)
    left_s = 100.0 - clock.RESERVE_MOST_S
    assert limit(made, "prepare") == (pytest.approx(clock.SETUP_SHARE * left_s), "no_time")
    now[0] += 50.0
    assert limit(made, "sample", sample_s=9.0) == (pytest.approx(left_s - 50.0), "no_time")
    assert limit(made, "", hang_s=1.0) == (1.0, "hung")


def test_a_short_limit_tells_compiled_code_that_hangs_from_slow_code(now):
    """At the slowest speed the work takes 100 s: a share of 400 s would do, one of 200 s not."""
    del now
    for max_time_s, blame in ((400.0, "hung"), (200.0, "no_time")):
        found = Clock(max_time_s).step_limit(
            "verify", MACS, sample_s=None, hang_s=None, compiled=True
        )
        share_s = clock.SETUP_SHARE * (max_time_s - clock.RESERVE_MOST_S)
        assert found == (pytest.approx(share_s), blame)
    assert limit(Clock(400.0), "verify")[1] == "no_time"  # code that may be compiled meanwhile


def test_what_is_said_of_a_late_step():
    """A hang is the variant's fault, a limit is not."""
    assert late_text("hung", "sample", 12.0) == "no answer during sample within 12 s: it hangs"
    assert late_text("no_time", "prepare", 5.4).endswith("too long for the time limit")
