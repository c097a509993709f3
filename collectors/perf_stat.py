"""Collector: counters through ``perf stat``, for the region of interest only.

``argv`` builds the command line, ``run`` executes it and keeps the raw files, ``parse`` (pure)
reads any output of perf stat. The region is switched by the workload over two fifos: perf starts
with its counters off (``-D -1 --control fifo:CTL,ACK``), the workload writes ``enable`` and
``disable`` and waits for ``ack``.

Source: perf-stat(1).
"""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from moe_prof.collectors.base import ToolRun
from moe_prof.collectors.command_record import keep_command
from moe_prof.collectors.perf_parse import parse
from moe_prof.collectors.perf_reading import Form, Report
from moe_prof.collectors.perf_refusals import refusal
from moe_prof.collectors.process_group import Finished, run_group
from moe_prof.collectors.toolrun import keeping_files
from moe_prof.collectors.workload import WorkloadStatus, read_status, require_success, wrapped
from moe_prof.errors import InputError, ToolError, UnavailableError, WorkloadError
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
ROI_PLACEHOLDER = "{roi_fifo}"  # in a workload's arguments: replaced by CTL,ACK
SEPARATOR = ";"  # not the comma: event names contain it
ENVIRONMENT = {"LC_ALL": "C"}

_SUFFIXES: Mapping[Form, str] = {"csv": ".csv", "json": ".json", "text": ".txt"}
_PROBE_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class Control:
    """The two fifos between perf and the workload."""

    ctl: Path
    ack: Path

    @property
    def pair(self) -> str:
        """``CTL,ACK`` as perf and the workload take it."""
        return f"{self.ctl},{self.ack}"


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
    paths = _paths(folder, name, form)
    with tempfile.TemporaryDirectory(prefix="moe_prof_") as private:
        control = _make_fifos(Path(private)) if roi else None
        workload = _with_fifos(command, control)
        line = argv(
            wrapped(workload, paths["status"]),
            output=paths["report"],
            form=form,
            events=events,
            extra=extra,
            control=control,
            perf=perf,
        )
        keep_command(paths["report"].parent, name, line, ENVIRONMENT)
        finished = _execute(line, paths, timeout_s)
    result = ToolRun(
        argv=line,
        returncode=finished.returncode,
        stdout=_text(paths["stdout"]),
        stderr=_text(paths["stderr"]),
        elapsed_s=finished.elapsed_s,
        outputs=paths,
        env=ENVIRONMENT,
    )
    _judge(result, finished, command, timeout_s)
    return result


def _execute(line: Sequence[str], paths: Mapping[str, Path], timeout_s: float | None) -> Finished:
    try:
        return run_group(
            line,
            stdout=paths["stdout"],
            stderr=paths["stderr"],
            timeout_s=timeout_s,
            env=ENVIRONMENT,
        )
    except FileNotFoundError as error:
        raise UnavailableError(
            f"{line[0]} is not installed; `moe-prof doctor` names the package"
        ) from error
    except OSError as error:
        raise ToolError(f"{line[0]} cannot be started: {error.strerror}") from error


def read(result: ToolRun) -> Report:
    """The report of a run, with the region of interest checked.

    Raises:
        ToolError: perf wrote nothing that can be read.
        WorkloadError: the workload never switched the counters on.
    """
    path = result.outputs["report"]
    try:
        report = parse(_text(path), source=str(path))
    except InputError as error:
        raise ToolError(f"perf stat wrote no counters to {path}; see its command line") from error
    controlled = "--control" in result.argv
    if controlled and report.counts and all(r.status == "not_counted" for r in report.counts):
        raise WorkloadError(
            "the workload never switched the counters on: it must write `enable` and `disable` to "
            "the fifo given by --roi-fifo (moe_bench does); count the whole process otherwise"
        )
    return report


def workload_status(result: ToolRun) -> WorkloadStatus | None:
    """How the workload itself ended; None if it did not."""
    return read_status(result.outputs["status"])


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


def _judge(
    result: ToolRun, finished: Finished, command: Sequence[str], timeout_s: float | None
) -> None:
    status = workload_status(result)
    program = shlex.join(command[:1])
    if finished.timed_out:
        raise WorkloadError(
            f"the workload {program} did not end within {timeout_s:g} s and was stopped; "
            f"raise the time limit, or see {result.outputs['stderr']}"
        )
    if status is not None:
        require_success(status, command, result.outputs["stderr"])
    if finished.returncode < 0:
        raise ToolError(
            f"perf was killed by signal {-finished.returncode}; its output so far is in "
            f"{result.outputs['stderr'].parent}"
        )
    if status is None:
        raise refusal(result.stderr, finished.returncode)
    if finished.returncode != 0:
        raise refusal(result.stderr, finished.returncode)


def _paths(folder: Path, name: str, form: Form) -> dict[str, Path]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ToolError(
            f"cannot make the folder {folder} for perf's output: {error.strerror}"
        ) from error
    absolute = folder.resolve()
    paths = {
        "report": absolute / f"{name}{_SUFFIXES[form]}",
        "stdout": absolute / f"{name}.stdout",
        "stderr": absolute / f"{name}.stderr",
        "status": absolute / f"{name}.status",
    }
    for path in paths.values():
        path.unlink(missing_ok=True)
    return paths


def _make_fifos(private: Path) -> Control:
    if "," in str(private):
        raise ToolError(
            f"perf separates the names of its fifos by a comma, and the folder for temporary files "
            f"contains one: {private}; set TMPDIR to another folder"
        )
    control = Control(private / "ctl", private / "ack")
    for path in (control.ctl, control.ack):
        os.mkfifo(path, 0o600)
    return control


def _with_fifos(command: Sequence[str], control: Control | None) -> tuple[str, ...]:
    if control is None:
        return tuple(command)
    if any(ROI_PLACEHOLDER in word for word in command):
        return tuple(word.replace(ROI_PLACEHOLDER, control.pair) for word in command)
    return (*command, "--roi-fifo", control.pair)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""
