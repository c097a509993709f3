"""Callgrind's profiles as stacks: recorded ones, against the file's own totals."""

from __future__ import annotations

import pytest

from moe_prof.collectors import callgrind_format
from moe_prof.collectors.callgrind_profile import profile
from moe_prof.errors import InputError
from tests.collectors.fixture_files import recorded


@pytest.fixture(params=["callgrind/roi.out", "callgrind/threads.out"])
def parsed(request):
    """A recorded profile."""
    return callgrind_format.parse(recorded(request.param))


def test_sites_add_up_to_the_body(parsed):
    """The finest costs are all of the costs."""
    sums = [sum(column) for column in zip(*parsed.sites.values(), strict=True)]
    assert sums == list(parsed.body.values())


def test_stacks_add_up_to_the_totals(parsed):
    """Every event's stacks have the file's own total."""
    for event in ("Ir", "Dr"):
        found = profile(parsed, event=event)
        assert found.total == pytest.approx(parsed.totals[event])
        assert (found.provenance, found.samples) == ("simulated", 0)


def test_calls_and_lines():
    """A callee stands below its caller, with the lines of the call and of the cost."""
    found = profile(callgrind_format.parse(recorded("callgrind/roi.out")))
    paths = {tuple(f.function for f in stack.frames) for stack in found.stacks}
    lines = {s.frames[-1].line for s in found.stacks if s.frames[-1].function == "dot"}
    assert ("main", "dot") in paths
    assert all(line is not None and line > 0 for line in lines)
    assert found.unit == "instructions"


def test_missing_event(parsed):
    """An event that was not simulated is named, with those that were."""
    with pytest.raises(InputError, match="no event Nothing; it has Ir"):
        profile(parsed, event="Nothing")
