"""Shares by function, line, phase and thread: they add up, and rows say what they are."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from moe_prof.collectors.stacks import Frame, Stack
from moe_prof.hotspots.summary import hotspots, phase_shares, places, rows
from tests.moe_prof.hotspots.stack_making import profile, stack

PROFILE = profile(
    stack("main@b", "gemm@b:/k/g.h:5", weight=4, thread="0", phase="gate_up"),
    stack("main@b", "gemm@b:/k/g.h:6", weight=2, thread="0", phase="down"),
    stack("main@b", "gemm@b:/k/g.h:5", weight=1, thread="1", phase="down"),
    stack("main@b", "wait@b", weight=3, thread="1", waiting=True),
)


def test_own_shares_add_up_to_one():
    """Each stack's cost is one function's own."""
    assert sum(spot.own for spot in hotspots(PROFILE)) == pytest.approx(1)


def test_a_function_is_split_by_phase_and_waiting():
    """The same function in two phases is two lines; totals are of the same phase."""
    found = {(s.key.function, s.key.phase, s.key.waiting): s for s in hotspots(PROFILE)}
    assert found["gemm", "gate_up", False].own == pytest.approx(0.4)
    assert found["gemm", "down", False].own == pytest.approx(0.3)
    assert found["main", "down", False].total == pytest.approx(0.3)
    assert found["wait", "", True].threads == {"1": 0.75}


def test_inlined_functions_have_no_cost_of_their_own():
    """Cost in inlined code is that of the function that contains it."""
    frames = (Frame("f", "b"), Frame("_mm_add", "b", "/usr/lib/gcc/x/include/e.h", 3, inlined=True))
    (spot,) = hotspots(profile(Stack(frames, 1.0)))
    assert (spot.key.function, spot.own) == ("f", 1.0)


def test_lines_and_instructions():
    """A line is one line in whatever phase; without an address there is no instruction."""
    found = places(PROFILE, instructions=False)
    assert [(p.file, p.line, p.share, p.samples) for p in found] == [
        ("/k/g.h", 5, 0.5, 2), ("/k/g.h", 6, 0.2, 1),
    ]  # fmt: skip
    assert places(PROFILE, instructions=True) == ()


def test_phases_of_the_work():
    """Shares are of everything, waiting included; the unknown rest is named."""
    assert phase_shares(PROFILE) == {"gate_up": 0.4, "down": pytest.approx(0.3)}
    assert phase_shares(profile(stack("f@b"))) == {"unknown": 1.0}


def test_rows():
    """Metrics, phase and thread columns, sampling errors, provenance."""
    made = rows(PROFILE, scenario="S3", variant="packed", lines=True)
    found = {(r.metric, r.source, r.phase, r.thread): r for r in made}
    own = found["self_share", "gemm [b]", "gate_up", None]
    assert (own.value, own.n, own.provenance, own.scope) == (0.4, 1, "measured", "roi")
    assert own.stddev == pytest.approx(math.sqrt(0.4 * 0.6 / 4))
    assert found["wait_share", "cpu-clock", None, None].value == pytest.approx(0.3)
    assert found["wait_share", "cpu-clock", None, "1"].value == 0.75
    assert found["wait_self_share", "wait [b]", None, None].value == pytest.approx(0.3)
    assert found["phase_share", "cpu-clock", "down", None].value == pytest.approx(0.3)
    assert found["line_share", "/k/g.h:5 gemm", None, None].value == 0.5
    assert found["samples", "cpu-clock", None, None].value == 4


def test_simulation_of_one_thread_knows_no_waiting():
    """A missing figure with its reason, not 0."""
    simulated = replace(PROFILE, provenance="simulated", collector="callgrind")
    made = rows(simulated, scenario="S3", variant="packed", lines=False)
    (wait,) = [row for row in made if row.metric == "wait_share"]
    assert (wait.value, wait.provenance) == (None, "unavailable")
    assert "nobody to wait for" in wait.source


def test_nothing():
    """An empty profile has no hotspots."""
    assert hotspots(profile()) == ()
