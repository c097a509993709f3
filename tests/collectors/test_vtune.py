"""The VTune collector against a program that plays VTune and checks every argument.

VTune itself was not at hand: the command lines follow its user guide, the reports its format.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from moe_prof.collectors import vtune, vtune_profile
from moe_prof.collectors.vtune_csv import parse_summary, parse_table
from moe_prof.collectors.vtune_refusals import refusal
from moe_prof.errors import InputError, ToolError, UnavailableError, WorkloadError
from tests.collectors.fixture_files import recorded

FOLDER = Path(__file__).parents[1] / "fixtures" / "vtune"
TIME_LIMIT_S = 30.0


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """A vtune on the path."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "vtune"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {FOLDER / "fake_vtune.py"} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("FAKE_VTUNE", raising=False)


def collect(folder, command=("true",), **options):
    """Collect with the arguments at hand."""
    options = {"analysis": "hotspots", **options}
    return vtune.collect(command, folder, timeout_s=TIME_LIMIT_S, **options)


def test_argv_of_a_paused_start():
    """Collection starts paused, the result folder and the workload are named."""
    line = vtune.argv(("./bench", "1"), analysis="hotspots", result=Path("/raw/result"))
    assert line == (
        "vtune", "-collect", "hotspots", "-knob", "sampling-mode=sw", "-start-paused",
        "-no-summary", "-result-dir", "/raw/result", "--", "./bench", "1",
    )  # fmt: skip


def test_argv_of_reports():
    """One report a grouping, separated by tabs."""
    assert vtune.report_argv("hotspots", Path("r"), "thread") == (
        "vtune", "-report", "hotspots", "-result-dir", "r", "-group-by", "thread", "-format", "csv",
        "-csv-delimiter", "tab",
    )  # fmt: skip


@pytest.mark.parametrize("hardware", [False, True])
@pytest.mark.parametrize("analysis", vtune.ANALYSES)
def test_every_analysis_is_accepted(fake, tmp_path, analysis, hardware):
    """The stand-in knows the knobs of each analysis type and refuses any other."""
    result = collect(tmp_path / "raw", analysis=analysis, hardware=hardware)
    assert (result / "paused").read_text() == "True"
    kept = json.loads((tmp_path / "raw" / f"vtune-{analysis}.command.json").read_text())
    assert kept["argv"][:3] == ["vtune", "-collect", analysis]


def test_a_second_collection_replaces_the_first(fake, tmp_path):
    """VTune refuses a result folder that exists: the old one is removed."""
    collect(tmp_path / "raw")
    collect(tmp_path / "raw")


@pytest.mark.parametrize("delimiter", ["tab", "comma", "semicolon"])
def test_reports_as_a_profile(fake, tmp_path, monkeypatch, delimiter):
    """Effective time is work, spin and overhead time is waiting, nothing is counted twice."""
    monkeypatch.setenv("FAKE_VTUNE_DELIMITER", delimiter)
    result = collect(tmp_path / "raw")
    table = parse_table(vtune.report("hotspots", result, tmp_path / "raw", "function"))
    found = vtune_profile.profile(table)
    waits = {s.frames[-1].function: s.weight for s in found.stacks if s.waiting}
    assert found.total == pytest.approx(6.0)
    assert waits == {"__kmp_fork_barrier": 0.8, "__kmp_fork_call": 0.2}
    assert "moe::packed::choose(moe_microkernels const&, moe::RouterTable const&)" in {
        s.frames[-1].function for s in found.stacks
    }
    assert not found.has_callers


def test_threads():
    """Time and waiting share by thread; a thread without time has no rows."""
    rows = vtune_profile.thread_rows(parse_table(recorded("vtune/hotspots-thread.tsv")))
    shares = {row.thread: row.value for row in rows if row.metric == "wait_share"}
    assert shares == {
        "moe_bench-avx2 (TID: 101)": pytest.approx(0.2 / 3),
        "OMP Worker Thread #1 (TID: 102)": pytest.approx(0.8 / 3),
    }


def test_summary():
    """VTune's own names, and top-down nodes under theirs as fractions of slots."""
    rows = vtune_profile.summary_rows(parse_summary(recorded("vtune/summary.tsv")))
    found = {row.metric: row for row in rows}
    assert (found["Elapsed Time"].value, found["Elapsed Time:CPU Time"].unit) == (3.12, "s")
    level1 = ["Retiring", "Frontend_Bound", "Bad_Speculation", "Backend_Bound"]
    assert sum(found[name].value for name in level1) == pytest.approx(1)
    assert found["Backend_Bound.Core_Bound"].level == 2
    assert found["Backend_Bound.Core_Bound"].unit == "slots"
    assert "Elapsed Time:Pipeline Slots" not in found


REFUSALS = [
    ("ptrace.txt", "kernel.yama.ptrace_scope=0"),
    ("driver.txt", "insmod-sep"),
    ("sampling.txt", "insmod-sep"),
    ("virtual.txt", "--analysis hotspots or threading"),
]


@pytest.mark.parametrize(("complaint", "remedy"), REFUSALS)
def test_known_refusals(fake, tmp_path, monkeypatch, complaint, remedy):
    """What this machine does not offer is unavailable, with what changes it."""
    monkeypatch.setenv("FAKE_VTUNE", complaint)
    with pytest.raises(UnavailableError, match=remedy):
        collect(tmp_path / "raw")


def test_unknown_knob(fake, tmp_path, monkeypatch):
    """An older VTune is named as the reason, with its own words."""
    monkeypatch.setenv("FAKE_VTUNE", "knob.txt")
    with pytest.raises(ToolError, match="Cannot set knob `sampling-and-waits'"):
        collect(tmp_path / "raw")


def test_other_failures_keep_vtune_s_words():
    """The first words that VTune said, with its exit code."""
    error = refusal("vtune: Error: 0x4000002a (Oops) -- it broke\n", 3)
    assert isinstance(error, ToolError)
    assert str(error) == "VTune failed with exit code 3: 0x4000002a (Oops) -- it broke"


@pytest.mark.parametrize(
    ("script", "words"), [("exit 3", "exit code 3"), ("kill -SEGV $$", "killed by SIGSEGV")]
)
def test_workload_that_fails(fake, tmp_path, script, words):
    """The workload's own end is judged."""
    with pytest.raises(WorkloadError, match=words):
        collect(tmp_path / "raw", ("sh", "-c", script))


def test_nothing_collected(fake, tmp_path, monkeypatch):
    """An empty report is unavailable, not an empty table."""
    result = collect(tmp_path / "raw")
    monkeypatch.setenv("FAKE_VTUNE_EMPTY", "1")
    table = parse_table(vtune.report("hotspots", result, tmp_path / "raw", "function"))
    with pytest.raises(UnavailableError, match="collected nothing"):
        vtune_profile.profile(table)


def test_report_of_another_kind():
    """A report without CPU time names the columns that it has."""
    with pytest.raises(InputError, match="no column 'CPU Time'; it has Function, Module"):
        vtune_profile.profile(parse_table("Function\tModule\nf\tm\n"))


def test_missing_vtune(tmp_path, monkeypatch):
    """Unavailable, with what to install."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnavailableError, match="setvars"):
        collect(tmp_path / "raw")
