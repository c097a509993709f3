"""Running tools: output kept, time bounded, no orphans."""

from __future__ import annotations

import json
import sys

import pytest

from moe_prof.collectors.toolrun import keeping_files, run_tool
from moe_prof.errors import ToolError
from tests.collectors.processes import ends


def test_output_of_both_streams_is_returned_and_kept(tmp_path):
    """stdout and stderr are in the result and in files."""
    code = "import sys; print('out'); print('err', file=sys.stderr)"
    run = run_tool([sys.executable, "-c", code], folder=tmp_path, name="t", timeout_s=30)
    kept = ((tmp_path / "t.stdout").read_text(), (tmp_path / "t.stderr").read_text())
    assert ("out\n", "err\n") == (run.stdout, run.stderr) == kept


def test_the_exact_command_is_kept(tmp_path):
    """The command line and the variables set for it stand beside the output."""
    argv = [sys.executable, "-c", "print('a, b')"]
    run_tool(argv, folder=tmp_path, name="t", timeout_s=30, env={"A": "1"})
    kept = json.loads((tmp_path / "t.command.json").read_text())
    assert kept == {"argv": argv, "env": {"LC_ALL": "C", "A": "1"}}


def test_the_tools_exit_status_is_reported(tmp_path):
    """A failing tool is no exception: its status is for the collector to judge."""
    run = run_tool([sys.executable, "-c", "exit(3)"], folder=tmp_path, name="t", timeout_s=30)
    assert run.returncode == 3


def test_the_locale_is_c(tmp_path):
    """Tools print numbers in the C locale whatever the user's is."""
    code = "import os; print(os.environ['LC_ALL'])"
    run = run_tool([sys.executable, "-c", code], folder=tmp_path, name="t", timeout_s=30)
    assert run.stdout == "C\n"


def test_only_outputs_that_exist_are_listed(tmp_path):
    """A file that the tool did not write is not among the outputs."""
    made, missing = tmp_path / "made", tmp_path / "missing"
    run = run_tool(
        [sys.executable, "-c", f"open({str(made)!r}, 'w')"], folder=tmp_path, name="t",
        timeout_s=30, outputs={"made": made, "missing": missing},
    )  # fmt: skip
    assert dict(run.outputs) == {"made": made}


def test_a_missing_program_is_one_clear_error(tmp_path):
    """The error names the program."""
    with pytest.raises(ToolError, match="cannot run no-such-tool"):
        run_tool(["no-such-tool"], folder=tmp_path, name="t", timeout_s=30)


def test_an_unwritable_folder_is_one_clear_error(tmp_path):
    """The error names the folder."""
    blocker = tmp_path / "file"
    blocker.write_text("")
    with pytest.raises(ToolError, match="file"):
        run_tool([sys.executable, "-c", ""], folder=blocker / "sub", name="t", timeout_s=30)


def test_a_timeout_ends_the_whole_process_group(tmp_path):
    """The tool's own child does not outlive it."""
    pid_file = tmp_path / "pid"
    code = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"open({str(pid_file)!r}, 'w').write(str(child.pid))\n"
        "time.sleep(60)\n"
    )
    with pytest.raises(ToolError, match="did not end within 2 s"):
        run_tool([sys.executable, "-c", code], folder=tmp_path, name="t", timeout_s=2)
    assert ends(int(pid_file.read_text()))


def test_output_before_a_timeout_is_kept(tmp_path):
    """What the tool wrote before it was ended is on disk."""
    code = "import time; print('early', flush=True); time.sleep(60)"
    with pytest.raises(ToolError):
        run_tool([sys.executable, "-c", code], folder=tmp_path, name="t", timeout_s=2)
    assert (tmp_path / "t.stdout").read_text() == "early\n"


def test_files_that_cannot_be_kept_are_the_tools_error(tmp_path):
    """A full disk is told as one, with the folder."""
    with (
        pytest.raises(ToolError, match=r"files in raw cannot be used: No space left on device; "),
        keeping_files("raw"),
    ):
        raise OSError(28, "No space left on device")
