"""Flame graphs of the stacks that a session keeps: boxes placed in percent, so that any width fits.

The boxes are made here, so that the graph can be read and printed without a script; the script adds
zooming and searching.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from moe_prof.collectors.stacks import Profile, Stack
from moe_prof.hotspots.kept import read_profiles
from moe_prof.hotspots.names import short_name
from moe_prof.hotspots.waiting import is_waiting
from moe_prof.report.material import Material
from moe_prof.report.parts import Context, Missing
from moe_prof.units import share_text

SMALLEST_SHARE = 0.002
MOST_BOXES = 1600
"""Over all graphs of a page."""
MOST_GRAPHS = 16
_SHADES = 5
LONGEST_NAME = 200
FIRST_FUNCTION = 2
"""Level below the whole and the threads."""


@dataclass(frozen=True, slots=True)
class Box:
    """One frame of the graph.

    Attributes:
        name / title: short, and whole with its share.
        level: depth, the whole being 0.
        left / width: shares of the whole, 0..1.
        shade: which of the colours; ``wait`` for waiting.
    """

    name: str
    title: str
    level: int
    left: float
    width: float
    shade: str


@dataclass(frozen=True, slots=True)
class Graph:
    """One variant's boxes."""

    label: str
    boxes: tuple[Box, ...]
    levels: int
    hidden: bool


@dataclass(slots=True)
class _Node:
    weight: float = 0.0
    waiting: float = 0.0
    children: dict[str, _Node] = field(default_factory=dict)


def make(material: Material) -> Context | Missing:
    """A graph for each profile."""
    several = len(material.sources) > 1
    found = [
        (f"{source.label}: {variant}" if several else variant, profile)
        for source in material.sources
        for variant, profile in read_profiles(source.session.folder, source.variants)
        if profile.total > 0
    ]
    if not found:
        return Missing("no session keeps call stacks; 'moe-prof hotspots' does")
    shown = found[:MOST_GRAPHS]
    graphs = [_graph(label, profile, MOST_BOXES // len(shown)) for label, profile in shown]
    return {"graphs": graphs, "left": [label for label, _ in found[MOST_GRAPHS:]]}


def _graph(label: str, profile: Profile, most: int) -> Graph:
    root = _Node()
    for stack in profile.stacks:
        _add(root, stack)
    boxes = sorted(_boxes("all", root, 0, 0.0, root.weight), key=lambda box: -box.width)
    kept = sorted(boxes[:most], key=lambda box: (box.level, box.left))
    levels = 1 + max(box.level for box in kept)
    return Graph(label, tuple(kept), levels, len(boxes) > most)


def _add(root: _Node, stack: Stack) -> None:
    names = [frame.function for frame in stack.frames]
    if stack.thread:
        names.insert(0, f"thread {stack.thread}")
    waits = stack.waiting or is_waiting(stack)
    node = root
    for name in (None, *names):
        if name is not None:
            node = node.children.setdefault(name, _Node())
        node.weight += stack.weight
        node.waiting += stack.weight if waits else 0.0


def _boxes(name: str, node: _Node, level: int, left: float, whole: float) -> Iterator[Box]:
    """A node and those below it, the larger ones to the left; slivers are left out."""
    pending = [(name, node, level, left)]
    while pending:
        name, node, level, left = pending.pop()
        share = node.weight / whole
        if share < SMALLEST_SHARE:
            continue
        waits = node.waiting > node.weight / 2
        shade = "wait" if waits else str(sum(map(ord, name)) % _SHADES)
        text = name if level < FIRST_FUNCTION else short_name(name)
        yield Box(
            text[:LONGEST_NAME],
            f"{name[:LONGEST_NAME]}, {share_text(share)}",
            level,
            left,
            share,
            shade,
        )
        for below, child in sorted(node.children.items(), key=lambda item: -item[1].weight):
            pending.append((below, child, level + 1, left))
            left += child.weight / whole
