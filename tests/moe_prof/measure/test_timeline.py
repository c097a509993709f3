"""Timelines of threads: steps kept, merged where they are many, refused where they are not all."""

from dataclasses import asdict

import pytest

from moe_prof.kernels.info import PHASES, Spans
from moe_prof.measure import timeline as module
from moe_prof.measure.timeline import Step, from_dict, timeline

ROUTER, DOWN = PHASES.index("router"), PHASES.index("down")


def test_few_steps_are_kept_as_they_are():
    """With the phases' names, in order; the time between them is left open."""
    found = timeline(Spans(1.0, (((ROUTER, 0.0, 0.2), (DOWN, 0.4, 1.1)), ())), PHASES)
    assert found.threads == ((Step("router", 0.0, 0.2), Step("down", 0.4, 1.0)), ())
    assert (found.wall_s, found.slot_s) == (1.0, None)


@pytest.mark.parametrize("spans", [
    Spans(1.0, ((), ())),
    Spans(0.0, (((ROUTER, 0.0, 0.0),),)),
    Spans(1.0, (((ROUTER, 0.0, 0.5),),), left_out=3),
])  # fmt: skip
def test_no_timeline_of_nothing_or_of_a_part(spans):
    """What was not kept would look like waiting."""
    assert timeline(spans, PHASES) is None


def many(count):
    """A thread that does a step of two phases, 3 to 1, in its first half, then waits."""
    step = 0.5 / count
    lane = []
    for number in range(count):
        begin = number * step
        lane += [(DOWN, begin, begin + 0.75 * step), (ROUTER, begin + 0.75 * step, begin + step)]
    return Spans(1.0, (tuple(lane), ((ROUTER, 0.25, 0.75),)))


def test_many_steps_become_what_took_most():
    """The picture stays: half the longer phase, half waiting; the other thread as it was."""
    found = timeline(many(4000), PHASES)
    first, second = found.threads
    assert [step.phase for step in first] == ["down"]
    assert first[0].begin_s == 0
    assert first[0].end_s == pytest.approx(0.5, abs=found.slot_s)
    assert second[0].begin_s == pytest.approx(0.25, abs=found.slot_s)
    assert second[0].length_s == pytest.approx(0.5, abs=2 * found.slot_s)


def test_the_number_of_steps_is_bounded(monkeypatch):
    """Phases that alternate from slot to slot, on many threads."""
    monkeypatch.setattr(module, "MOST_SPANS", 200)
    lane = tuple((number % 2, number / 5000, (number + 1) / 5000) for number in range(5000))
    found = timeline(Spans(1.0, (lane,) * 4), PHASES)
    assert sum(len(steps) for steps in found.threads) <= 200


def test_through_the_pipe_and_back():
    """As the worker sends it."""
    found = timeline(many(4), PHASES)
    assert from_dict(asdict(found)) == found
