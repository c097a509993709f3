"""Top-down rows from simulated counts and measured time, through the interval model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from moe_prof.analysis.query import RowIndex
from moe_prof.collectors import callgrind
from moe_prof.collectors.simulate import SimulatedCounts
from moe_prof.machine import Machine
from moe_prof.measure.expected import layer_macs
from moe_prof.measure.results import Job
from moe_prof.model.interval import (
    NODES,
    Bandwidth,
    Breakdown,
    Core,
    Events,
    LoopBound,
    breakdown,
)
from moe_prof.rows import Row, unavailable
from moe_prof.scenario import Scenario

COLLECTOR = "model"


@dataclass(frozen=True, slots=True)
class Subject:
    """What is modelled, and what was measured of it.

    Attributes:
        isa: the path that was timed and simulated.
        time_s: median wall time of one forward.
        cpu_s: median CPU time of one forward, all threads, None when unknown.
        waiting: share of thread time spent waiting, None when unknown.
        busy_s: working time by the phase timers, summed over threads, None when unknown.
        macs: useful multiply-accumulates of one forward.
    """

    scenario: str
    variant: str
    isa: str
    threads: int
    time_s: float
    cpu_s: float | None
    waiting: float | None
    busy_s: float | None
    macs: int

    @property
    def working_s(self) -> float:
        """Thread seconds of work in one forward; threads are taken as busy when not known.

        At least what the phase timers saw, since waiting is overstated where other programs run
        beside; never more than the CPU time, which leaves out what those programs took away.
        """
        by_wall_s = self.time_s * self.threads * (1 - (self.waiting or 0.0))
        working_s = max(by_wall_s, self.busy_s or 0.0)
        return working_s if self.cpu_s is None else min(working_s, self.cpu_s)


@dataclass(frozen=True, slots=True)
class Platform:
    """What the model needs of the machine.

    Attributes:
        core: None when the core is not known.
        clock_hz: calibrated during the run, None when it could not be.
        l3_misses: lines that one forward must fetch from beyond the last level, by variant.
        reasons: why ``core`` or ``clock_hz`` is missing.
    """

    core: Core | None
    clock_hz: float | None
    bandwidth: Bandwidth
    l3_misses: float | None
    reasons: tuple[str, ...] = ()


def subject_of(scenario: Scenario, index: RowIndex, job: Job) -> Subject:
    """What is modelled, from the rows of its measurement, which has a time."""
    time_s = index.value(job.variant, "time")
    assert time_s is not None
    return Subject(
        scenario=scenario.label,
        variant=job.variant,
        isa=job.isa or "",
        threads=int(index.value(job.variant, "threads") or 1),
        time_s=time_s,
        cpu_s=index.value(job.variant, "cpu_time"),
        waiting=index.value(job.variant, "spin_fraction"),
        busy_s=index.value(job.variant, "busy_time"),
        macs=layer_macs(scenario),
    )


def platform_of(
    machine: Machine, *, clock_hz: float | None, bandwidth: Bandwidth, in_memory: bool
) -> Platform:
    """What the model needs of a machine.

    Args:
        clock_hz / bandwidth: as measured in the run.
        in_memory: the weights do not stay in the last level of cache.
    """
    core = machine.core()
    reasons = []
    if core is None:
        reasons.append(f"the core is not known ({machine.processor.identification.basis})")
    if clock_hz is None:
        reasons.append("the core's clock could not be calibrated")
    return Platform(
        core=core,
        clock_hz=clock_hz,
        bandwidth=bandwidth,
        l3_misses=None if in_memory else 0.0,
        reasons=tuple(reasons),
    )


@dataclass(frozen=True, slots=True)
class Modelled:
    """Rows and the breakdown behind them, None when it could not be made."""

    rows: tuple[Row, ...]
    result: Breakdown | None


def model(
    subject: Subject, simulated: SimulatedCounts | None, platform: Platform, reason: str = ""
) -> Modelled:
    """All rows of one variant: simulated counts, and top-down nodes and IPC on top of them.

    Args:
        simulated: None when the variant was not simulated, ``reason`` says why.
    """
    rows = simulated_rows(subject.scenario, subject.variant, simulated, reason, macs=subject.macs)
    if simulated is None or simulated.counts is None:
        why = _why_not_counted(simulated, reason)
        return Modelled((*rows, *_missing_tree(subject, why)), None)
    if platform.core is None or platform.clock_hz is None:
        return Modelled((*rows, *_missing_tree(subject, "; ".join(platform.reasons))), None)
    if subject.working_s <= 0:
        return Modelled((*rows, *_missing_tree(subject, "no thread was seen working")), None)
    result = breakdown(
        platform.core,
        _events(simulated, platform.l3_misses),
        working_s=subject.working_s,
        clock_hz=platform.clock_hz,
        bandwidth=platform.bandwidth,
        loop=_loop_bound(simulated),
    )
    validity = "; ".join((f"interval model, {platform.core.name}", *result.warnings))
    lacking = _why_no_loops(simulated)
    return Modelled((*rows, *_tree_rows(subject, result, validity, lacking)), result)


def simulated_rows(
    scenario: str, variant: str, simulated: SimulatedCounts | None, reason: str, *, macs: int
) -> list[Row]:
    """Counts of one forward and ``instructions_per_mac``; the reason where there are none."""
    labels: dict[str, Any] = {
        "scenario": scenario, "variant": variant, "collector": callgrind.NAME,
    }  # fmt: skip
    if simulated is None or simulated.counts is None:
        why = _why_not_counted(simulated, reason)
        names = ("instructions", "instructions_per_mac")
        return [unavailable(name, "1", why, **labels) for name in names]
    counts = simulated.counts
    rows = callgrind.rows(counts, scenario=scenario, variant=variant, source=simulated.source)
    if macs:
        rows.append(
            Row(
                **labels,
                metric="instructions_per_mac",
                value=counts.instructions / macs,
                unit="1",
                provenance="simulated",
                source=simulated.source,
            )
        )
    return rows


def _events(simulated: SimulatedCounts, l3_misses: float | None) -> Events:
    counts, demand = simulated.counts, simulated.demand
    assert counts is not None
    return Events(
        instructions=counts.instructions,
        branch_mispredictions=counts.branch_mispredictions,
        l1i_misses=counts.l1i_misses,
        l1d_misses=counts.l1d_misses,
        l2_misses=counts.ll_misses,
        l3_misses=l3_misses,
        uops_per_instruction=1.0 if demand is None else demand.slots_per_instruction,
        uops_known=demand is not None,
    )


def _loop_bound(simulated: SimulatedCounts) -> LoopBound | None:
    demand = simulated.demand
    if demand is None:
        return None
    return LoopBound(demand.port_cycles, demand.dependency_cycles, demand.coverage)


def _tree_rows(subject: Subject, result: Breakdown, validity: str, lacking: str) -> list[Row]:
    """Nodes, IPC and cycles; ``lacking`` says why there is no throughput model, "" where one is."""
    rows = [
        Row(
            scenario=subject.scenario,
            variant=subject.variant,
            collector=COLLECTOR,
            metric=node.name,
            level=node.level,
            value=node.value,
            unit="slots",
            status="ok" if node.value is not None else "not_supported",
            provenance="modelled" if node.value is not None else "unavailable",
            source=f"{validity}: {node.note}"
            if node.value is not None
            else f"{node.note}{lacking} ({validity})",
        )
        for node in result.nodes
    ]
    possible = result.nodes[0].value is not None
    rows.append(
        Row(
            scenario=subject.scenario,
            variant=subject.variant,
            collector=COLLECTOR,
            metric="IPC",
            value=result.ipc if possible else None,
            unit="1",
            status="ok" if possible else "not_supported",
            provenance="modelled" if possible else "unavailable",
            source="simulated instructions / (working thread time x calibrated clock)"
            if possible
            else f"{result.ipc:.3g} would be impossible: {result.nodes[0].note}",
        )
    )
    rows.append(
        Row(
            scenario=subject.scenario,
            variant=subject.variant,
            collector=COLLECTOR,
            metric="working_cycles",
            value=result.cycles,
            unit="cycles",
            provenance="modelled",
            source="working thread time x calibrated clock",
        )
    )
    return rows


def _missing_tree(subject: Subject, why: str) -> list[Row]:
    rows = [
        unavailable(
            name, "slots", why, collector=COLLECTOR, level=level,
            scenario=subject.scenario, variant=subject.variant,
        )
        for name, level in NODES
    ]  # fmt: skip
    return [*rows, _missing(subject, "IPC", "1", why)]


def _missing(subject: Subject, metric: str, unit: str, why: str) -> Row:
    return unavailable(
        metric, unit, why, collector=COLLECTOR,
        scenario=subject.scenario, variant=subject.variant,
    )  # fmt: skip


def _why_no_loops(simulated: SimulatedCounts) -> str:
    """What stood in the way of the hot loops' bounds, and what would change it."""
    if simulated.demand is not None:
        return ""
    bad = [tool for tool in simulated.tools if not tool.usable]
    own = [tool for tool in bad if tool.remedy] or bad  # one tool's failure is told by the next
    reasons = [f"{tool.reason}; {tool.remedy}" if tool.remedy else tool.reason for tool in own]
    reasons += [loop.reason for loop in simulated.loops if loop.reason and not bad]
    return "".join(f": {reason}" for reason in list(dict.fromkeys(reasons))[:2])


def _why_not_counted(simulated: SimulatedCounts | None, reason: str) -> str:
    """What the tools say where the simulation was tried, else ``reason``."""
    if simulated is None:
        return reason or "not simulated"
    bad: Sequence[str] = [
        f"{tool.reason}; {tool.remedy}" if tool.remedy else tool.reason
        for tool in simulated.tools
        if not tool.usable
    ]
    return "; ".join(bad) or "the simulation gave no counts"
