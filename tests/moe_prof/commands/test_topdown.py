"""The ``topdown`` command from end to end on a tiny layer.

One real run measures; the other tests replay its measurement through the command on machines that
are played: without valgrind, with a wrong variant, with Ctrl-C, with other programs.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from moe_prof import session
from moe_prof.analysis.verdict import Cause
from moe_prof.commands import topdown as command
from moe_prof.errors import BuildError
from moe_prof.kernels import build as kernel_build
from moe_prof.measure.crowd import Crowd
from moe_prof.topdown import simulation, stand_ins
from moe_prof.topdown.counting import SIMULATIONS_S
from tests.moe_prof.commands.running import CONTRACT_METRICS, TREE, Ran, hide_programs
from tests.moe_prof.commands.topdown_run import NO_PMU, SHAPE, VARIANTS


def test_the_run_succeeds(real):
    """Exit code 0, nothing to complain about, a document that fits the schema."""
    assert (real.ran.code, real.ran.complaints) == (0, [])
    assert real.ran.document["session"] == str(real.folder)


@pytest.mark.parametrize("metric", CONTRACT_METRICS)
def test_names_of_the_contract(real, metric):
    """Every variant has a row of that name, with a value or a reason."""
    rows = real.ran.rows
    assert [name for name in VARIANTS if (name, metric) not in rows] == []


def test_measured_values(real):
    """Times, speedups, waiting and errors are there and plausible."""
    rows = {key: row["value"] for key, row in real.ran.rows.items()}
    for name in VARIANTS:
        assert rows[name, "time"] > 0
        assert 0 <= rows[name, "spin_fraction"] <= 1
        assert 0 <= rows[name, "rel_rmse"] < 1e-3
        assert rows[name, "roofline_fraction"] > 0
    assert rows["scalar", "speedup"] == 1
    assert rows["openmp", "speedup"] > 0


def test_one_verdict_per_variant(real):
    """Null, with a known cause in ``source``."""
    found = [row for row in real.ran.document["rows"] if row["metric"] == "verdict"]
    assert [(row["variant"], row["value"]) for row in found] == [(v, None) for v in VARIANTS]
    assert {row["source"] for row in found} <= set(get_args(Cause))


def test_nothing_modelled_is_called_measured(real):
    """Without a PMU no node and no count of instructions is measured."""
    rows = real.ran.rows
    found = {rows[v, m]["provenance"] for v in VARIANTS for m in (*TREE, "IPC", "instructions")}
    assert found <= {"modelled", "simulated", "unavailable"}


def test_the_modelled_tree_of_scalar(real):
    """Level 1 sums to one, level 2 to the backend, where valgrind can simulate."""
    row = real.ran.rows["scalar", "Retiring"]
    if row["value"] is None:
        pytest.skip(row["source"])
    values = [real.ran.rows["scalar", node]["value"] for node in TREE]
    assert sum(values[:4]) == pytest.approx(1)
    if values[4] is not None:
        assert values[4] + values[5] == pytest.approx(values[3])


def test_the_session_holds_what_was_printed(real):
    """Manifest, parquet with the same rows, raw outputs."""
    saved = session.load(real.folder)
    assert (saved.manifest.state, saved.manifest.variants) == ("complete", VARIANTS)
    assert saved.manifest.argv[:2] == ("topdown", SHAPE)
    assert (real.folder / "metrics.parquet").is_file()
    assert [row.value for row in saved.rows] == [r["value"] for r in real.ran.document["rows"]]
    assert (real.folder / "raw" / "pyperf.json").is_file()
    if shutil.which("valgrind"):
        assert (real.folder / "raw" / "callgrind" / "scalar" / "callgrind.out").is_file()


def test_no_valgrind(replay, monkeypatch, tmp_path):
    """Exit code 0; the tree is unavailable for exactly that reason, times and verdicts remain."""
    hide_programs(monkeypatch, tmp_path / "bin", ["valgrind", "perf"])
    ran = replay()
    assert ran.code == 0
    reason = "valgrind is not installed; apt install valgrind"
    assert {
        (ran.rows[v, m]["value"], ran.rows[v, m]["provenance"], ran.rows[v, m]["source"])
        for v in VARIANTS
        for m in (*TREE, "IPC", "instructions", "instructions_per_mac")
    } == {(None, "unavailable", reason)}
    assert ran.rows["openmp", "time"]["value"] > 0
    assert [v for v in VARIANTS if (v, "verdict") not in ran.rows] == []


def test_phases_that_do_not_build(replay, quick, monkeypatch):
    """The times stay, and the waiting is unavailable with the compiler's words."""

    built = kernel_build.build

    def fail(kind, progress):
        if kind == "phases":
            raise BuildError("the C++ kernels did not build: out of disk")
        return built(kind, progress)

    monkeypatch.setattr(command.kernel_build, "build", fail)
    ran = replay()
    assert ran.code == 0
    assert [ran.rows[v, "time"]["value"] > 0 for v in VARIANTS] == [True] * len(VARIANTS)
    assert {
        (ran.rows[v, "spin_fraction"]["value"], ran.rows[v, "spin_fraction"]["source"])
        for v in VARIANTS
    } == {(None, "the C++ kernels did not build: out of disk")}


def test_a_users_library_has_slots_and_a_verdict(replay, quick, tmp_path):
    """It is simulated in the native driver, on the only path that it has."""
    library = tmp_path / "mine.so"
    library.write_bytes(Path(kernel_build.build().support).read_bytes())
    ran = replay(variants=("scalar", str(library)))
    assert [(job.variant, job.isa) for job in quick] == [
        ("scalar", "portable"), (str(library), ""),
    ]  # fmt: skip
    assert ran.rows[str(library), "Retiring"]["provenance"] == "modelled"
    assert ran.rows[str(library), "instructions_per_mac"]["value"] > 0
    assert "is not in the native driver" not in ran.out


def test_simulations_end_though_nobody_set_a_limit(replay, monkeypatch):
    """Nobody waits for many minutes unasked; with a limit, its end is that of the simulations."""
    ends = []

    def simulated(jobs, scenario, **options):
        ends.append(options["end_s"] - time.monotonic())
        return {}, {job.variant: "too long" for job in jobs}

    monkeypatch.setattr(simulation, "simulate", simulated)
    shutil.rmtree(replay().document["session"])
    replay("--max-time", "1h")
    assert 0 < ends[0] <= SIMULATIONS_S < ends[1]


def test_text_instead_of_json(replay, quick):
    """The same run as a page of 100 columns, with the reason why it is modelled."""
    ran = replay("--format", "text")
    assert ran.code == 0
    assert max(map(len, ran.out.splitlines())) <= 100
    assert f"Not measured because {NO_PMU}" in ran.out
    assert "Fastest" in ran.out


def test_csv_instead_of_json(replay, quick):
    """A header and one line a row."""
    ran = replay("--format", "csv")
    assert ran.code == 0
    assert ran.out.startswith("run_id,scenario,variant,collector")
    assert len(ran.out.splitlines()) > 50


def test_a_result_file(replay, quick, monkeypatch, tmp_path):
    """Nothing on stdout, the document in the file."""
    target = tmp_path / "result.json"
    monkeypatch.setenv("MOE_PROF_SESSIONS", str(tmp_path / "sessions"))
    ran = replay("--output", target)
    assert (ran.code, ran.out) == (0, "")
    written = Ran(0, target.read_text(), "").document
    assert Path(written["session"]).parent == tmp_path / "sessions"


def test_a_wrong_variant(replay, quick):
    """Exit code 6 and one line; no speedup, no slots, and a verdict that says why."""

    def spoil(timing):
        if timing.variant != "openmp":
            return timing
        return replace(timing, status="wrong", reason="wrong result: rel RMSE 0.5", rel_rmse=0.5)

    ran = replay(change=spoil)
    assert (ran.code, ran.complaints) == (
        6, ["moe-prof: variant openmp: wrong result: rel RMSE 0.5"],
    )  # fmt: skip
    rows = ran.rows
    missing = set(CONTRACT_METRICS) - {"rel_rmse"}
    assert {rows["openmp", metric]["value"] for metric in missing} == {None}
    assert rows["openmp", "Retiring"]["source"] == "wrong result: rel RMSE 0.5"
    assert rows["openmp", "verdict"]["source"] == "unknown"
    assert "wrong result" in rows["openmp", "verdict_evidence"]["source"]
    assert rows["scalar", "Retiring"]["value"] is not None


def test_nothing_timed_is_unavailable(replay, quick):
    """Exit code 3 and a line for each variant, not an empty success."""
    ran = replay(
        change=lambda t: replace(t, status="no_time", reason="the limit was reached", samples_s={})
    )
    assert ran.code == 3
    assert ran.complaints == [f"moe-prof: variant {v}: the limit was reached" for v in VARIANTS]
    assert {ran.rows[v, "verdict"]["source"] for v in VARIANTS} == {"unknown"}


def test_too_short_a_share_is_followed_by_what_is_left(replay, quick):
    """Times are tried again before anything else; without a limit there is no more to give."""
    requests: list[Any] = []
    late = {"status": "no_time", "reason": "the limit was reached", "samples_s": {}}
    replay("--max-time", "100", change=lambda t: replace(t, **late), requests=requests)
    first_s, again_s = (request.max_time_s for request in requests)
    assert first_s == 40.0
    assert 90.0 < again_s <= 98.0


def test_interrupt_keeps_what_was_measured(replay, quick, tmp_path):
    """Ctrl-C: exit code 130, a partial session with the times."""
    ran = replay(interrupted=True)
    assert (ran.code, ran.out) == (130, "")
    assert ran.complaints == [
        "moe-prof: interrupted",
        f"moe-prof: what was measured so far is in {tmp_path / 'session'}",
    ]
    saved = session.load(tmp_path / "session")
    assert saved.manifest.state == "partial"
    assert "time" in {row.metric for row in saved.rows}


def test_remarks_are_kept_in_the_manifest(replay, quick, tmp_path):
    """A saved session says what the page said."""
    replay(notes=("the machine was busy",))
    assert "the machine was busy" in session.load(tmp_path / "session").manifest.notes


@pytest.fixture
def avx512(monkeypatch):
    """A CPU on whose native path valgrind fails; avx2 works."""
    monkeypatch.setattr(stand_ins, "isas", lambda name: ("native", "avx2", "portable"))
    monkeypatch.setattr(simulation, "simulable_isa", lambda name, cpu: "avx2")


def test_what_cannot_be_simulated_is_timed_and_another_path_modelled(
    replay, quick, avx512, tmp_path
):
    """Time and slots of different paths are told apart: the rows and the note name the path."""
    requests: list[Any] = []
    ran = replay(variants=("autovec", "openmp"), requests=requests)
    paths = [[job.isa for job in request.jobs] for request in requests]
    assert paths == [[None, None], ["avx2", "avx2"]]
    assert [job.isa for job in quick] == ["avx2", "avx2"]
    assert ran.rows["openmp", "modelled_isa"]["source"] == "avx2"
    retiring = ran.rows["openmp", "Retiring"]
    assert retiring["value"] is None or retiring["source"].startswith("avx2 path: ")
    notes = session.load(tmp_path / "session").manifest.notes
    assert any(n.startswith("autovec, openmp: slots are those of the avx2 path") for n in notes)


@pytest.mark.parametrize(("argv", "variable"), [(("--isa", "portable"), ""), ((), "portable")])
@pytest.mark.usefixtures("quick", "avx512")
def test_a_path_that_was_asked_for_stays(replay, monkeypatch, argv, variable):
    """Neither --isa nor MOE_PROF_ISA is overruled for the simulation's sake."""
    requests: list[Any] = []
    monkeypatch.setenv("MOE_PROF_ISA", variable)
    replay(*argv, requests=requests)
    (openmp,) = (job for job in requests[0].jobs if job.variant == "openmp")
    assert openmp.isa == "portable"


def test_a_crowded_team_has_the_ceilings_of_the_cpus(replay, quick):
    """128 threads run no faster than all CPUs, so no ceilings of 128 threads are looked for."""

    def crowd(timing):
        return replace(timing, threads=128) if timing.variant == "openmp" else timing

    ran = replay("--threads", "128", change=crowd)
    assert ran.rows["openmp", "roofline_fraction"]["value"] is not None
    assert ran.rows["openmp", "verdict"]["source"] == "oversubscribed"


def waiting_half(times, name):
    """Phase times of threads that wait as long as they work, while others filled the machine."""
    threads = (replace(thread, wait_s=thread.busy_s) for thread in times.threads)
    return replace(times, variant=name, threads=tuple(threads), crowd=Crowd(2, 1.6))


def test_other_programs_are_told_first_and_excuse_waiting(replay, quick, tmp_path):
    """The first line is the warning; waiting gives no verdict but the reason."""
    ran = replay("--threads", "2", "--format", "text", made=waiting_half, crowd=Crowd(2, 0.0))
    assert ran.out.startswith("Warning: other programs kept 1.6 of 2 CPUs busy")
    saved = session.load(tmp_path / "session")
    verdicts = {row.variant: row.source for row in saved.rows if row.metric == "verdict"}
    assert verdicts["openmp"] == "unknown"
    assert any(note.startswith("other programs kept 1.6") for note in saved.manifest.notes)


def test_waiting_on_an_idle_machine_has_a_verdict(replay, quick):
    """The same figures without the others."""

    def idle(times, name):
        return replace(waiting_half(times, name), crowd=Crowd(2, 0.0))

    ran = replay("--threads", "2", made=idle, crowd=Crowd(2, 0.0))
    assert ran.rows["openmp", "verdict"]["source"] in ("spin_bound", "imbalance", "serial_bound")
