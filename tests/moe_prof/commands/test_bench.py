"""The bench command: its answers, exit codes and session, with plans that misbehave on purpose."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from moe_prof import cli, session
from moe_prof.commands import bench
from moe_prof.measure import measure
from moe_prof.measure.crowd import Crowd
from tests.kernels import test_checkpoint
from tests.moe_prof.measure.interrupting import interrupt_at_sample

PLANS = Path(__file__).parent.parent / "measure"
SHAPE = "3,16,8,4,2"


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    """Run ``bench`` on fake plans; gives (exit code, stdout, stderr)."""
    monkeypatch.setenv("PYTHONPATH", str(PLANS))
    monkeypatch.setenv("MOE_PROF_SESSIONS", str(tmp_path / "sessions"))
    monkeypatch.delenv("MOE_PROF_ISA", raising=False)

    crowd = [None]

    def faked(request, progress, *, folder):
        changes = {"plan_factory": "fake_plans:scripted", "processes": 2}
        made = measure(dataclasses.replace(request, **changes), progress, folder=folder)
        return dataclasses.replace(made, crowd=crowd[0])

    monkeypatch.setattr(bench, "measure", faked)

    def go(*argv, plans="", others=None):
        monkeypatch.setenv("FAKE_PLANS", plans)
        crowd[0] = others
        code = cli.main(["bench", SHAPE, *argv])
        return (code, *capsys.readouterr())

    return go


@pytest.fixture
def rows_of(run):
    """Summary rows of a run by (variant, metric), with the exit code."""

    def go(*argv, plans=""):
        code, out, _ = run(*argv, "--format", "json", plans=plans)
        rows = json.loads(out)["rows"]
        return code, {(r["variant"], r["metric"]): r for r in rows if r["repeat"] is None}

    return go


def only_session(tmp_path):
    """The one session that a test has made."""
    (folder,) = (tmp_path / "sessions").iterdir()
    return session.load(folder)


def test_speedups_with_intervals(rows_of):
    """The fakes take 4, 3 and 2 ms: speedups 4/2 and 3/2 within their 1 % noise."""
    code, rows = rows_of("--variant", "scalar,autovec,openmp", "--repeat", "8")
    assert code == 0
    assert rows["openmp", "speedup"]["value"] == pytest.approx(2.0, rel=0.03)
    assert rows["openmp", "speedup_over_autovec"]["value"] == pytest.approx(1.5, rel=0.03)
    low, high = (rows["openmp", f"speedup_ci_{end}"]["value"] for end in ("low", "high"))
    assert low < rows["openmp", "speedup"]["value"] < high
    assert rows["openmp", "time"]["n"] == 8


def test_baseline_is_measured_unasked(rows_of):
    """``--variant openmp`` still has a speedup over scalar."""
    _, rows = rows_of("--variant", "openmp", "--repeat", "2")
    assert rows["scalar", "time"]["value"] is not None
    assert rows["openmp", "speedup"]["value"] is not None


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        ("wrong", "wrong result"),
        ("crash-at-time", "killed by SIGSEGV"),
        ("raise-at-time", "refuses"),
    ],
)
def test_failing_variant_has_no_speedup(rows_of, plan, reason):
    """Exit code 6; no time and no speedup for it but the reason; the others are measured."""
    code, rows = rows_of("--variant", "autovec,openmp", "--repeat", "2", plans=f"openmp={plan}")
    assert code == 6
    for metric in ("time", "speedup"):
        row = rows["openmp", metric]
        assert (row["value"], row["provenance"]) == (None, "unavailable")
        assert reason in row["source"]
    assert rows["autovec", "speedup"]["value"] is not None


def test_failure_is_told_on_stderr(run):
    """One clear line for the variant."""
    _, _, err = run("--variant", "openmp", "--repeat", "2", plans="openmp=wrong")
    (line,) = [line for line in err.splitlines() if line.startswith("moe-prof: ")]
    assert line.startswith(
        "moe-prof: openmp: wrong result: rel RMSE 0.5 (limit 0.001), worst token "
    )
    assert line.endswith(": 0.5 (limit 0.005)")


def test_wrong_baseline_gives_no_speedups(rows_of):
    """Times are shown, speedups are not."""
    code, rows = rows_of("--variant", "openmp", "--repeat", "2", plans="scalar=nan")
    assert code == 6
    assert rows["openmp", "time"]["value"] is not None
    assert rows["openmp", "speedup"]["value"] is None


def test_text_fits_100_columns(run):
    """The table with every variant, a failure and its notes."""
    code, out, _ = run("--repeat", "2", plans="openmp=crash-at-time,numba-matricized=wrong")
    assert code == 6
    assert max(map(len, out.splitlines())) <= 100
    assert "numba-matricized" in out
    assert "crashed" in out


def test_text_names_what_was_measured(run):
    """Title, unit, and how it was measured."""
    _, out, _ = run("--variant", "openmp", "--repeat", "6")
    assert out.startswith("3,16,8,4,2: N=3 D=16 H=8 E=4 K=2, 3.65 k MACs per forward\n")
    assert "median of 6 samples in 2 processes, interleaved" in out
    assert " ms " in out


def test_other_programs_are_told_first(run, tmp_path):
    """Before the title; kept as a note of the session."""
    _, out, _ = run("--variant", "openmp", "--threads", "2", "--repeat", "2", others=Crowd(2, 1.6))
    assert out.startswith("Warning: other programs kept 1.6 of 2 CPUs busy")
    assert any("kept 1.6 of 2" in note for note in only_session(tmp_path).manifest.notes)


def test_the_fastest_is_named(run):
    """2 ms against 3 and 4 ms with 1 % noise."""
    _, out, _ = run("--variant", "autovec,openmp", "--repeat", "8")
    assert "Fastest here is openmp: 2.0" in out


def test_equals_are_not_separable(run):
    """Two plans of the same speed: neither is called the fastest."""
    plans = "autovec=good,openmp=good"
    _, out, _ = run("--variant", "autovec,openmp", "--repeat", "8", plans=plans)
    (line,) = [line for line in out.splitlines() if line.startswith("Fastest")]
    assert line.startswith("Fastest, not separable: ")
    assert "autovec" in line
    assert "openmp" in line


def test_one_sample_claims_nothing(run, rows_of):
    """No speedup in the text or the rows, and the reason in both."""
    _, out, _ = run("--variant", "openmp", "--repeat", "1")
    (line,) = [line for line in out.splitlines() if line.startswith("openmp ")]
    assert "x" not in line.removeprefix("openmp")
    assert "one sample: no interval for scalar, openmp" in out
    _, rows = rows_of("--variant", "openmp", "--repeat", "1")
    assert rows["openmp", "speedup"]["value"] is None
    assert "one sample: no interval" in rows["openmp", "speedup"]["source"]


def test_more_threads_than_cpus_are_told(run, rows_of):
    """A mark in the table with its meaning, and the row's status."""
    argv = ("--variant", "openmp", "--threads", "999", "--repeat", "2")
    _, out, _ = run(*argv)
    assert " 999! " in out
    assert "oversubscribed: 999 threads on " in out
    _, rows = rows_of(*argv)
    assert rows["openmp", "threads"]["status"] == "out_of_bounds"


def test_unknown_variant_is_a_usage_error(run):
    """Exit code 2, the known ones are listed, no session is made."""
    code, out, err = run("--variant", "turbo")
    assert (code, out) == (2, "")
    assert "turbo" in err
    assert "scalar" in err
    assert "packed" in err


def test_unknown_path_is_a_usage_error(run):
    """Exit code 2, the known paths are listed."""
    code, _, err = run("--isa", "mmx")
    assert code == 2
    assert "avx2" in err


def test_session_keeps_everything(run, tmp_path):
    """Rows, the pyperf file, and the printed values are the stored ones."""
    _, out, _ = run("--variant", "openmp", "--repeat", "2", "--format", "json")
    saved = only_session(tmp_path)
    assert saved.manifest.state == "complete"
    assert saved.manifest.variants == ("scalar", "openmp")
    assert saved.manifest.tools["numpy"] == np.__version__
    assert len(saved.rows) == len(json.loads(out)["rows"])
    assert (saved.folder / "raw" / "pyperf.json").is_file()


def test_the_session_knows_its_command_line(run, tmp_path):
    """The one that was given, not that of the process it ran in."""
    run("--variant", "openmp", "--repeat", "1")
    assert only_session(tmp_path).manifest.argv == (
        "bench", SHAPE, "--variant", "openmp", "--repeat", "1",
    )  # fmt: skip


def test_interrupt_gives_a_partial_session(run, monkeypatch, tmp_path):
    """Ctrl-C: what was measured is printed and kept, exit code 130."""
    interrupt_at_sample(monkeypatch, "openmp")
    code, out, err = run("--variant", "openmp", "--repeat", "400", plans="scalar=slow")
    assert code == 130
    assert "interrupted: only what was measured before is shown" in out
    assert "interrupted" in err
    assert only_session(tmp_path).manifest.state == "partial"


def test_time_limit_leaves_the_slow_baseline_out(rows_of):
    """No room for a baseline that hangs: times, but the speedup has a reason."""
    arguments = ("--variant", "openmp", "--max-time", "10s")
    code, rows = rows_of(*arguments, plans="scalar=hang-at-time")
    assert code == 0
    assert rows["openmp", "time"]["value"] is not None
    assert "the baseline scalar has no time" in rows["openmp", "speedup"]["source"]


def test_nothing_in_time_is_unavailable(run):
    """Exit code 3 when no variant that was asked for could be measured in time."""
    code, _, err = run("--variant", "openmp", "--max-time", "2s", plans="openmp=hang-at-prepare")
    assert code == 3
    assert "openmp" in err


@pytest.mark.parametrize("build", ["release", "portable"])
def test_the_build_is_passed_on(run, monkeypatch, build):
    """The request names it; the portable one forces its only path and leaves others out."""
    requests = []
    faked = bench.measure

    def watched(request, progress, *, folder):
        requests.append(request)
        return faked(request, progress, folder=folder)

    monkeypatch.setattr(bench, "measure", watched)
    _, out, _ = run("--repeat", "1", "--build", build)
    (request,) = requests
    assert request.build == build
    if build == "portable":
        only = ("scalar", "portable")  # these have no other path
        assert {job.isa for job in request.jobs if job.variant not in only} == {"portable"}
        assert "not measured: variant 'packed' has no path 'portable'" in " ".join(out.split())


def test_a_path_that_the_build_lacks(run):
    """Exit code 2 before anything is built."""
    code, _, err = run("--build", "portable", "--isa", "avx2")
    assert code == 2
    assert "--build portable has no path 'avx2'; leave out --isa or --build" in err


def test_real_kernels_are_verified_and_timed(monkeypatch, tmp_path, capsys):
    """The built kernels on an odd shape, through the same command."""
    monkeypatch.setenv("MOE_PROF_SESSIONS", str(tmp_path))
    argv = ["bench", "5,33,31,9,3", "--variant", "autovec,openmp", "--repeat", "2"]
    assert cli.main([*argv, "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    found = {(r["variant"], r["metric"]): r["value"] for r in rows if r["repeat"] is None}
    assert found["openmp", "rel_rmse"] < 1e-3
    assert found["openmp", "time"] > 0
    assert found["autovec", "speedup"] > 0


def test_weights_of_a_checkpoint_are_run(monkeypatch, tmp_path, capsys):
    """The built kernels on a generated file: right, timed, and the row says whose weights."""
    monkeypatch.setenv("MOE_PROF_SESSIONS", str(tmp_path / "sessions"))
    path = test_checkpoint.write(tmp_path / "a.safetensors", test_checkpoint.model()[0])
    argv = ["bench", "2,48,16,6,2", "--variant", "scalar", "--repeat", "1", "--format", "json"]
    assert cli.main([*argv, "--weights", str(path), "--layer", "3"]) == 0
    rows = {r["metric"]: r for r in json.loads(capsys.readouterr().out)["rows"]}
    assert rows["rel_rmse"]["value"] < 1e-5
    assert rows["layer"]["source"].startswith(f"weights of {path}, layer 3; plain sizes")
