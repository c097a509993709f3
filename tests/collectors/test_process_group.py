"""Process groups end with their leader, with their time and with the program that started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from moe_prof.collectors.process_group import run_group
from tests.collectors.processes import appears, ends

TOOL = """
import pathlib, subprocess, sys, time
child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)'])
pathlib.Path({mark!r}).write_text(str(child.pid))
{then}
"""
PARENT = """
from pathlib import Path
from moe_prof.collectors.process_group import run_group
run_group({argv!r}, stdout=Path({out!r}), stderr=Path({out!r} + '2'), timeout_s=None)
"""


def tool(mark: Path, then: str = "time.sleep(300)") -> list[str]:
    """A stand-in of a profiler: starts a workload, notes its number, goes on."""
    return [sys.executable, "-c", TOOL.format(mark=str(mark), then=then)]


def test_a_killed_parent_leaves_nothing_behind(tmp_path):
    """SIGKILL cannot be caught: the tool and the workload below it end all the same."""
    mark = tmp_path / "pid"
    code = PARENT.format(argv=tool(mark), out=str(tmp_path / "out"))
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parents[2])
    try:
        workload = int(appears(mark))
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    assert ends(workload)


def test_a_tool_that_ends_takes_its_workload_along(tmp_path):
    """What it left running is ended; its own status is kept."""
    mark = tmp_path / "pid"
    finished = run_group(
        tool(mark, then="sys.exit(3)"), stdout=tmp_path / "out", stderr=tmp_path / "err",
        timeout_s=60,
    )  # fmt: skip
    assert (finished.returncode, finished.timed_out) == (3, False)
    assert ends(int(mark.read_text()))


def test_the_watch_ends_with_the_tool(tmp_path):
    """No helper process stays, no descriptor either."""
    before = set(os.listdir("/proc/self/fd"))
    run_group(
        [sys.executable, "-c", ""], stdout=tmp_path / "o", stderr=tmp_path / "e", timeout_s=60
    )
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
    assert set(os.listdir("/proc/self/fd")) == before


def test_input_comes_from_a_file(tmp_path):
    """And there is none by default."""
    (tmp_path / "in").write_text("hello")
    code = "import sys; print(sys.stdin.read())"
    for stdin, said in ((tmp_path / "in", "hello\n"), (None, "\n")):
        run_group(
            [sys.executable, "-c", code], stdout=tmp_path / "o", stderr=tmp_path / "e",
            timeout_s=60, stdin=stdin,
        )  # fmt: skip
        assert (tmp_path / "o").read_text() == said
