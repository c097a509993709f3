"""From a call graph to weighted stacks.

A call graph knows each function's own cost and the cost of its calls, but not which caller's caller
a cost belongs to. As every tool does that draws such graphs, the cost of a function's callees is
divided among its callers in proportion to what each of them caused. Costs of functions and edges
are conserved; a call that closes a cycle is a leaf.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from moe_prof.collectors.stacks import Frame, Stack, merged

SMALLEST_SHARE = 1e-6  # of the total: smaller branches end in their first function
_DEEPEST = 200


@dataclass(frozen=True, slots=True)
class Node:
    """A function and the module it lies in."""

    function: str
    module: str = ""


@dataclass(frozen=True, slots=True)
class Cost:
    """Own cost of a node at one place in it; the place may be unknown."""

    node: Node
    value: float
    file: str = ""
    line: int | None = None
    address: int | None = None


@dataclass(frozen=True, slots=True)
class Edge:
    """Cost of calls from one node to another, callees of the callee included, at one place."""

    caller: Node
    callee: Node
    value: float
    file: str = ""
    line: int | None = None
    address: int | None = None


def unfold(costs: Sequence[Cost], edges: Sequence[Edge]) -> tuple[Stack, ...]:
    """The graph as stacks, whose weights add up to the sum of the own costs.

    Calls of a function by itself are left out: their cost is its own.
    """
    return merged(_Graph(costs, edges).stacks())


class _Graph:
    def __init__(self, costs: Sequence[Cost], edges: Sequence[Edge]) -> None:
        self._own: dict[Node, list[Cost]] = {}
        self._out: dict[Node, list[Edge]] = {}
        self._incoming: dict[Node, float] = {}
        for cost in costs:
            self._own.setdefault(cost.node, []).append(cost)
        for edge in edges:
            if edge.caller != edge.callee and edge.value > 0:
                self._out.setdefault(edge.caller, []).append(edge)
                self._incoming[edge.callee] = self._incoming.get(edge.callee, 0.0) + edge.value
        nodes = dict.fromkeys((*self._own, *self._out))
        self._inclusive: Mapping[Node, float] = {
            node: sum(cost.value for cost in self._own.get(node, ()))
            + sum(edge.value for edge in self._out.get(node, ()))
            for node in nodes
        }
        self._total = sum(cost.value for cost in costs)

    def stacks(self) -> Iterator[Stack]:
        """From what no caller accounts for, downwards; scaled where cycles lose a part."""
        begins = {
            node: inclusive - self._incoming.get(node, 0.0)
            for node, inclusive in self._inclusive.items()
        }
        smallest = SMALLEST_SHARE * self._total
        positive = {node: value for node, value in begins.items() if value > smallest}
        reached = sum(positive.values())
        scale = self._total / reached if reached else 0.0
        for node, value in positive.items():
            yield from self._walk(node, value * scale, ())

    def _walk(self, node: Node, value: float, path: tuple[Frame, ...]) -> Iterator[Stack]:
        inclusive = self._inclusive.get(node, 0.0)
        known = {(frame.function, frame.module) for frame in path}
        small = value <= SMALLEST_SHARE * self._total or len(path) >= _DEEPEST
        if small or not inclusive or (node.function, node.module) in known:
            yield Stack((*path, Frame(node.function, node.module)), value, samples=0)
            return
        part = value / inclusive
        for cost in self._own.get(node, ()):
            leaf = Frame(node.function, node.module, cost.file, cost.line, cost.address)
            if cost.value:
                yield Stack((*path, leaf), cost.value * part, samples=0)
        for edge in self._out.get(node, ()):
            frame = Frame(node.function, node.module, edge.file, edge.line, edge.address)
            yield from self._walk(edge.callee, edge.value * part, (*path, frame))


def without_places(stack: Stack) -> Stack:
    """The stack by functions alone: files, lines and addresses dropped, inlined frames gone."""
    frames = tuple(
        replace(frame, file="", line=None, address=None)
        for frame in stack.frames
        if not frame.inlined
    )
    return replace(stack, frames=frames)
