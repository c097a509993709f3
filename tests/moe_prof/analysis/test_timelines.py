"""Timelines through tidy rows and back."""

from moe_prof.analysis.timelines import timeline_of
from moe_prof.collectors.builtin import phase_rows
from moe_prof.measure.results import PhaseTimes, ThreadTimes
from moe_prof.measure.timeline import Step, Timeline
from moe_prof.scenario import SCENARIOS

LANES = tuple((Step("down", 0.25 * n, 0.25 * n + 0.5),) for n in range(11))


def rows_of(found):
    """The rows of a variant that was timed with that timeline."""
    threads = tuple(ThreadTimes(0.5, 0.5, {"down": 0.5}) for _ in LANES)
    times = PhaseTimes("packed", threads, 1.0, 3, timeline=found)
    return phase_rows(times, SCENARIOS["S3"])


def test_rows_give_the_timeline_back():
    """Threads in the order of their numbers, not of their names."""
    found = timeline_of(rows_of(Timeline(1.0, LANES)), "packed")
    assert found == Timeline(1.0, LANES)


def test_other_rows_give_none():
    """Another variant, and a session without one."""
    assert timeline_of(rows_of(Timeline(1.0, LANES)), "scalar") is None
    assert timeline_of(rows_of(None), "packed") is None


def test_rows_say_what_was_merged():
    """The length of the slots stands in the source."""
    sources = {row.source for row in rows_of(Timeline(1.0, LANES, slot_s=0.01))
               if row.metric == "phase_span"}  # fmt: skip
    assert sources == {"phases build, one forward; what took most of every 10.0 ms"}
