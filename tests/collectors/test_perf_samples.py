"""From samples to a profile: one event, clocks in seconds, threads numbered."""

from __future__ import annotations

import pytest

from moe_prof.collectors.perf_samples import plain_event, profile, thread_labels
from moe_prof.collectors.perf_script import ScriptFrame, ScriptSample
from moe_prof.errors import UnavailableError


def sample(event="cpu-clock", *, tid=7, pid=7, period=500_000, comm="bench", names=("f", "main")):
    """A sample with frames of those names, innermost first."""
    frames = tuple(ScriptFrame(name, 1, "/bench", 31) for name in names)
    return ScriptSample(event, comm, pid, tid, 0, 1.0, period, frames, 1)


def test_clock_periods_become_seconds():
    """Periods of clock events are nanoseconds."""
    found = profile([sample(), sample()], scope="roi")
    assert (found.unit, found.total, found.samples) == ("s", pytest.approx(1e-3), 2)
    assert [f.function for f in found.stacks[0].frames] == ["main", "f"]


def test_cycles_stay_cycles():
    """Periods of other events are counts."""
    found = profile([sample("cycles:u", period=1000)], scope="roi")
    assert (found.unit, found.total, found.event) == ("cycles", 1000.0, "cycles:u")


def test_events_are_not_mixed():
    """The event with most samples is taken; the others are named."""
    found = profile([sample(), sample(), sample("page-faults", period=3)], scope="roi")
    assert found.total == pytest.approx(1e-3)
    assert found.notes == (
        "samples of cpu-clock; samples of other events are left out: page-faults (1)",
    )


def test_without_periods_samples_are_counted():
    """A sample whose period is not known is one sample."""
    found = profile([sample(period=None), sample()], scope="roi")
    assert (found.unit, found.total) == ("samples", 2.0)


def test_no_sample():
    """An empty recording is unavailable, not an empty table."""
    with pytest.raises(UnavailableError, match="took no sample"):
        profile([], scope="roi")


@pytest.mark.parametrize(
    ("tids", "labels"),
    [((7, 9, 8), {7: "0", 8: "1", 9: "2"}), ((9, 8), {8: "1", 9: "2"})],
)
def test_thread_labels(tids, labels):
    """The main thread is 0 even when it has no sample; others follow in the order of start."""
    assert thread_labels([sample(tid=tid) for tid in tids]) == labels


def test_threads_of_several_processes():
    """Names tell processes apart."""
    labels = thread_labels([sample(), sample(tid=8, pid=8, comm="other")])
    assert labels == {7: "bench 7", 8: "other 8"}


@pytest.mark.parametrize(
    ("event", "plain"),
    [("cycles", "cycles"), ("cycles:Pu", "cycles"), ("cpu_core/cycles/u", "cycles")],
)
def test_plain_events(event, plain):
    """Modifiers and PMUs are no part of an event's name."""
    assert plain_event(event) == plain
