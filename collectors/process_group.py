"""Running a tool with its workload as one process group that never outlives the call.

The group is ended on a timeout, on Ctrl-C, when the tool itself dies and when this process is
killed; nothing is left behind unless it made a session of its own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from moe_prof.parent_death import ended_with_this_process

GRACE_S = 2.0  # between asking to end and killing
_POLL_S = 0.01


@dataclass(frozen=True, slots=True)
class Finished:
    """How the tool ended.

    Attributes:
        returncode: negative for a signal.
        elapsed_s: wall time.
        timed_out: the group was ended because the time was up, or the watch said so.
    """

    returncode: int
    elapsed_s: float
    timed_out: bool


def run_group(
    argv: Sequence[str],
    *,
    stdout: Path,
    stderr: Path,
    timeout_s: float | None,
    env: Mapping[str, str] | None = None,
    stdin: Path | None = None,
    inherited: Mapping[str, str] | None = None,
    watch: Callable[[], bool] | None = None,
) -> Finished:
    """Run ``argv`` in a new process group, its output into files.

    Args:
        env: variables on top of the inherited ones.
        stdin: a file to read from; by default there is no input.
        inherited: variables to inherit instead of this process's.
        watch: called again and again meanwhile; once it says False, the group is ended.

    Raises:
        OSError: the program could not be started.
    """
    started_s = time.monotonic()
    with (
        stdout.open("wb") as out,
        stderr.open("wb") as err,
        (stdin or Path(os.devnull)).open("rb") as source,
    ):
        process = subprocess.Popen(
            list(argv),
            stdin=source,
            stdout=out,
            stderr=err,
            env={**(os.environ if inherited is None else inherited), **(env or {})},
            start_new_session=True,
        )
    timed_out = False
    try:
        with ended_with_this_process(process.pid):
            timed_out = not _ends(process.pid, timeout_s, watch)
            if timed_out:
                _signal(process.pid, signal.SIGTERM)
                _ends(process.pid, GRACE_S)
    finally:
        # also reached by Ctrl-C; the leader is not reaped yet, so its group's number is still ours
        _signal(process.pid, signal.SIGKILL)
        process.wait()
    return Finished(process.returncode, time.monotonic() - started_s, timed_out)


def _ends(pid: int, timeout_s: float | None, watch: Callable[[], bool] | None = None) -> bool:
    """Wait for the process to end without reaping it; False when the time is up."""
    deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
    while True:
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None:
            return True
        if deadline_s is not None and time.monotonic() >= deadline_s:
            return False
        if watch is not None and not watch():
            return False
        time.sleep(_POLL_S)


def _signal(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return
