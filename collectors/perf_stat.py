"""Collector: counters through ``perf stat``, for the region of interest only.

``argv`` builds the command line, ``run`` executes it and keeps the raw files, ``parse`` (pure)
reads any output of perf stat. The region is switched by the workload over two fifos: perf starts
with its counters off (``-D -1 --control fifo:CTL,ACK``), the workload writes ``enable`` and
``disable`` and waits for ``ack``.

Source: perf-stat(1).
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from moe_prof.collectors.base import ToolRun
from moe_prof.collectors.perf_control import (
    ROI_PLACEHOLDER,
    Control,
    control_fifos,
    execute,
    judge,
    raw_files,
    text_of,
    with_fifos,
    workload_status,
)
from moe_prof.collectors.perf_parse import parse
from moe_prof.collectors.perf_reading import Form, Report
from moe_prof.collectors.toolrun import keeping_files
from moe_prof.collectors.workload import wrapped
from moe_prof.errors import InputError, ToolError, WorkloadError
from moe_prof.rows import Status

__all__ = [
    "EVENTS", "ROI_PLACEHOLDER", "Control", "argv", "parse", "probe_events", "read", "run",
    "workload_status",
]  # fmt: skip

# Events that every kernel knows by these names; whether they can be counted is another question.
EVENTS: tuple[str, ...] = (
    "cycles", "instructions", "branches", "branch-misses", "cache-references", "cache-misses",
    "task-clock", "page-faults", "context-switches", "cpu-migrations",
)  # fmt: skip
SEPARATOR = ";"  # not the comma: event names contain it

_SUFFIXES: Mapping[Form, str] = {"csv": ".csv", "json": ".json", "text": ".txt"}
_PROBE_TIMEOUT_S = 20.0


def argv(
    command: Sequence[str],
    *,
    output: Path,
    form: Form = "csv",
    events: Sequence[str] = EVENTS,
    extra: Sequence[str] = (),
    control: Control | None = None,
    perf: str = "perf",
) -> tuple[str, ...]:
    """The command line; runs nothing.

    Args:
        command: the workload with its arguments.
        output: file for the counters; they would share stderr with the workload otherwise.
        events: what to count; empty to leave the choice to ``extra``.
        extra: further arguments for perf stat, such as those of ``perf_topdown_plan``.
        control: fifos; with them counters start switched off.
    """
    line = [perf, "stat"]
    if form == "csv":
        line += ["-x", SEPARATOR]
    elif form == "json":
        line.append("-j")
    line += ["-o", str(output)]
    if control is not None:
        line += ["-D", "-1", "--control", f"fifo:{control.pair}"]
    if events:
        line += ["-e", ",".join(events)]
    return (*line, *extra, "--", *command)


def run(
    command: Sequence[str],
    folder: Path,
    *,
    timeout_s: float | None,
    roi: bool = True,
    name: str = "perf_stat",
    form: Form = "csv",
    events: Sequence[str] = EVENTS,
    extra: Sequence[str] = (),
    perf: str = "perf",
) -> ToolRun:
    """Count one run of the workload.

    Args:
        command: the workload. With ``roi`` it is given the fifos: in place of ``{roi_fifo}`` where
            an argument contains it, else as ``--roi-fifo CTL,ACK`` at its end.
        folder: where the raw files stay (``NAME.csv``, ``NAME.stdout``, ``NAME.stderr``,
            ``NAME.status``, and ``NAME.command.json`` with the exact command line).
        timeout_s: the whole process group is ended after that time; None waits for ever.

    Returns:
        The run; its ``outputs`` are ``report``, ``stdout``, ``stderr`` and ``status``.

    Raises:
        UnavailableError: perf is missing, forbidden, or cannot count what was asked for.
        ToolError: perf itself failed or was killed.
        WorkloadError: the workload crashed, failed, or did not end in time.
    """
    paths = raw_files(folder, name, report=f"{name}{_SUFFIXES[form]}")
    with control_fifos(roi) as control:
        line = argv(
            wrapped(with_fifos(command, control), paths["status"]),
            output=paths["report"],
            form=form,
            events=events,
            extra=extra,
            control=control,
            perf=perf,
        )
        result, finished = execute(line, paths, name, timeout_s)
    judge(result, finished, command, timeout_s)
    return result


def read(result: ToolRun) -> Report:
    """The report of a run, with the region of interest checked.

    Raises:
        ToolError: perf wrote nothing that can be read.
        WorkloadError: the workload never switched the counters on.
    """
    path = result.outputs["report"]
    try:
        report = parse(text_of(path), source=str(path))
    except InputError as error:
        raise ToolError(f"perf stat wrote no counters to {path}; see its command line") from error
    controlled = "--control" in result.argv
    if controlled and report.counts and all(r.status == "not_counted" for r in report.counts):
        raise WorkloadError(
            "the workload never switched the counters on: it must write `enable` and `disable` to "
            "the fifo given by --roi-fifo (moe_bench does); count the whole process otherwise"
        )
    return report


def probe_events(events: Sequence[str] = EVENTS, *, perf: str = "perf") -> dict[str, Status]:
    """Which events can be counted here, through one short run of ``true``.

    Returns:
        ``ok`` for what can be counted, ``not_supported`` or ``not_counted`` for the others.

    Raises:
        UnavailableError: perf is missing or forbidden.
        ToolError: perf failed by itself.
    """
    with (
        keeping_files("a temporary folder"),
        tempfile.TemporaryDirectory(prefix="moe_prof_") as folder,
    ):
        result = run(
            ("true",), Path(folder), timeout_s=_PROBE_TIMEOUT_S, roi=False, events=events, perf=perf
        )
        report = read(result)
    found: dict[str, Status] = dict.fromkeys(events, "not_counted")
    for reading in report.counts:
        event = reading.event.partition(":")[0]
        countable = reading.value is not None
        if event in found and found[event] != "ok":
            found[event] = "ok" if countable else reading.status
    return found
