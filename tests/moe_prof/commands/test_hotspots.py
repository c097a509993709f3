"""The ``hotspots`` command from end to end: by perf, callgrind and gprof, by none of them."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from moe_prof import kernels, session
from moe_prof.collectors.stacks import Profile
from moe_prof.commands import hotspots, hotspots_run
from moe_prof.errors import UnavailableError, WorkloadError
from moe_prof.hotspots import collect
from moe_prof.hotspots.kept import read_profiles
from moe_prof.kernels.table import VARIANTS
from tests.moe_prof.commands.running import hide_programs, main
from tests.moe_prof.hotspots.stack_making import profile, stack

SHAPE = "4,32,32,4,2"
VTUNE = Path(__file__).parents[2] / "fixtures" / "vtune"
MADE = profile(
    stack(
        "main@moe_bench",
        "moe_qs8_gemm@moe_bench:/nowhere/a_rather_long_name__avx512.h:5",
        weight=3,
        thread="0",
        phase="down",
    ),
    stack("main@moe_bench", "moe::Signal::wait@moe_bench", weight=1, thread="1", waiting=True),
)


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run ``hotspots`` on the tiny layer with a session in a folder of its own."""
    monkeypatch.delenv("MOE_PROF_ISA", raising=False)
    monkeypatch.delenv("COLUMNS", raising=False)

    def go(*argv, shape=SHAPE):
        return main("hotspots", shape, "--output", tmp_path / "session", *argv)

    return go


@pytest.fixture
def made(monkeypatch):
    """A hand-made profile instead of perf's; gives the targets asked for."""
    targets = []

    def by_perf(target, setting):
        targets.append(target)
        if target.variant == "autovec":
            raise WorkloadError("it crashed; see its output")
        if target.variant == "scalar":
            raise UnavailableError("perf took no sample")
        return MADE

    monkeypatch.setattr(hotspots_run, "COLLECTORS", {**collect.COLLECTORS, "perf": by_perf})
    return targets


def values(ran, metric):
    """Values by (source, phase, thread)."""
    return {
        (row["source"], row["phase"], row["thread"]): row["value"]
        for row in ran.document["rows"]
        if row["metric"] == metric
    }


def test_rows(run, made):
    """Shares by function, phase and thread, waiting apart."""
    ran = run("--with", "perf", "--variant", "openmp", "--threads", "2", "--format", "json")
    assert ran.code == 0
    assert (made[0].variant, made[0].threads) == ("openmp", 2)
    assert values(ran, "self_share")["moe_qs8_gemm [moe_bench]", "down", None] == 0.75
    assert values(ran, "wait_self_share")["moe::Signal::wait [moe_bench]", None, "1"] == 1.0
    assert values(ran, "wait_share")["cpu-clock", None, None] == 0.25


def test_text(run, made):
    """Work first, waiting apart, lines when asked for."""
    ran = run("--with", "perf", "--variant", "openmp", "--lines")
    lines = ran.out.splitlines()
    assert lines[0].startswith(f"{SHAPE} openmp: perf record (cpu-clock), 2 samples")
    assert any("75.0 %" in line and "moe_qs8_gemm" in line and "down" in line for line in lines)
    assert any("waiting" in line and "moe::Signal::wait" in line for line in lines)
    assert any("75.0 %" in line and "a_rather_long_name__avx512.h:5" in line for line in lines)
    assert "waiting 25.0 % (thread 0 0.0 %, thread 1 100.0 %)" in lines


@pytest.mark.parametrize("columns", ["100", "80", "60"])
def test_narrow_pages(run, made, monkeypatch, columns):
    """No figure and no unit is lost on a narrow page."""
    monkeypatch.setenv("COLUMNS", columns)
    ran = run("--with", "perf", "--variant", "openmp", "--lines")
    assert all(len(line) <= int(columns) for line in ran.out.splitlines())
    for text in ("25.0 %", "self", "total", "phase", "function", "waiting"):
        assert text in ran.out
    lines = ran.out.splitlines()
    assert any("75.0 %" in line and "a_rather_long_name__avx512.h:5" in line for line in lines)


@pytest.mark.parametrize("name", ["folded", "speedscope", "firefox", "callgrind", "hatchet"])
def test_exports(run, made, tmp_path, name):
    """The file stands in the session's folder, and its path on the page."""
    ran = run("--with", "perf", "--variant", "openmp", "--export", name)
    (path,) = [p for p in (tmp_path / "session").iterdir() if p.name.startswith("openmp.")]
    assert path.read_text()
    assert path.name in "".join(ran.out.split("\n"))


def test_stacks_stay_in_the_session(run, made, tmp_path):
    """A report draws them later, on any machine."""
    run("--with", "perf", "--variant", "openmp")
    ((variant, profile),) = read_profiles(tmp_path / "session", ["openmp"])
    assert variant == "openmp"
    assert profile.total > 0


def test_a_variant_that_crashes_costs_no_other(run, made):
    """Exit code 6 with the reason; the others' rows are there."""
    ran = run("--with", "perf", "--variant", "openmp,autovec", "--format", "json")
    assert ran.code == 6
    assert ran.complaints == ["moe-prof: variant autovec: it crashed; see its output"]
    assert values(ran, "self_share")["it crashed; see its output", None, None] is None
    assert values(ran, "self_share")["moe_qs8_gemm [moe_bench]", "down", None] == 0.75


def test_no_sample(run, made):
    """Exit code 3 and one line."""
    ran = run("--with", "perf", "--variant", "scalar")
    assert (ran.code, ran.out) == (3, "")
    assert ran.complaints == ["moe-prof: perf took no sample"]


def test_variants_outside_the_driver(run):
    """Code in Python is not in the program that profilers run: exit code 3, with the reason."""
    ran = run("--with", "callgrind", "--variant", "numba-parallel")
    assert ran.code == 3
    assert "numba" in ran.complaints[0]


@pytest.mark.parametrize(
    ("tool", "word"),
    [("perf", "perf is not installed"), ("callgrind", "valgrind is not installed"),
     ("gprof", "gprof is not installed")],
)  # fmt: skip
def test_missing_tools(run, monkeypatch, tmp_path, tool, word):
    """Exit code 3, one line naming the tool."""
    hide_programs(monkeypatch, tmp_path / "without", ["perf", "valgrind", "gprof"])
    ran = run("--with", tool, "--variant", "scalar")
    assert (ran.code, ran.out, len(ran.complaints)) == (3, "", 1)
    assert word in ran.complaints[0]


def test_no_tool_at_all(run, monkeypatch, tmp_path):
    """Without --with: exit code 3 and one line with every reason."""
    hide_programs(monkeypatch, tmp_path / "without", ["perf", "valgrind", "gprof"])
    ran = run("--variant", "scalar")
    assert (ran.code, len(ran.complaints)) == (3, 1)
    for word in ("perf is not installed", "valgrind is not installed", "gprof is not installed"):
        assert word in ran.complaints[0]


def test_second_best_tool_is_said(run, monkeypatch, tmp_path):
    """Without perf callgrind is taken, and the page says why."""
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")
    hide_programs(monkeypatch, tmp_path / "without", ["perf"])
    ran = run("--variant", "scalar")
    assert ran.code == 0
    assert "Taken for want of a better tool: callgrind. perf: perf is not installed" in ran.out


def test_a_tool_that_refuses_is_replaced(run, monkeypatch):
    """Without --with the next tool is taken, for all variants, and the page says why."""
    calls = []

    def refuse(target, setting):
        calls.append(("perf", target.variant))
        raise UnavailableError("perf_event_open is blocked")

    def answer(target, setting):
        calls.append(("callgrind", target.variant))
        return MADE

    monkeypatch.setattr(hotspots_run, "COLLECTORS", {"perf": refuse, "callgrind": answer})
    monkeypatch.setattr(hotspots, "usable_tools", lambda machine: (("perf", "callgrind"), ""))
    ran = run("--variant", "scalar,autovec")
    assert ran.code == 0
    assert calls == [("perf", "scalar"), ("callgrind", "scalar"), ("callgrind", "autovec")]
    assert "callgrind. perf: perf_event_open is blocked." in " ".join(ran.out.split())


@pytest.mark.parametrize("options", [("--with", "oprofile"), ("--export", "svg"), ("--top", "0")])
def test_wrong_options(run, options):
    """Exit code 2 and one line."""
    ran = run(*options)
    assert (ran.code, len(ran.complaints)) == (2, 1)


@pytest.mark.slow
def test_callgrind_counts_the_forward_loop(run, tmp_path):
    """All instructions of the loop; phases by the lines of the calls; no figure for waiting."""
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")
    ran = run("--with", "callgrind", "--variant", "matricized", "--lines", "--format", "json")
    assert ran.code == 0
    phases = {phase for _, phase, _ in values(ran, "phase_share")}
    assert {"router", "quantize", "gate_up", "down", "combine"} <= phases
    waits = sum(values(ran, "wait_self_share").values())
    assert sum(values(ran, "phase_share").values()) + waits == pytest.approx(1, abs=1e-6)
    assert sum(values(ran, "self_share").values()) + waits == pytest.approx(1, abs=1e-3)
    assert list(values(ran, "wait_share").values()) == [None]
    assert any(".cpp:" in source for source, _, _ in values(ran, "line_share"))
    manifest = session.load(tmp_path / "session").manifest
    assert (manifest.state, manifest.argv[0]) == ("complete", "hotspots")


@pytest.mark.slow
def test_gprof_sees_the_whole_process(run, monkeypatch):
    """Rows of scope process, with the remark that it is not the loop alone."""
    if shutil.which("gprof") is None:
        pytest.skip("gprof is not installed")
    monkeypatch.setattr(collect, "GPROF_TIME_S", 0.3)
    ran = run("--with", "gprof", "--variant", "scalar", "--format", "json")
    if ran.code == 3:
        pytest.skip(f"no samples on this machine: {ran.complaints}")
    assert ran.code == 0
    assert {row["scope"] for row in ran.document["rows"]} == {"process"}
    assert values(ran, "self_share")


@pytest.mark.slow
def test_perf_samples_the_forward_loop(run, monkeypatch, tmp_path):
    """Real samples, or the reason why perf has none; the event is named."""
    monkeypatch.setattr(collect, "SAMPLED_TIME_S", 0.2)
    ran = run("--with", "perf", "--variant", "scalar", "--format", "json")
    if ran.code == 3:
        pytest.skip(f"perf cannot be used here: {ran.complaints}")
    assert ran.code == 0
    assert sum(values(ran, "self_share").values()) + sum(
        values(ran, "wait_self_share").values()
    ) == pytest.approx(1)
    assert {row["scope"] for row in ran.document["rows"]} == {"roi"}


def test_default_variant_is_the_last_stage():
    """It runs here and is in the driver."""
    native = [spec.name for spec in VARIANTS if spec.language == "c++" and kernels.isas(spec.name)]
    assert hotspots.best_variant() == native[-1]


def test_user_interrupts(run, monkeypatch, tmp_path):
    """Ctrl-C leaves a session that says so."""

    def by_perf(target, setting):
        raise KeyboardInterrupt

    monkeypatch.setattr(hotspots_run, "COLLECTORS", {"perf": by_perf})
    monkeypatch.setattr(hotspots, "usable_tools", lambda machine: (("perf",), ""))
    assert run("--variant", "scalar").code == 130
    manifest = json.loads((tmp_path / "session" / "manifest.json").read_text())
    assert manifest["state"] == "partial"


def test_profile_without_cost(run, monkeypatch):
    """It has an empty table and fails nothing."""
    empty = Profile("perf_record", "cpu-clock", "s", ())
    monkeypatch.setattr(hotspots_run, "COLLECTORS", {"perf": lambda target, setting: empty})
    monkeypatch.setattr(hotspots, "usable_tools", lambda machine: (("perf",), ""))
    assert run("--variant", "scalar").code == 0


@pytest.fixture
def vtune_on_path(monkeypatch, tmp_path):
    """A program that plays VTune."""
    folder = tmp_path / "vtune-bin"
    folder.mkdir()
    program = folder / "vtune"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {VTUNE / "fake_vtune.py"} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("FAKE_VTUNE", raising=False)
    monkeypatch.setattr(collect, "VTUNE_TIME_S", 0.01)


def test_vtune(run, vtune_on_path):
    """Its own division of time, its threads and its summary; no totals without call stacks."""
    ran = run("--with", "vtune", "--variant", "scalar", "--format", "json")
    assert ran.code == 0
    own = values(ran, "self_share")
    assert own["moe_qs8_gemm_4x16c4__avx2 [moe_bench-avx2]", None, None] == pytest.approx(4 / 6)
    assert values(ran, "wait_share")["CPU Time", None, None] == pytest.approx(1.4 / 6)
    assert values(ran, "total_share") == {}
    assert ran.rows["scalar", "Retiring"]["value"] == pytest.approx(0.455)


def test_vtune_refusal(run, vtune_on_path, monkeypatch):
    """Exit code 3 with the remedy."""
    monkeypatch.setenv("FAKE_VTUNE", "driver.txt")
    ran = run("--with", "vtune", "--analysis", "uarch-exploration", "--variant", "scalar")
    assert ran.code == 3
    assert "insmod-sep" in ran.complaints[0]


def test_analysis_without_vtune(run):
    """Exit code 2: the option belongs to VTune."""
    ran = run("--with", "perf", "--analysis", "threading")
    assert (ran.code, ran.complaints) == (2, ["moe-prof: --analysis is VTune's: add --with vtune"])
