"""Flame graphs: boxes that conserve cost, and stacks that sessions keep."""

from __future__ import annotations

import pytest

from moe_prof.report import read_material
from moe_prof.report.parts import Missing
from moe_prof.report.sections import flame
from tests.moe_prof.hotspots.stack_making import profile, stack
from tests.moe_prof.report import made_sessions as made


def graph_of(tmp_path, kept):
    """The graph of one variant's stacks."""
    folder = made.save(tmp_path / "s", "hotspots", [], profiles={"packed": kept})
    context = flame.make(read_material([folder]))
    assert not isinstance(context, Missing)
    (graph,) = context["graphs"]
    return graph


def boxes_of(tmp_path, kept):
    """Its boxes by name."""
    return {box.name: box for box in graph_of(tmp_path, kept).boxes}


def test_children_lie_within_their_caller(tmp_path):
    """Each level's widths add up to no more than the whole, and begin where the caller begins."""
    boxes = boxes_of(tmp_path, made.small_profile())
    assert boxes["all"].width == 1.0
    assert boxes["thread 0"].width == pytest.approx(0.8)
    assert boxes["gemm"].width == pytest.approx(0.6)
    assert boxes["gemm"].left == pytest.approx(boxes["thread 0"].left)
    assert boxes["store"].left == pytest.approx(boxes["gemm"].left + boxes["gemm"].width)
    assert (boxes["thread 1"].left, boxes["thread 1"].level) == (pytest.approx(0.8), 1)


def test_waiting_has_a_shade_of_its_own(tmp_path):
    """Where most of a box's cost is waiting."""
    boxes = boxes_of(tmp_path, made.small_profile())
    assert [boxes[n].shade == "wait" for n in ("thread 1", "thread 0", "gemm")] == [
        True, False, False,
    ]  # fmt: skip


def test_slivers_are_left_out(tmp_path):
    """What no eye could see does not make the page heavy."""
    kept = profile(stack("main", "big", weight=1000.0), stack("main", "sliver", weight=0.1))
    assert set(boxes_of(tmp_path, kept)) == {"all", "main", "big"}


def test_deep_stacks_need_no_recursion(tmp_path):
    """Recursive programs have thousands of frames."""
    graph = graph_of(tmp_path, profile(stack(*["f"] * 1500)))
    assert graph.levels == 1501


def test_no_stacks_no_graph(tmp_path):
    """With the command that makes them."""
    context = flame.make(read_material([made.save(tmp_path / "s", "bench", [])]))
    assert isinstance(context, Missing)
    assert "moe-prof hotspots" in context.reason
