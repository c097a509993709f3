"""A call tree for hatchet: the list of roots that ``hatchet.GraphFrame.from_literal`` takes.

``json.load`` of the file gives the literal. Metrics are ``time`` (own) and ``time (inc)`` for
seconds; for counts the unit's name stands in place of ``time``.

Source: hatchet user guide, "Literal" reader.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from moe_prof.collectors.stacks import Profile
from moe_prof.export.viewing import by_functions


@dataclass
class _Tree:
    """One function in its context, with its own cost and its callees."""

    own: float = 0.0
    children: dict[tuple[str, str], _Tree] = field(default_factory=dict)

    @property
    def inclusive(self) -> float:
        return self.own + sum(child.inclusive for child in self.children.values())


def write(profile: Profile, title: str) -> str:
    """The text of the file; the format has no place for a title."""
    del title
    metric = "time" if profile.unit == "s" else profile.unit
    top = _Tree()
    for stack in by_functions(profile).stacks:
        at = top
        for frame in stack.frames:
            at = at.children.setdefault((frame.function, frame.module_name), _Tree())
        at.own += stack.weight
    return json.dumps(_literal(top, metric)) + "\n"


def _literal(tree: _Tree, metric: str) -> list[dict[str, object]]:
    return [
        {
            "frame": {"name": function, "type": "function", "module": module},
            "metrics": {metric: child.own, f"{metric} (inc)": child.inclusive},
            "children": _literal(child, metric),
        }
        for (function, module), child in tree.children.items()
    ]
