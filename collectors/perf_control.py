"""What perf stat and perf record share: the control fifos, raw files, running, judging the end.

The region of interest is switched by the workload over two fifos: perf starts switched off (``-D -1
--control fifo:CTL,ACK``), the workload writes ``enable`` and ``disable`` and waits for ``ack``.

Source: perf-stat(1), perf-record(1).
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from moe_prof.collectors.base import ToolRun
from moe_prof.collectors.command_record import keep_command
from moe_prof.collectors.perf_refusals import refusal
from moe_prof.collectors.process_group import Finished, run_group
from moe_prof.collectors.workload import WorkloadStatus, read_status, require_success
from moe_prof.errors import ToolError, UnavailableError, WorkloadError

ROI_PLACEHOLDER = "{roi_fifo}"  # in a workload's arguments: replaced by CTL,ACK
ENVIRONMENT = {"LC_ALL": "C"}


@dataclass(frozen=True, slots=True)
class Control:
    """The two fifos between perf and the workload."""

    ctl: Path
    ack: Path

    @property
    def pair(self) -> str:
        """``CTL,ACK`` as perf and the workload take it."""
        return f"{self.ctl},{self.ack}"


@contextmanager
def control_fifos(wanted: bool) -> Iterator[Control | None]:
    """A pair of fifos in a private folder while the block runs; None when not wanted."""
    with TemporaryDirectory(prefix="moe_prof_") as private:
        yield _make_fifos(Path(private)) if wanted else None


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


def with_fifos(command: Sequence[str], control: Control | None) -> tuple[str, ...]:
    """The workload told of the fifos: where ``{roi_fifo}`` stands, else by ``--roi-fifo``."""
    if control is None:
        return tuple(command)
    if any(ROI_PLACEHOLDER in word for word in command):
        return tuple(word.replace(ROI_PLACEHOLDER, control.pair) for word in command)
    return (*command, "--roi-fifo", control.pair)


def raw_files(folder: Path, name: str, **own: str) -> dict[str, Path]:
    """Absolute paths of a run's raw files by role, the folder made and old files removed.

    Args:
        own: file names of roles beside ``stdout``, ``stderr`` and ``status``.

    Raises:
        ToolError: the folder cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ToolError(
            f"cannot make the folder {folder} for perf's output: {error.strerror}"
        ) from error
    absolute = folder.resolve()
    paths = {
        **{role: absolute / file for role, file in own.items()},
        "stdout": absolute / f"{name}.stdout",
        "stderr": absolute / f"{name}.stderr",
        "status": absolute / f"{name}.status",
    }
    for path in paths.values():
        path.unlink(missing_ok=True)
    return paths


def execute(
    line: Sequence[str], paths: Mapping[str, Path], name: str, timeout_s: float | None
) -> tuple[ToolRun, Finished]:
    """Run perf; the command line stays beside the raw files.

    Raises:
        UnavailableError: perf is not installed.
        ToolError: perf cannot be started.
    """
    keep_command(paths["stdout"].parent, name, line, ENVIRONMENT)
    finished = _execute(line, paths, timeout_s)
    result = ToolRun(
        argv=tuple(line),
        returncode=finished.returncode,
        stdout=text_of(paths["stdout"]),
        stderr=text_of(paths["stderr"]),
        elapsed_s=finished.elapsed_s,
        outputs=paths,
        env=ENVIRONMENT,
    )
    return result, finished


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


def workload_status(result: ToolRun) -> WorkloadStatus | None:
    """How the workload itself ended; None if it did not."""
    return read_status(result.outputs["status"])


def judge(
    result: ToolRun, finished: Finished, command: Sequence[str], timeout_s: float | None
) -> None:
    """Tell apart how a run under perf can fail.

    Raises:
        UnavailableError: perf is forbidden, or cannot do what was asked for.
        ToolError: perf itself failed or was killed.
        WorkloadError: the workload crashed, failed, or did not end in time.
    """
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


def text_of(path: Path) -> str:
    """What is in a file, "" when there is none."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""
