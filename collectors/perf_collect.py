"""From a workload to rows in one call: counters, or top-down figures by the best way there is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from moe_prof.collectors import perf_stat
from moe_prof.collectors.base import ToolRun
from moe_prof.collectors.perf_rows import Labels, rows
from moe_prof.collectors.perf_topdown import LEVEL1, nodes
from moe_prof.collectors.perf_topdown_plan import Attempt, Facts, attempts
from moe_prof.errors import ToolError, UnavailableError
from moe_prof.rows import Row


@dataclass(frozen=True, slots=True)
class Collected:
    """Rows of one run, the run itself, and remarks: refused attempts and damaged lines."""

    rows: tuple[Row, ...]
    run: ToolRun
    notes: tuple[str, ...] = ()


def collect_counters(
    command: Sequence[str],
    folder: Path,
    labels: Labels,
    *,
    timeout_s: float | None,
    events: Sequence[str] = perf_stat.EVENTS,
    perf: str = "perf",
) -> Collected:
    """Count events; within the region of interest where ``labels.scope`` is ``roi``.

    Raises:
        UnavailableError, ToolError, WorkloadError: see :func:`perf_stat.run`.
    """
    result = perf_stat.run(
        command, folder, timeout_s=timeout_s, roi=labels.scope == "roi", events=events, perf=perf
    )
    report = perf_stat.read(result)
    return Collected(tuple(rows(report, labels)), result, report.warnings)


def collect_topdown(
    command: Sequence[str],
    folder: Path,
    labels: Labels,
    *,
    facts: Facts,
    timeout_s: float | None,
    level: int = 2,
    perf: str = "perf",
) -> Collected:
    """Top-down figures: each way of ``perf_topdown_plan`` in turn until one gives a node.

    The workload runs once an attempt; a refused attempt does not run it at all.

    Raises:
        UnavailableError: there is no way here, or perf refused every one of them.
        WorkloadError: the workload failed.
    """
    refused: list[str] = []
    for number, attempt in enumerate(attempts(facts, level)):
        try:
            result = _run(
                command, folder, labels, (attempt, number), timeout_s=timeout_s, perf=perf
            )
            report = perf_stat.read(result)
        except (UnavailableError, ToolError) as error:
            refused.append(f"{' '.join(attempt.args[:1])}: {error}")
            continue
        found = nodes(report, slots_per_cycle=attempt.slots_per_cycle)
        if any(node.name in LEVEL1 and node.value is not None for node in found):
            named = replace(
                labels,
                slots_per_cycle=attempt.slots_per_cycle,
                scope="system" if attempt.system_wide else labels.scope,
            )
            remarks = (*refused, *([attempt.note] if attempt.note else []), *report.warnings)
            return Collected(tuple(rows(report, named)), result, remarks)
        reasons = sorted({node.note for node in found if node.note})
        said = ", ".join(reasons) or "perf ran but printed no top-down figure"
        refused.append(f"{' '.join(attempt.args[:1])}: {said}")
    raise UnavailableError(f"no top-down figures from perf here: {'; '.join(refused)}")


def _run(
    command: Sequence[str],
    folder: Path,
    labels: Labels,
    numbered: tuple[Attempt, int],
    *,
    timeout_s: float | None,
    perf: str,
) -> ToolRun:
    attempt, number = numbered
    # CSV and JSON drop negative metrics; counts lose nothing in CSV
    return perf_stat.run(
        command,
        folder,
        timeout_s=timeout_s,
        roi=labels.scope == "roi",
        name=f"perf_topdown_{number}" if number else "perf_topdown",
        form="csv" if attempt.args[0] == "-e" else "text",
        events=(),
        extra=attempt.args,
        perf=perf,
    )
