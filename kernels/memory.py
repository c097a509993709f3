"""How much memory a scenario needs, how much this process may still take, and the check of both.

Linux grants memory it does not have, and kills the process when the pages are touched; so the check
must come before the allocation.
"""

from __future__ import annotations

import resource
from pathlib import Path

import psutil

from moe_prof.errors import UsageError
from moe_prof.machine.limits import memory_left_bytes
from moe_prof.machine.tree import Tree
from moe_prof.scenario import Scenario

GIB = 1 << 30


def weight_bytes(scenario: Scenario) -> int:
    """Bytes of the seeded weights: router and bias, E + S experts in int8, one scale a matrix.

    Experts that share memory count once.
    """
    _, d, h, e, _ = scenario.shape
    stored = scenario.stored_experts
    matrices = min(stored, scenario.distinct_experts or stored)
    return 4 * e * (d + 1) + 3 * matrices * d * h + 3 * 4 * stored


def required_bytes(scenario: Scenario) -> int:
    """Bytes needed to prepare and run one variant of a scenario.

    The weights, a second copy of them (a plan may lay them out again), and per token: x and y in
    f32, E scores in f32 and f64, and for each of its experts a gathered int8 row, gate, up
    and h (9 bytes a value) and one output row in f32.
    """
    n, d, h, e, _ = scenario.shape
    per_token = 8 * d + 12 * e + scenario.experts_per_token * (d + 9 * h + 4 * d)
    return 2 * weight_bytes(scenario) + n * per_token


def available_bytes() -> int:
    """Bytes this process may still allocate: the least that machine, cgroup and ulimit leave."""
    limits = [psutil.virtual_memory().available]
    left = memory_left_bytes(Tree(Path("/")))
    if left is not None:
        limits.append(left)
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        limits.append(soft - psutil.Process().memory_info().vms)
    return max(0, min(limits))


def check_memory(what: str, needed_bytes: int) -> None:
    """Refuse an allocation that this machine cannot hold.

    Raises:
        UsageError: ``needed_bytes`` is more than :func:`available_bytes`.
    """
    free = available_bytes()
    if needed_bytes > free:
        raise UsageError(
            f"{what} needs {needed_bytes / GIB:.1f} GiB of memory, {free / GIB:.1f} GiB are "
            "available; use smaller sizes or a larger machine"
        )
