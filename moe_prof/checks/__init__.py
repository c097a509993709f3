"""The doctor's checks: one table; a new check is one small function and one row."""

from __future__ import annotations

from dataclasses import dataclass, replace

from moe_prof.checks import building, isa_paths, machine_state, parallel, profilers
from moe_prof.checks.base import GROUPS, Check, Context, Group
from moe_prof.collectors.base import Availability

__all__ = ["CHECKS", "GROUPS", "Check", "Context", "Finding", "Group", "findings"]

CHECKS: tuple[Check, ...] = tuple(
    check
    for check in (
        *building.CHECKS,
        *isa_paths.CHECKS,
        *profilers.CHECKS,
        *parallel.CHECKS,
        *machine_state.CHECKS,
    )
    if check.used_by != ()
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One check's answer."""

    group: Group
    availability: Availability


def findings(context: Context, checks: tuple[Check, ...] = CHECKS) -> tuple[Finding, ...]:
    """All findings, in the table's order."""
    return tuple(
        Finding(check.group, replace(check.judge(context), name=check.name)) for check in checks
    )
