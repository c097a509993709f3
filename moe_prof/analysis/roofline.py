"""The roofline bound: the least time in which this machine could do a layer's forward.

The layer has two parts in sequence, because no expert can start before it is chosen: the router
(fp32) and the experts (int8). Each needs at least the time of its arithmetic at the measured peak
rate and the time to read its weights once at the measured bandwidth; the two overlap at best, so a
part's floor is the longer one::

    floor = max(router MACs / fp32 rate, router bytes / bandwidth)
          + max(expert MACs / int8 rate, expert bytes / bandwidth)

The bandwidth is that of the nearest level that can hold all weights the forward touches, with the
private caches of the team's cores taken together. Everything is taken in the machine's favour
(exponentials, quantization, gathering and activations cost nothing), so the fraction floor / time
can approach 1 but hardly pass it: only by the scatter of both measurements, and where weights a
little larger than a level are partly served by it.

Two fractions are of interest: against the machine's best exact int8 path (what a better kernel
could reach) and against the path that ran (what a better kernel of the same path could reach).

Source: the roofline model (S. Williams, A. Waterman, D. Patterson, CACM 52(4), 2009), with ceilings
measured on this machine in the same run instead of taken from data sheets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from moe_prof.analysis.ceilings import LEVELS, Ceiling, Ceilings, Level
from moe_prof.analysis.work import count_work
from moe_prof.scenario import Scenario

Limit = Literal["compute", "memory"]
_Part = tuple[float, Limit]
"""Seconds, and what takes them."""


@dataclass(frozen=True, slots=True)
class LayerWork:
    """What one forward must do at least.

    Attributes:
        router_macs / router_bytes: fp32 multiply-adds and weight bytes of the router.
        expert_macs / expert_bytes: int8 multiply-adds of all tokens, and weight bytes of all
            experts that get a token, each read once.
    """

    router_macs: int
    router_bytes: int
    expert_macs: int
    expert_bytes: int


@dataclass(frozen=True, slots=True)
class Floor:
    """The bound for one team and one set of paths.

    Attributes:
        time_s: the floor; None when the machine's int8 or fp32 rate is not known.
        limit: which of arithmetic and memory makes up most of it.
        level: where the weights live.
        router_s / experts_s: the two parts.
        source: the ceilings that were used, for reports.
        ceiling: the one that makes up most of the floor, in words.
    """

    time_s: float | None
    limit: Limit | None
    level: Level
    router_s: float | None
    experts_s: float | None
    source: str
    ceiling: str = ""


def layer_work(scenario: Scenario, touched_experts: int | None = None) -> LayerWork:
    """Work of one forward.

    Args:
        touched_experts: experts that got a token, the shared one included; None: as many as uniform
            random routing needs on average. Of experts that share memory, as many as are likely to
            differ among them count.
    """
    counts = count_work(scenario)
    experts: float = counts.experts_expected if touched_experts is None else touched_experts
    if scenario.distinct_experts:
        shared = scenario.distinct_experts
        experts = shared * (1.0 - (1.0 - 1.0 / shared) ** experts)
    return LayerWork(
        router_macs=counts.router_macs,
        router_bytes=counts.router_bytes if scenario.num_tokens else 0,
        expert_macs=counts.expert_macs,
        expert_bytes=round(experts * counts.expert_bytes),
    )


def floor(work: LayerWork, ceilings: Ceilings, threads: int, path: str | None = None) -> Floor:
    """The bound of a team of threads.

    Args:
        path: only the instructions of this path; None: the best exact ones of the machine.
    """
    level = weights_level(work, ceilings, threads)
    int8, fp32 = ceilings.best_int8(threads, path), ceilings.best_fp32(threads, path)
    if int8 is None or fp32 is None or not int8.value or not fp32.value:
        what = "int8" if int8 is None else "fp32"
        return Floor(
            None, None, level, None, None,
            f"no {what} ceiling of path {path or 'any'} with {threads} threads was measured",
        )  # fmt: skip
    read = read_ceiling(ceilings, level, threads)
    rate = read.value if read is not None else None
    router = _part(work.router_macs / fp32.value, work.router_bytes, rate)
    experts = _part(work.expert_macs / int8.value, work.expert_bytes, rate)
    compute_s = sum(seconds for seconds, limit in (router, experts) if limit == "compute")
    total_s = router[0] + experts[0]
    used = f"{int8.name}, {fp32.name}, {read.name if read is not None else 'no bandwidth known'}"
    return Floor(
        time_s=total_s,
        limit="compute" if compute_s * 2 >= total_s else "memory",
        level=level,
        router_s=router[0],
        experts_s=experts[0],
        source=f"{used}, {threads} thread{'s' if threads > 1 else ''}",
        ceiling=_ceiling_text((router, fp32), (experts, int8), read),
    )


def _ceiling_text(
    router: tuple[_Part, Ceiling], experts: tuple[_Part, Ceiling], read: Ceiling | None
) -> str:
    """The ceiling of the longer part: ``exact int8 rate, by avx2``, ``read rate of the L2``."""
    (_, limit), rate = max(router, experts, key=lambda part: part[0][0])
    if limit == "memory" and read is not None:
        level = read.name.removeprefix("read_")
        return f"read rate of the {level if level == 'memory' else level.upper()}"
    kind, _, path = rate.name.partition("_")
    return f"{'exact ' if kind == 'int8' else ''}{kind} rate, by {path}"


def fraction(bound: Floor, time_s: float) -> float | None:
    """``roofline_fraction``: floor over measured time; None without a floor or a time."""
    if bound.time_s is None or time_s <= 0:
        return None
    return bound.time_s / time_s


def weights_level(work: LayerWork, ceilings: Ceilings, threads: int) -> Level:
    """The nearest level that holds the touched weights, the team's private caches together."""
    needed = work.router_bytes + work.expert_bytes
    for level in LEVELS:
        entry = ceilings.find(f"read_{level}", threads)
        if entry is not None and (entry.capacity_bytes or 0) >= needed:
            return level
    return "memory"


def read_ceiling(ceilings: Ceilings, level: Level, threads: int) -> Ceiling | None:
    """The level's bandwidth; where it is missing, that of the next faster level that is known.

    A faster level only lowers the floor, so the bound stays a bound.
    """
    for name in reversed(LEVELS[: LEVELS.index(level) + 1]):
        entry = ceilings.find(f"read_{name}", threads)
        if entry is not None and entry.value:
            return entry
    return None


def _part(compute_s: float, read_bytes: int, bytes_per_s: float | None) -> _Part:
    memory_s = read_bytes / bytes_per_s if bytes_per_s else 0.0
    return (memory_s, "memory") if memory_s > compute_s else (compute_s, "compute")
