"""A worker process that talks in JSON lines, with a deadline on every line.

It has a process group of its own: Ctrl-C in the terminal reaches only the parent, which then kills
the whole group. The worker asks the kernel to be killed when its parent dies (see ``worker``), so
that even a parent killed by SIGKILL leaves no orphan.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import moe_prof
from moe_prof.errors import ToolError, WorkloadError

CHUNK_BYTES = 1 << 16
TAIL_BYTES = 4096


class Child:
    """``python -m MODULE``: requests go to its stdin, events come through a pipe of their own.

    Its stdout and stderr go to ``log``, so that a library that prints cannot disturb the events.
    """

    def __init__(self, module: str, log: Path) -> None:
        self._log = log
        self._buffer = b""
        self._events, events_write = os.pipe()
        try:
            with log.open("wb") as output:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", module, str(events_write), str(os.getpid())],
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    pass_fds=(events_write,),
                    env=_environment(),
                    start_new_session=True,
                )
        except OSError as error:
            os.close(self._events)
            raise ToolError(
                f"cannot start a worker process: {error.strerror}; check the limits (ulimit -u)"
            ) from error
        finally:
            os.close(events_write)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._events, selectors.EVENT_READ)

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
        self._selector.close()
        os.close(self._events)

    @property
    def returncode(self) -> int | None:
        """Exit status after :meth:`wait` or :meth:`kill`; negative for a signal."""
        return self._process.returncode

    def send(self, message: Mapping[str, object]) -> None:
        """Write one line; a child that is gone is noticed at the next :meth:`read`."""
        stdin = self._process.stdin
        if stdin is None:
            return
        try:
            stdin.write(json.dumps(message).encode() + b"\n")
            stdin.flush()
        except BrokenPipeError:
            return

    def pause(self) -> None:
        """Stop it where it is, its threads that spin too, until :meth:`resume`."""
        self._signal_all(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self._signal_all(signal.SIGCONT)

    def _signal_all(self, number: int) -> None:
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    def read(self, timeout_s: float) -> dict[str, Any] | None:
        """The next event; None when the child has closed its side.

        Raises:
            TimeoutError: no whole line arrived in time.
            WorkloadError: the line is no event: something else writes into the child's pipe.
        """
        deadline_s = time.monotonic() + timeout_s
        while b"\n" not in self._buffer:
            ready = self._selector.select(max(0.0, deadline_s - time.monotonic()))
            if not ready:
                raise TimeoutError
            chunk = os.read(self._events, CHUNK_BYTES)
            if not chunk:
                return None
            self._buffer += chunk
        line, self._buffer = self._buffer.split(b"\n", 1)
        try:
            event = json.loads(line)
        except ValueError:
            event = None
        if not isinstance(event, dict) or "event" not in event:
            raise WorkloadError(f"it wrote into a pipe that is not its own: {line[:40]!r}")
        return event

    def wait(self, timeout_s: float) -> None:
        """Let the child end by itself, then make sure that it has ended."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End the child and everything it started."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        if self._process.stdin is not None:
            try:
                self._process.stdin.close()
            except BrokenPipeError:
                return

    def last_words(self) -> str:
        """The last line that the child printed, "" when it printed nothing."""
        with self._log.open("rb") as log:
            log.seek(max(0, self._log.stat().st_size - TAIL_BYTES))
            lines = log.read().decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")


def ending_text(returncode: int | None) -> str:
    """How a process ended, in words: ``killed by SIGSEGV``, ``exit status 3``."""
    if returncode is None:
        return "still running"
    if returncode >= 0:
        return f"exit status {returncode}"
    try:
        return f"killed by {signal.Signals(-returncode).name}"
    except ValueError:
        return f"killed by signal {-returncode}"


def _environment() -> dict[str, str]:
    """The parent's environment, with this package importable wherever the parent found it."""
    root = str(Path(moe_prof.__file__).resolve().parent.parent)
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
