"""From call graphs to stacks: costs are conserved, callers share in proportion."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moe_prof.collectors.call_graph import Cost, Edge, Node, unfold, without_places
from moe_prof.collectors.stacks import Frame, Stack, by_function


def node(name):
    """A node without a module."""
    return Node(name)


def test_callers_share_in_proportion():
    """A callee's own cost is divided by what each caller caused."""
    costs = [Cost(node("a"), 2), Cost(node("b"), 3), Cost(node("c"), 12)]
    edges = [Edge(node("a"), node("c"), 9), Edge(node("b"), node("c"), 3)]
    found = {tuple(f.function for f in s.frames): s.weight for s in unfold(costs, edges)}
    assert found == {("a",): 2, ("a", "c"): 9, ("b",): 3, ("b", "c"): 3}


def test_places_of_costs_and_calls():
    """Lines and addresses of costs stand on the leaf, those of calls on the caller."""
    costs = [Cost(node("f"), 1, "f.c", 7, 31)]
    edges = [Edge(node("main"), node("f"), 1, "m.c", 3, 15)]
    (stack,) = unfold(costs, edges)
    assert stack.frames == (Frame("main", "", "m.c", 3, 15), Frame("f", "", "f.c", 7, 31))
    assert without_places(stack).frames == (Frame("main"), Frame("f"))


def test_recursion_costs_its_function():
    """Calls of a function by itself are no edges."""
    costs = [Cost(node("f"), 5)]
    edges = [Edge(node("main"), node("f"), 5), Edge(node("f"), node("f"), 4)]
    assert by_function(unfold(costs, edges))["f", ""] == (5, 5)


def test_mutual_recursion_ends_and_conserves():
    """A cycle is cut where it closes; nothing is lost."""
    costs = [Cost(node("even"), 3), Cost(node("odd"), 2)]
    edges = [
        Edge(node("main"), node("even"), 5),
        Edge(node("even"), node("odd"), 4),
        Edge(node("odd"), node("even"), 2),
    ]
    assert sum(s.weight for s in unfold(costs, edges)) == pytest.approx(5)


@st.composite
def graphs(draw):
    """Acyclic graphs: own costs, and calls to later nodes whose costs follow from the callees."""
    count = draw(st.integers(1, 7))
    own = draw(st.lists(st.integers(0, 100), min_size=count, max_size=count))
    weights = {
        (caller, callee): draw(st.integers(0, 3))
        for caller in range(count)
        for callee in range(caller + 1, count)
    }
    inclusive = [0.0] * count
    edges = []
    for index in reversed(range(count)):
        inclusive[index] = own[index] + sum(
            edge.value for edge in edges if edge.caller == node(str(index))
        )
        called = sum(weights[caller, index] for caller in range(index))
        for caller in range(index):
            if weights[caller, index]:
                part = inclusive[index] * weights[caller, index] / called
                edges.append(Edge(node(str(caller)), node(str(index)), part))
    return [Cost(node(str(i)), value) for i, value in enumerate(own)], edges


@given(graphs())
def test_own_costs_are_conserved(graph):
    """Each function has the same own cost in the stacks as in the graph."""
    costs, edges = graph
    found = by_function(unfold(costs, edges))
    for cost in costs:
        own = found.get((cost.node.function, ""), (0.0, 0.0))[0]
        assert own == pytest.approx(cost.value, abs=1e-3 + 1e-4 * sum(c.value for c in costs))


def test_nothing_costs_nothing():
    """An empty graph has no stacks."""
    assert unfold([], []) == ()
    assert unfold([Cost(node("f"), 0)], []) == ()


def test_inlined_frames_go_with_the_places():
    """Functions alone are those that have code of their own."""
    stack = Stack((Frame("f", line=3), Frame("g", line=4, inlined=True)), 1)
    assert without_places(stack).frames == (Frame("f"),)
