"""How much CPU time other programs and the hypervisor took while something was measured.

Source: the ``cpu`` line of /proc/stat through psutil, and the CPU time of this process and of the
children it has waited for.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

import psutil

NOTEWORTHY = 0.1


@dataclass(frozen=True, slots=True)
class Moment:
    """CPU seconds so far: all programs, taken by the hypervisor, this process with its children."""

    wall_s: float
    busy_s: float
    stolen_s: float
    own_s: float


def now() -> Moment:
    """The counters at this moment."""
    cpu, own = psutil.cpu_times(), os.times()
    busy_s = cpu.user + cpu.nice + cpu.system + getattr(cpu, "irq", 0.0) + getattr(
        cpu, "softirq", 0.0
    )  # fmt: skip
    return Moment(
        wall_s=time.monotonic(),
        busy_s=busy_s,
        stolen_s=getattr(cpu, "steal", 0.0),
        own_s=own.user + own.system + own.children_user + own.children_system,
    )


def taken_by_others(before: Moment, after: Moment, cpus: int) -> float | None:
    """Share of the CPUs' time that others took between two moments, 0..1; None for no time.

    Args:
        cpus: CPUs of the machine.
    """
    span_s = (after.wall_s - before.wall_s) * cpus
    if span_s <= 0:
        return None
    others_s = (after.busy_s - before.busy_s) - (after.own_s - before.own_s)
    stolen_s = after.stolen_s - before.stolen_s
    return min(1.0, max(0.0, others_s + stolen_s) / span_s)


def remark(share: float | None) -> str:
    """A warning for the report; "" when the machine was quiet."""
    if share is None or share < NOTEWORTHY:
        return ""
    return (
        f"other programs (or the hypervisor) took {share:.0%} of this machine's CPU time during "
        "timing: times scatter, and threads seem to wait for each other more than they would; "
        "repeat on a quiet machine, or with fewer --threads"
    )
