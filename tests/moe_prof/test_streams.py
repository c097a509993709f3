"""Streams that are closed, full, narrow or of a small encoding; Progress on a full stderr."""

import io
import os
import subprocess
import sys

import pytest

from moe_prof import streams
from moe_prof.errors import MoeProfError
from moe_prof.progress import Progress


class Full(io.StringIO):
    """A stream on a full disk."""

    def write(self, text):
        """Refuse everything."""
        raise OSError(28, "No space left on device")


class Small(io.StringIO):
    """A stream that can take ASCII."""

    encoding = "ascii"


def _moe_prof(command, **more):
    """Run the shell command with ``$M`` as ``python -m moe_prof``."""
    env = {**os.environ, "M": f"{sys.executable} -m moe_prof", **more}
    return subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=False, env=env
    )


def test_characters_that_stdout_lacks_become_question_marks(monkeypatch):
    """No UnicodeEncodeError under LC_ALL=C."""
    monkeypatch.setattr(sys, "stdout", Small())
    streams.write_result("a─b\n")
    assert sys.stdout.getvalue() == "a?b\n"


def test_lone_surrogates_can_be_printed(monkeypatch):
    """A file name that is no UTF-8 may be part of a result."""
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    streams.write_result("\udcff.so\n")
    assert sys.stdout.getvalue() == "?.so\n"


def test_full_stdout_is_an_error_of_ours(monkeypatch):
    """The message names the cause."""
    monkeypatch.setattr(sys, "stdout", Full())
    with pytest.raises(MoeProfError, match="cannot write to stdout: No space left on device"):
        streams.write_result("x")


def test_closed_stdout_is_an_error_of_ours(monkeypatch):
    """Python has no sys.stdout then."""
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(MoeProfError, match="stdout is closed"):
        streams.write_result("x")


@pytest.mark.parametrize("stderr", [None, Full()])
def test_remarks_cost_nothing(monkeypatch, stderr):
    """A remark that stderr cannot take is lost, silently."""
    monkeypatch.setattr(sys, "stderr", stderr)
    streams.say("x")


@pytest.mark.parametrize("stderr", [None, Full()])
def test_progress_costs_nothing(monkeypatch, stderr):
    """Nor does a progress line, nor its removal."""
    monkeypatch.setattr(sys, "stderr", stderr)
    progress = Progress()
    progress.step("x", slow=True)
    progress.clear()


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("", None), ("0", None), ("-5", None), ("wide", None), ("²", None), ("9" * 5000, None),
        ("20", 40), ("120", 120),
    ],
)  # fmt: skip
def test_columns_variable(monkeypatch, text, columns):
    """Only a plain number of columns counts, and a page stays readable."""
    monkeypatch.setenv("COLUMNS", text)
    assert streams.wished_columns() == columns


@pytest.mark.parametrize(("columns", "expected"), [(0, 100), (20, 40), (80, 80), (300, 100)])
def test_terminal_columns(monkeypatch, columns, expected):
    """A terminal that does not know its width gets a whole page."""
    size = os.terminal_size((columns, 24))
    monkeypatch.setattr(os, "get_terminal_size", lambda: size)
    assert streams.terminal_columns(100) == expected


@pytest.mark.parametrize("command", ["list", "--help", "list --format json"])
def test_full_disk_is_one_line(command):
    """Exit code 1 and no traceback, for help as for results."""
    done = _moe_prof(f"$M {command} >/dev/full")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "moe-prof: cannot write to stdout: No space left on device; "
        "name a file with --output"
    ]  # fmt: skip


def test_closed_stdout_is_one_line():
    """The same for a stdout that was never there."""
    done = _moe_prof("$M list >&-")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)


def test_closed_stderr_keeps_stdout_clean():
    """What would go to stderr does not go to stdout."""
    done = _moe_prof("$M nonsense 2>&-")
    assert (done.returncode, done.stdout) == (2, "")


def test_results_in_ascii():
    """Tables are drawn with ASCII characters where there are no others."""
    done = _moe_prof("$M list", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert "----" in done.stdout
