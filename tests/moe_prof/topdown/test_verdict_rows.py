"""From tidy rows to a verdict, as rows again."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

from moe_prof.analysis.roofline import Floor
from moe_prof.analysis.verdict import Cause
from moe_prof.rows import unavailable
from moe_prof.topdown.verdicts import verdict_rows
from tests.moe_prof.topdown.made import row

BUSY = [row("time", 1e-3), row("threads", 1.0), row("Retiring", 0.8, level=1, unit="slots")]
FLOOR = Floor(1e-4, "memory", "l2", 0.0, 1e-4, "test")


def judged(rows, variants=("scalar",), **options):
    """Texts by (variant, metric), and the rows."""
    defaults = {"scenario": "s", "usable_cpus": 2, "floors": {}, "simulated": {}}
    made = verdict_rows(rows, variants, **(defaults | options))
    return {(r.variant, r.metric): r.source for r in made}, made


def test_one_verdict_per_variant():
    """The cause stands in ``source``, the value is None."""
    _, made = judged([*BUSY, row("time", 1e-3, "openmp")], ("scalar", "openmp"))
    verdicts = [r for r in made if r.metric == "verdict"]
    assert [(r.variant, r.value) for r in verdicts] == [("scalar", None), ("openmp", None)]
    assert all(r.source in get_args(Cause) for r in verdicts)


def test_the_cause_has_evidence_and_advice():
    """Three rows a variant."""
    texts, made = judged(BUSY)
    assert texts["scalar", "verdict"] == "instruction_bound"
    assert "Retiring 80.0 %" in texts["scalar", "verdict_evidence"]
    assert texts["scalar", "verdict_advice"]
    assert len(made) == 3


def test_a_verdict_is_as_good_as_its_slots():
    """Measured slots give a measured verdict, others a modelled one."""
    modelled = [*BUSY[:2], row("Retiring", 0.8, level=1, provenance="modelled")]
    assert {r.provenance for r in judged(BUSY)[1]} == {"measured"}
    assert {r.provenance for r in judged(modelled)[1]} == {"modelled"}


def test_no_slots_are_said_in_the_evidence():
    """The reason of the missing node, not a bare unknown."""
    rows = [*BUSY[:2], unavailable("Retiring", "slots", "no PMU", collector="m", variant="scalar")]
    texts, _ = judged(rows)
    assert (texts["scalar", "verdict"], texts["scalar", "verdict_evidence"]) == (
        "unknown", "its slots are not known: no PMU",
    )  # fmt: skip


def test_a_variant_without_a_time_is_unknown_with_its_reason():
    """A wrong variant has a verdict, too, and never one about speed."""
    rows = [
        *BUSY[1:], unavailable("time", "s", "wrong result", collector="b", variant="scalar"),
    ]  # fmt: skip
    texts, _ = judged(rows)
    assert (texts["scalar", "verdict"], texts["scalar", "verdict_evidence"]) == (
        "unknown", "it has no time: wrong result",
    )  # fmt: skip
    assert texts["scalar", "verdict_advice"].startswith("put that right first")


def test_a_variant_that_came_too_late_needs_time():
    """Nothing is wrong with it."""
    why = "a sample takes 9 s, too long for the limit"
    rows = [*BUSY[1:], unavailable("time", "s", why, collector="b", variant="scalar")]
    texts, _ = judged(rows)
    assert "--max-time" in texts["scalar", "verdict_advice"]


def test_more_threads_than_cpus():
    """The machine's CPUs are part of the evidence."""
    rows = [*BUSY, row("threads", 3.0)]
    assert judged(rows)[0]["scalar", "verdict"] == "oversubscribed"


def test_busy_times_tell_who_works():
    """One of two threads does nearly all: serial; a little more than its share: imbalance."""
    waiting = [*BUSY, row("threads", 2.0), row("spin_fraction", 0.4)]
    serial = [row("busy_time", 0.9, thread="0"), row("busy_time", 0.1, thread="1")]
    uneven = [row("busy_time", 0.65, thread="0"), row("busy_time", 0.35, thread="1")]
    even = [row("busy_time", 0.5, thread="0"), row("busy_time", 0.5, thread="1")]
    found = [judged([*waiting, *busy])[0]["scalar", "verdict"] for busy in (serial, uneven, even)]
    assert found == ["serial_bound", "imbalance", "spin_bound"]


def test_the_floor_gives_the_level_of_the_weights():
    """A variant at its bandwidth floor is bound by the level that holds the weights."""
    rows = [*BUSY[:2], row("roofline_fraction_path", 0.9)]
    assert judged(rows, floors={"scalar": FLOOR})[0]["scalar", "verdict"] == "l2_bound"


def test_single_repetitions_are_no_evidence():
    """Only summary rows count."""
    rows = [*BUSY[:2], row("Retiring", 0.8, repeat=0)]
    assert judged(rows)[0]["scalar", "verdict"] == "unknown"


def test_a_stand_in_speaks_where_nothing_else_is_known():
    """Slots of another path give a verdict that says so, unless the timed one gives its own."""
    rows = [*BUSY, replace(row("modelled_isa", 0.0), value=None, source="avx2")]
    texts, _ = judged(rows)
    assert texts["scalar", "verdict"] == "instruction_bound"
    assert texts["scalar", "verdict_evidence"].startswith("on its avx2 path, which was simulated")
    near = [*rows, row("roofline_fraction_path", 0.95)]
    texts, _ = judged(near, floors={"scalar": FLOOR})
    assert texts["scalar", "verdict"] == "l2_bound"
    assert "avx2" not in texts["scalar", "verdict_evidence"]
