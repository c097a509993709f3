"""Counting a variant with perf stat: the native driver's forward loop, nothing else."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from moe_prof.collectors import perf_facts, perf_stat, perf_topdown_plan
from moe_prof.collectors.perf_collect import Collected, collect_counters, collect_topdown
from moe_prof.collectors.perf_reading import take_apart
from moe_prof.collectors.perf_rows import Labels
from moe_prof.collectors.perf_topdown_plan import Facts
from moe_prof.collectors.toolrun import keeping_files
from moe_prof.errors import ToolError, UnavailableError
from moe_prof.kernels import driver
from moe_prof.machine import Machine
from moe_prof.measure.expected import layer_macs
from moe_prof.model.interval import NODES
from moe_prof.rows import Row, Status, unavailable
from moe_prof.scenario import Scenario

COLLECTOR = "perf_stat"
MIN_TIME_S = 0.5
WHOLE_PCT = 99.5
"""Shares of time printed with two decimals that add up to this are the whole time."""


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
    try:
        probed = perf_stat.probe_events()
    except (UnavailableError, ToolError) as error:
        return Counters((), None, str(error), str(error), usable.remedy)
    events = tuple(event for event, status in probed.items() if status == "ok")
    hardware = perf_facts.judge_hardware(found)
    facts = perf_facts.plan_facts(found)
    reason = ""
    if not {"cycles", "instructions"} <= set(events):
        reason = "perf counts no cycles here" if hardware.usable else hardware.reason
    return Counters(events, facts, reason, reason or _why_no_slots(facts), hardware.remedy)


def count(target: Target, counters: Counters, *, folder: Path, timeout_s: float) -> list[Row]:
    """Events of one forward, and ratios of them.

    Counts are divided by the forwards in the region of interest and stand under the events' plain
    names; ratios are as counted.

    Raises:
        UnavailableError: perf refuses, or the variant is not in the native driver.
        ToolError: perf failed.
        WorkloadError: the workload crashed or did not end in time.
    """
    with keeping_files(str(folder)):
        collected = collect_counters(
            _command(target), folder, _labels(target), timeout_s=timeout_s, events=counters.events
        )
    forwards = driver.parse_result(collected.run.stdout).iterations
    rows = [_per_forward(row, forwards) for row in plainly_named(collected.rows)]
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
        if row.metric == "instructions" and row.value is not None and macs
    ]
    return rows


def topdown(target: Target, counters: Counters, *, folder: Path, timeout_s: float) -> list[Row]:
    """Top-down nodes, by the first way that gives any.

    Raises:
        UnavailableError: no way gives a node; names the refusals.
        WorkloadError: the workload crashed or did not end in time.
    """
    if counters.facts is None:
        raise UnavailableError(counters.topdown_reason)
    with keeping_files(str(folder)):
        collected = collect_topdown(
            _command(target), folder, _labels(target), facts=counters.facts, timeout_s=timeout_s
        )
    nodes = [row for row in collected.rows if row.level is not None and row.value is not None]
    found = {row.metric for row in nodes}
    lacking = [
        row
        for row in missing_nodes(target.scenario.label, target.variant, "perf gives no such figure")
        if row.metric not in found
    ]
    return [replace(row, source=_joined(row.source, collected)) for row in (*nodes, *lacking)]


def plainly_named(rows: Iterable[Row]) -> list[Row]:
    """Known events under their plain names, those of a hybrid CPU's PMUs added up, IPC from them.

    perf names an event ``cycles:u`` where it may count user space only, and ``cpu_core/cycles/``
    beside ``cpu_atom/cycles/`` where a CPU has two kinds of cores. Parts of a forward stay apart.
    """
    events: dict[str, list[Row]] = {}
    others = []
    for row in rows:
        base = take_apart(row.metric).base
        if base in perf_stat.EVENTS and row.phase is None:
            events.setdefault(base, []).append(row)
        else:
            others.append(row)
    named = {base: _total(base, same) for base, same in events.items()}
    if sum(row.metric == "IPC" for row in others) > 1:
        others = [row for row in others if row.metric != "IPC"]
        others += _ipc(named.get("instructions"), named.get("cycles"))
    return [*named.values(), *others]


def missing_counts(scenario: str, variant: str, why: str) -> list[Row]:
    """The rows that say why a variant has no counters."""
    return [
        unavailable(metric, "1", why, collector=COLLECTOR, scenario=scenario, variant=variant)
        for metric in ("instructions", "instructions_per_mac", "IPC")
    ]


def missing_nodes(scenario: str, variant: str, why: str) -> list[Row]:
    """The rows that say why a variant has no top-down nodes."""
    return [
        unavailable(
            name, "slots", why, collector=COLLECTOR, level=level, scenario=scenario, variant=variant
        )
        for name, level in NODES
    ]


def why_not_counted(variant: str) -> str:
    """Why perf cannot count a variant that is not in the native driver."""
    return f"perf stat counts the native driver, and {variant} is not part of it"


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


def _total(event: str, same: Sequence[Row]) -> Row:
    """One row for an event.

    Each PMU's count is scaled by perf to the whole time although its cores ran only a part of it;
    that part (``mux_pct``) is the weight.
    """
    counted = [row for row in same if row.value is not None]
    if len(counted) <= 1:
        row = counted[0] if counted else same[0]
        if row.metric == event:
            return row
        return replace(row, metric=event, cpu=None, source=f"{row.metric}: {row.source}")
    weights = [100.0 if row.mux_pct is None else row.mux_pct for row in counted]
    total = math.fsum(
        (row.value or 0.0) * weight for row, weight in zip(counted, weights, strict=True)
    )
    ran_pct = min(100.0, sum(weights))
    status: Status = "ok" if ran_pct > WHOLE_PCT else "multiplexed"
    return replace(
        counted[0],
        metric=event,
        cpu=None,
        value=total / ran_pct if ran_pct else None,
        stddev=None,
        n=None,
        mux_pct=ran_pct,
        status=status if ran_pct else "not_counted",
        provenance="measured" if ran_pct else "unavailable",
        source=" + ".join(row.metric for row in counted) + ", each by the share of time it ran",
    )


def _ipc(instructions: Row | None, cycles: Row | None) -> list[Row]:
    if instructions is None or cycles is None or instructions.value is None or not cycles.value:
        return []
    value = instructions.value / cycles.value
    source = "instructions / cycles, of all kinds of cores"
    return [replace(cycles, metric="IPC", value=value, unit="1", source=source)]


def _joined(source: str, collected: Collected) -> str:
    return "; ".join(part for part in (source, *collected.notes) if part)
