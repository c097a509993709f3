"""Counting a variant with perf stat: the native driver's forward loop, nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from moe_prof.collectors import perf_facts, perf_rows, perf_stat, perf_topdown_plan
from moe_prof.collectors.perf_facts import PerfFacts
from moe_prof.collectors.perf_topdown_plan import Attempt
from moe_prof.errors import MoeProfError, ToolError, UnavailableError
from moe_prof.kernels import driver
from moe_prof.kernels.driver import DriverResult
from moe_prof.machine import Machine
from moe_prof.measure.expected import layer_macs
from moe_prof.rows import Row, unavailable
from moe_prof.scenario import Scenario

COLLECTOR = "perf_stat"
MIN_TIME_S = 0.5
SYSTEM_WIDE_NOTE = "counted system-wide: other programs are in it"


@dataclass(frozen=True, slots=True)
class Counters:
    """What perf can do here.

    Attributes:
        events: those that can be counted, in perf's names; empty when perf is of no use.
        attempts: ways to ask for top-down figures, best first.
        reason: why hardware events are not among ``events``, "" when they are.
        topdown_reason: why there is no attempt, "" when there is one.
        remedy: what would change it.
    """

    events: tuple[str, ...]
    attempts: tuple[Attempt, ...]
    reason: str
    topdown_reason: str
    remedy: str

    @property
    def has_hardware(self) -> bool:
        """Whether cycles and instructions can be counted."""
        return {"cycles", "instructions"} <= set(self.events)


NO_COUNTERS = Counters((), (), "perf was not asked", "perf was not asked", "")


def find_counters(machine: Machine) -> Counters:
    """Ask perf and the system what can be counted; never raises for what is missing."""
    facts = perf_facts.gather(machine)
    usable = perf_facts.judge(facts)
    if not usable.usable:
        return Counters((), (), usable.reason, usable.reason, usable.remedy)
    events = tuple(e for e, status in perf_stat.probe_events().items() if status == "ok")
    hardware = perf_facts.judge_hardware(facts)
    reason = ""
    if not {"cycles", "instructions"} <= set(events):
        reason = hardware.reason if not hardware.usable else "perf counts no cycles here"
    attempts, topdown_reason = _attempts(facts)
    return Counters(events, attempts, reason, reason or topdown_reason, hardware.remedy)


def _attempts(facts: PerfFacts) -> tuple[tuple[Attempt, ...], str]:
    try:
        return perf_topdown_plan.attempts(perf_facts.plan_facts(facts)), ""
    except UnavailableError as error:
        return (), str(error)


@dataclass(frozen=True, slots=True)
class Target:
    """The variant to count: what runs, for how many threads."""

    scenario: Scenario
    variant: str
    isa: str | None
    threads: int
    seed: int


def count(target: Target, counters: Counters, *, folder: Path, timeout_s: float) -> list[Row]:
    """Events of one forward, and ratios of them.

    Counts are divided by the forwards in the region of interest; ratios are as counted.

    Raises:
        UnavailableError: perf refuses, or the variant is not in the native driver.
        ToolError: perf failed.
        WorkloadError: the workload crashed or did not end in time.
    """
    result, found = _run(
        target, counters.events, (), folder=folder, name="counters", timeout_s=timeout_s
    )
    rows = [_per_forward(row, result.iterations) for row in found]
    instructions = next(
        (r.value for r in rows if r.metric == "instructions" and r.value is not None), None
    )
    macs = layer_macs(target.scenario)
    if instructions is not None and macs:
        rows.append(
            Row(
                scenario=target.scenario.label,
                variant=target.variant,
                collector=COLLECTOR,
                metric="instructions_per_mac",
                value=instructions / macs,
                unit="1",
                source="instructions of all threads, waiting included, / useful MACs",
            )
        )
    return rows


def topdown(target: Target, counters: Counters, *, folder: Path, timeout_s: float) -> list[Row]:
    """Top-down nodes, by the first way that gives any.

    Raises:
        UnavailableError: no way gives a node; names the last refusal.
        WorkloadError: the workload crashed or did not end in time.
    """
    last = counters.topdown_reason or "perf printed no top-down figure"
    for number, attempt in enumerate(counters.attempts):
        try:
            _, rows = _run(
                target, (), attempt.args, folder=folder, name=f"topdown-{number}",
                timeout_s=timeout_s, width=attempt.slots_per_cycle,
            )  # fmt: skip
        except (UnavailableError, ToolError) as error:
            last = str(error)
            continue
        nodes = [row for row in rows if row.level is not None and row.value is not None]
        if nodes:
            note = "; ".join(
                part
                for part in (attempt.note, SYSTEM_WIDE_NOTE if attempt.system_wide else "")
                if part
            )
            return [_noted(row, note, system_wide=attempt.system_wide) for row in nodes]
    raise UnavailableError(last)


def missing_rows(target: Target, metrics: Sequence[str], error: MoeProfError) -> list[Row]:
    """The rows that say why a variant has no counters."""
    return [
        unavailable(
            metric, "1", str(error), collector=COLLECTOR,
            scenario=target.scenario.label, variant=target.variant,
        )
        for metric in metrics
    ]  # fmt: skip


def _run(
    target: Target,
    events: Sequence[str],
    extra: Sequence[str],
    *,
    folder: Path,
    name: str,
    timeout_s: float,
    width: int | None = None,
) -> tuple[DriverResult, list[Row]]:
    folder.mkdir(parents=True, exist_ok=True)
    program = driver.find_driver(target.variant, isa=target.isa)
    command = driver.driver_argv(
        program, target.scenario, iterations=1, threads=target.threads, seed=target.seed,
        warmup=2, min_time_s=MIN_TIME_S,
    )  # fmt: skip
    run = perf_stat.run(command, folder, timeout_s=timeout_s, name=name, events=events, extra=extra)
    labels = perf_rows.Labels(
        scenario=target.scenario.label,
        variant=target.variant,
        collector=COLLECTOR,
        slots_per_cycle=width,
    )
    return driver.parse_result(run.stdout), perf_rows.rows(perf_stat.read(run), labels)


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


def _noted(row: Row, note: str, *, system_wide: bool) -> Row:
    source = "; ".join(part for part in (row.source, note) if part)
    return replace(row, source=source, scope="system" if system_wide else row.scope)
