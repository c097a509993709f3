"""Counting a variant with perf stat: the native driver's forward loop, nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from moe_prof.collectors import perf_facts, perf_stat, perf_topdown_plan
from moe_prof.collectors.perf_collect import Collected, collect_counters, collect_topdown
from moe_prof.collectors.perf_rows import Labels
from moe_prof.collectors.perf_topdown_plan import Facts
from moe_prof.errors import MoeProfError, UnavailableError
from moe_prof.kernels import driver
from moe_prof.machine import Machine
from moe_prof.measure.expected import layer_macs
from moe_prof.rows import Row, unavailable
from moe_prof.scenario import Scenario

COLLECTOR = "perf_stat"
MIN_TIME_S = 0.5


@dataclass(frozen=True, slots=True)
class Counters:
    """What perf can do here.

    Attributes:
        events: those that can be counted, in perf's names; empty when perf is of no use.
        facts: what the choice of top-down arguments depends on, None without perf.
        reason: why hardware events are not among ``events``, "" when they are.
        topdown_reason: why slots cannot be counted, "" when they can.
        remedy: what would change it.
    """

    events: tuple[str, ...]
    facts: Facts | None
    reason: str
    topdown_reason: str
    remedy: str

    @property
    def has_hardware(self) -> bool:
        """Whether cycles and instructions can be counted."""
        return {"cycles", "instructions"} <= set(self.events)


NO_COUNTERS = Counters((), None, "perf was not asked", "perf was not asked", "")


@dataclass(frozen=True, slots=True)
class Target:
    """The variant to count: what runs, for how many threads."""

    scenario: Scenario
    variant: str
    isa: str | None
    threads: int
    seed: int


def find_counters(machine: Machine) -> Counters:
    """Ask perf and the system what can be counted; never raises for what is missing."""
    found = perf_facts.gather(machine)
    usable = perf_facts.judge(found)
    if not usable.usable:
        return Counters((), None, usable.reason, usable.reason, usable.remedy)
    events = tuple(e for e, status in perf_stat.probe_events().items() if status == "ok")
    hardware = perf_facts.judge_hardware(found)
    facts = perf_facts.plan_facts(found)
    reason = ""
    if not {"cycles", "instructions"} <= set(events):
        reason = "perf counts no cycles here" if hardware.usable else hardware.reason
    return Counters(events, facts, reason, reason or _why_no_slots(facts), hardware.remedy)


def count(target: Target, counters: Counters, *, folder: Path, timeout_s: float) -> list[Row]:
    """Events of one forward, and ratios of them.

    Counts are divided by the forwards in the region of interest; ratios are as counted.

    Raises:
        UnavailableError: perf refuses, or the variant is not in the native driver.
        ToolError: perf failed.
        WorkloadError: the workload crashed or did not end in time.
    """
    collected = collect_counters(
        _command(target), folder, _labels(target), timeout_s=timeout_s, events=counters.events
    )
    forwards = driver.parse_result(collected.run.stdout).iterations
    rows = [_per_forward(row, forwards) for row in collected.rows]
    macs = layer_macs(target.scenario)
    rows += [
        replace(
            row,
            metric="instructions_per_mac",
            value=row.value / macs,
            unit="1",
            stddev=None,
            source="instructions of all threads, waiting included, / useful MACs",
        )
        for row in rows
        if row.metric == "instructions" and row.value is not None and macs and row.cpu is None
    ][:1]
    return rows


def topdown(target: Target, counters: Counters, *, folder: Path, timeout_s: float) -> list[Row]:
    """Top-down nodes, by the first way that gives any.

    Raises:
        UnavailableError: no way gives a node; names the refusals.
        WorkloadError: the workload crashed or did not end in time.
    """
    if counters.facts is None:
        raise UnavailableError(counters.topdown_reason)
    collected = collect_topdown(
        _command(target), folder, _labels(target), facts=counters.facts, timeout_s=timeout_s
    )
    nodes = [row for row in collected.rows if row.level is not None and row.value is not None]
    return [replace(row, source=_joined(row.source, collected)) for row in nodes]


def missing_rows(target: Target, metrics: Sequence[str], error: MoeProfError) -> list[Row]:
    """The rows that say why a variant has no counters."""
    return [
        unavailable(
            metric, "1", str(error), collector=COLLECTOR,
            scenario=target.scenario.label, variant=target.variant,
        )
        for metric in metrics
    ]  # fmt: skip


def _why_no_slots(facts: Facts) -> str:
    try:
        perf_topdown_plan.attempts(facts)
    except UnavailableError as error:
        return str(error)
    return ""


def _command(target: Target) -> list[str]:
    program = driver.find_driver(target.variant, isa=target.isa)
    return driver.driver_argv(
        program,
        target.scenario,
        iterations=1,
        threads=target.threads,
        seed=target.seed,
        warmup=2,
        min_time_s=MIN_TIME_S,
    )


def _labels(target: Target) -> Labels:
    return Labels(scenario=target.scenario.label, variant=target.variant, collector=COLLECTOR)


def _per_forward(row: Row, forwards: int) -> Row:
    if row.value is None or row.metric not in perf_stat.EVENTS:
        return row
    note = f"per forward, {forwards} counted"
    return replace(
        row,
        value=row.value / forwards,
        stddev=None if row.stddev is None else row.stddev / forwards,
        source=f"{row.source}; {note}" if row.source else note,
    )


def _joined(source: str, collected: Collected) -> str:
    return "; ".join(part for part in (source, *collected.notes) if part)
