"""Groups of real MPI ranks: calls back to back, setups that differ, errors of one rank."""

from __future__ import annotations

import json

import pytest

from tests.moe_prof.ep.ranks import mpirun, needs_mpi

pytestmark = [needs_mpi, pytest.mark.usefixtures("built")]


def told(count, *words, experts=6):
    """What each rank of a program saw."""
    env = {"EP_TEST_EXPERTS": str(experts)}
    ran = mpirun(count, "-m", "tests.moe_prof.ep.rank_programs", *words, env=env)
    assert ran.code == 0, ran.err
    lines = [json.loads(line) for line in ran.out.splitlines()]
    assert [line["rank"] for line in lines] == list(range(count))
    return lines


@pytest.mark.parametrize(
    ("ranks", "experts", "calls", "transport"),
    [(2, 6, 1000, "shared"), (3, 3, 300, "shared"), (3, 6, 200, "put")],
)
def test_calls_back_to_back_stay_right(ranks, experts, calls, transport):
    """After random delays, fused in all ways and small ops mixed, in poisoned memory, guarded.

    With one expert a rank too, where rows are sent after the products.
    """
    for line in told(ranks, "stress", calls, transport, experts=experts):
        assert (line["calls"], line["wrong"], line["intact"]) == (calls, 0, True)
        assert line["transport"] == transport


def test_a_rank_that_was_set_up_differently_is_named_on_all():
    """With what differs; all raise the same error at once."""
    for line in told(3, "mismatch"):
        assert (line["error"], line["code"]) == ("UsageError", 2)
        assert "rank 2 was set up differently: h is 1024 there, 512 elsewhere" in line["text"]
        assert line["s"] < 30


def test_an_error_of_one_rank_is_raised_on_all():
    """The others have begun their call and stop waiting long before the deadline."""
    first, second = told(2, "bad_id")
    assert "expert_ids[4, 0] = 6 is not in -1..5" in second["text"]
    assert first["text"] == f"rank 1: {second['text']}"
    assert (first["error"], first["code"]) == ("InputError", 1)
    assert first["s"] < 30


def test_a_second_call_on_a_group_is_refused():
    """While the first one waits for another rank; that one ends well."""
    first, second = told(2, "concurrent")
    assert len(first["refused"]) == 1
    assert "a call on this group runs already" in first["refused"][0]
    assert second["refused"] == []
