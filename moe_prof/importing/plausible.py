"""What cannot be: values beyond what a CPU can do are marked and explained, never changed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from moe_prof.collectors.perf_ratios import MAX_IPC
from moe_prof.collectors.perf_topdown import SUM_TOLERANCE
from moe_prof.rows import Row

_LEVEL1 = ("retiring", "bad_speculation", "frontend_bound", "backend_bound")
_PER_INSTRUCTION = re.compile(r"(?:.*\.)?CPI", re.IGNORECASE)
_PER_CYCLE = re.compile(r"(?:.*\.)?IPC", re.IGNORECASE)


def checked(rows: Iterable[Row]) -> tuple[Row, ...]:
    """The rows with impossible rates and level-1 sums marked ``out_of_bounds``."""
    found = [_checked_rate(row) for row in rows]
    groups: dict[tuple[object, ...], dict[str, int]] = {}
    for index, row in enumerate(found):
        node = row.metric.lower().removeprefix("tma_").removesuffix("(%)")
        if node in _LEVEL1 and row.unit == "slots" and row.value is not None:
            place = (row.variant, row.repeat, row.time_s, row.cpu, row.thread)
            groups.setdefault(place, {})[node] = index
    for nodes in groups.values():
        total = sum(found[index].value or 0.0 for index in nodes.values())
        if len(nodes) == len(_LEVEL1) and abs(total - 1) > SUM_TOLERANCE:
            for index in nodes.values():
                found[index] = _marked(
                    found[index], f"level 1 adds up to {100 * total:.1f} % of slots"
                )
    return tuple(found)


def _checked_rate(row: Row) -> Row:
    if row.value is None:
        return row
    if _PER_CYCLE.fullmatch(row.metric) and not 0 <= row.value <= MAX_IPC:
        return _marked(row, f"no core retires {row.value:g} instructions per cycle")
    if _PER_INSTRUCTION.fullmatch(row.metric) and row.value < 1 / MAX_IPC:
        return _marked(row, f"no core needs only {row.value:g} cycles per instruction")
    return row


def _marked(row: Row, why: str) -> Row:
    return replace(row, status="out_of_bounds", source=f"{row.source}; {why}")
