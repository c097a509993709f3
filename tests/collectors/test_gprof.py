"""The gprof collector: recorded profiles as stacks, and runs of stand-in programs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from moe_prof.collectors import gprof
from moe_prof.collectors.gprof_format import parse
from moe_prof.collectors.stacks import by_function
from moe_prof.errors import ToolError, UnavailableError, WorkloadError
from tests.collectors.fixture_files import recorded

TIME_LIMIT_S = 30.0


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Makes a program of a shell script; ``gprof`` is found among them."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    def make(name, script):
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return str(path)

    return make


def test_recorded_profile_as_stacks():
    """Sum of the stacks is the total, although the rounded seconds add up to more."""
    found = gprof.profile(parse(recorded("corpus/F01.txt")), module="busy")
    functions = by_function(found.stacks)
    gemm = next(key for key in functions if "gemm_s8" in key[0])
    assert found.total == pytest.approx(0.20)
    assert functions[gemm][0] == pytest.approx(0.11, abs=1e-3)
    assert functions[gemm][1] == pytest.approx(0.17, abs=0.011)
    assert functions["main", "busy"][1] == pytest.approx(0.20)


def test_no_time_is_unavailable():
    """A program that was too short for a sample has no shares."""
    with pytest.raises(UnavailableError, match="took no sample"):
        gprof.profile(parse(recorded("corpus/F02.txt")), module="busy")


def test_samples_are_written_beside_the_other_raw_files(programs, tmp_path):
    """The program is told where to write; gprof gets program and samples."""
    program = programs("workload", 'echo samples > "$GMON_OUT_PREFIX.$$"')
    text = tmp_path / "text"
    text.write_text(recorded("corpus/F01.txt"))
    programs("gprof", f'[ "$1" = -b ] && [ "$2" = {program} ] && [ -s "$3" ] && cat {text}')
    found, done = gprof.run([program], tmp_path / "raw", timeout_s=TIME_LIMIT_S)
    assert (found.total_s, done.returncode) == (0.20, 0)
    assert len(list((tmp_path / "raw").glob("gmon.*"))) == 1


@pytest.mark.parametrize(
    ("script", "error", "words"),
    [
        ("exit 0", UnavailableError, "wrote no gmon.out"),
        ("exit 3", WorkloadError, "ended with 3"),
        ("kill -SEGV $$", WorkloadError, "ended with signal 11"),
    ],
)
def test_programs_that_leave_nothing(programs, tmp_path, script, error, words):
    """Not built with -pg, failed, crashed: each by its own error."""
    programs("gprof", "exit 1")
    with pytest.raises(error, match=words):
        gprof.run([programs("workload", script)], tmp_path / "raw", timeout_s=TIME_LIMIT_S)


def test_gprof_that_fails(programs, tmp_path):
    """gprof's own words are passed on."""
    programs("gprof", "echo 'gmon.out: not in a.out format' >&2; exit 1")
    program = programs("workload", 'echo samples > "$GMON_OUT_PREFIX.$$"')
    with pytest.raises(ToolError, match=r"not in a.out format"):
        gprof.run([program], tmp_path / "raw", timeout_s=TIME_LIMIT_S)


def test_gprof_missing(monkeypatch, tmp_path):
    """Unavailable, with the line that installs it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnavailableError, match="apt install binutils"):
        gprof.run(["true"], Path("raw"), timeout_s=TIME_LIMIT_S)
