"""The workload's own exit status, recorded by a wrapper and not by the profiler.

A profiler's exit code says little: ``perf stat`` returns 0 when the workload was killed by SIGSEGV.
So the workload runs under a shell that writes down its status; the shell itself does next to
nothing, and nothing at all inside a region of interest.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from moe_prof.errors import WorkloadError

_SCRIPT = 'status=$1; shift; "$@"; code=$?; echo "$code" >"$status"; exit "$code"'
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126
_SIGNAL_BASE = 128  # a shell reports a death by signal as 128 + its number


@dataclass(frozen=True, slots=True)
class WorkloadStatus:
    """How the workload ended: an exit code, or the signal that killed it."""

    exit_code: int | None
    signal: int | None = None

    @property
    def ok(self) -> bool:
        """Whether it ended with exit code 0."""
        return self.exit_code == 0

    @property
    def text(self) -> str:
        """``exit code 3`` or ``killed by SIGSEGV``."""
        if self.signal is not None:
            return f"killed by {_signal_name(self.signal)}"
        return f"exit code {self.exit_code}"


def wrapped(command: Sequence[str], status: Path) -> tuple[str, ...]:
    """The command under the recording shell; ``status`` is written when it ends."""
    return ("sh", "-c", _SCRIPT, "moe-prof", str(status), *command)


def read_status(status: Path) -> WorkloadStatus | None:
    """What was recorded; None if the workload never ended (or never began)."""
    try:
        text = status.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return None
    if not text.isdecimal():
        return None
    code = int(text)
    if code > _SIGNAL_BASE and _signal_name(code - _SIGNAL_BASE).startswith("SIG"):
        return WorkloadStatus(None, code - _SIGNAL_BASE)
    return WorkloadStatus(code)


def require_success(status: WorkloadStatus, command: Sequence[str], log: Path) -> None:
    """Raise unless the workload ended with exit code 0.

    Raises:
        WorkloadError: it crashed, failed or could not be started; names the log of its output.
    """
    if status.ok:
        return
    program = command[0] if command else ""
    if status.exit_code == _NOT_FOUND:
        raise WorkloadError(f"the workload {program!r} was not found; see {log}")
    if status.exit_code == _NOT_EXECUTABLE:
        raise WorkloadError(
            f"the workload {program!r} cannot be executed (no permission, or built for another "
            f"architecture); see {log}"
        )
    raise WorkloadError(f"the workload {program!r} failed: {status.text}; its output is in {log}")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
