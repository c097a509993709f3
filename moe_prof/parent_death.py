"""Ending a process group when this process dies, even by SIGKILL.

A worker of our own asks the kernel for that (``PR_SET_PDEATHSIG``), but a profiler cannot be told
to, the setting does not reach what it starts, and it is tied to the thread that started it. So a
shell waits beside the group for a line from this process: when the pipe ends without one, this
process is gone, and the shell kills the group.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

PR_SET_PDEATHSIG = 1
_SHELL = "/bin/sh"
_WATCH = 'read -r word || kill -9 "-$1"'


@contextmanager
def ended_with_this_process(group: int) -> Iterator[None]:
    """Around the wait for a process group; where no shell can be started, without a watch.

    Args:
        group: its number, that of its leader.
    """
    try:
        watch = subprocess.Popen(
            [_SHELL, "-c", _WATCH, "moe-prof-watch", str(group)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        yield
        return
    try:
        yield
    finally:
        if watch.stdin is not None:
            with suppress(OSError):  # somebody has ended the watch
                watch.stdin.write(b"done\n")
                watch.stdin.flush()
            with suppress(OSError):
                watch.stdin.close()
        watch.wait()


def die_with_parent(parent_pid: int) -> None:
    """Ask the kernel for SIGKILL when the parent dies; leave at once if it already has.

    Source: prctl(2).
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent_pid:
        sys.exit(1)
