"""Callgrind's costs as weighted stacks: instructions by call path, line and address."""

from __future__ import annotations

from collections.abc import Sequence

from moe_prof.collectors.call_graph import Cost, Edge, Node, unfold
from moe_prof.collectors.callgrind_format import CallgrindProfile, FunctionKey
from moe_prof.collectors.stacks import Profile
from moe_prof.errors import InputError
from moe_prof.rows import Scope

NAME = "callgrind"
INSTRUCTIONS = "Ir"
_UNKNOWN_FILE = "???"


def profile(
    found: CallgrindProfile,
    *,
    event: str = INSTRUCTIONS,
    scope: Scope = "roi",
    notes: Sequence[str] = (),
) -> Profile:
    """One event of the profile as stacks.

    Raises:
        InputError: the profile has no such event.
    """
    if event not in found.events:
        raise InputError(f"the profile has no event {event}; it has {', '.join(found.events)}")
    index = found.events.index(event)
    costs = [
        Cost(_node(site.function), cost[index], _file(site.file), site.line or None, site.address)
        for site, cost in found.sites.items()
    ]
    edges = [
        Edge(
            _node(site.function),
            _node(callee),
            cost[index],
            _file(site.file),
            site.line or None,
            site.address,
        )
        for (site, callee), cost in found.call_sites.items()
    ]
    said = list(notes)
    if not found.complete:
        said.append(found.incomplete_reason)
    unit = "instructions" if event == INSTRUCTIONS else event
    return Profile(NAME, event, unit, unfold(costs, edges), "simulated", scope, tuple(said))


def _node(key: FunctionKey) -> Node:
    return Node(key.name, key.object)


def _file(name: str) -> str:
    return "" if name == _UNKNOWN_FILE else name
