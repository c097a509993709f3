"""Which part of a variant's work each phase of the forward has."""

from __future__ import annotations

import math
from dataclasses import dataclass

from moe_prof.analysis.query import RowIndex
from moe_prof.rows import Row

WORKING_TIME, INSTRUCTIONS = "working time", "instructions"
_METRICS = (
    ("phase_time", WORKING_TIME),
    ("phase_share", WORKING_TIME),
    ("instructions", INSTRUCTIONS),
)


@dataclass(frozen=True, slots=True)
class PhaseShares:
    """Shares of the phases, which add up to 1.

    Attributes:
        whole: what they are shares of.
        shares: by phase, in the order of the rows.
        rows: the row behind each.
    """

    whole: str
    shares: dict[str, float]
    rows: dict[str, Row]


def phase_shares(index: RowIndex, variant: str) -> PhaseShares | None:
    """By timers, else as a profiler sampled them, else by counted instructions."""
    for metric, whole in _METRICS:
        found = {p: v for p, v in index.phases(variant, metric).items() if math.isfinite(v)}
        total = math.fsum(found.values())
        if total > 0:
            rows = {phase: index.row(variant, metric, phase=phase) for phase in found}
            return PhaseShares(
                whole,
                {phase: value / total for phase, value in found.items()},
                {phase: row for phase, row in rows.items() if row is not None},
            )
    return None
