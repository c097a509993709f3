"""The ``topdown`` command from end to end on a tiny layer.

One real run measures; the other tests replay its measurement through the command on machines that
are played: without valgrind, with an Intel PMU, with a wrong variant, with Ctrl-C.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import pytest

from moe_prof import session
from moe_prof.analysis.verdict import Cause
from moe_prof.collectors.perf_stat import EVENTS
from moe_prof.commands import topdown as command
from moe_prof.errors import BuildError, ToolError, UnavailableError, WorkloadError
from moe_prof.kernels import build as kernel_build
from moe_prof.measure.crowd import Crowd
from moe_prof.measure.expected import layer_macs
from moe_prof.scenario import Scenario
from moe_prof.topdown import counted, simulation
from tests.moe_prof.commands.running import (
    CONTRACT_METRICS,
    TREE,
    Ran,
    hide_programs,
    main,
)
from tests.moe_prof.topdown import fake_intel
from tests.moe_prof.topdown.made import simulated

SHAPE = "4,32,32,4,2"
VARIANTS = ("scalar", "openmp")
NO_PMU = "this virtual machine has no CPU PMU"
FIND_COUNTERS = counted.find_counters
NO_COUNTERS = counted.Counters((), None, NO_PMU, NO_PMU, "run on bare metal")


@dataclass
class Measured:
    """The real run, its session's folder and what its measuring functions returned."""

    ran: Ran
    folder: Path
    answers: dict[str, Any]


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """One run without counters, everything else real: kernels, clocks, ceilings, callgrind."""
    folder = tmp_path_factory.mktemp("topdown") / "session"
    answers: dict[str, Any] = {}
    for kind in ("release", "phases"):
        kernel_build.build(kind)  # its minutes on a busy machine are not to come from the limit

    def recording(name, function):
        def recorded(*args, **options):
            answers[name] = function(*args, **options)
            return answers[name]

        return recorded

    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MOE_PROF_ISA", raising=False)
        patch.setattr(counted, "find_counters", lambda machine: NO_COUNTERS)
        for name in ("measure", "measure_phases"):
            patch.setattr(command, name, recording(name, getattr(command, name)))
        ceilings = command.measured_ceilings
        patch.setattr(ceilings, "measure", recording("ceilings", ceilings.measure))
        ran = main(
            "topdown", SHAPE, "--variant", ",".join(VARIANTS), "--max-time", "120", "--repeat", "3",
            "--format", "json", "--output", folder,
        )  # fmt: skip
    return Measured(ran, folder, answers)


def calm(times, name):
    """Phase times of an idle machine: on a crowded one teams of threads do little but wait."""
    threads = (replace(thread, wait_s=0.1 * thread.busy_s) for thread in times.threads)
    return replace(times, variant=name, threads=tuple(threads), crowd=None)


@pytest.fixture
def replay(real, monkeypatch, tmp_path):
    """Run the command on the recorded measurement; ``change`` alters its timings first."""
    monkeypatch.delenv("MOE_PROF_ISA", raising=False)
    monkeypatch.setattr(counted, "find_counters", lambda machine: NO_COUNTERS)
    ceilings = real.answers["ceilings"]
    monkeypatch.setattr(command.measured_ceilings, "measure", lambda *a, **o: ceilings)

    def go(
        *argv, change=lambda timing: timing, made=calm, requests=None, variants=VARIANTS, **changes
    ):
        found = real.answers["measure"]
        timings = tuple(
            change(replace(timing, variant=name))
            for name, timing in zip(variants, found.timings, strict=True)
        )

        def measured(request, progress, *, folder):
            if requests is not None:
                requests.append(request)
            return replace(found, timings=timings, **{"crowd": None, **changes})

        def phases(request, progress, *, folder):
            wanted = [job.variant for job in request.jobs]
            times = zip(variants, real.answers["measure_phases"], strict=True)
            return tuple(made(t, name) for name, t in times if name in wanted)

        monkeypatch.setattr(command, "measure", measured)
        monkeypatch.setattr(command, "measure_phases", phases)
        options = ["--variant", ",".join(variants), "--output", tmp_path / "session"]
        return main("topdown", SHAPE, *options, "--format", "json", *argv)

    return go


@pytest.fixture
def quick(monkeypatch):
    """Hand-made counts instead of callgrind; gives the jobs that were simulated."""
    jobs = []

    def made(wanted, scenario, **options):
        jobs.extend(wanted)
        return {job.variant: simulated(variant=job.variant, isa=job.isa) for job in wanted}, {}

    monkeypatch.setattr(simulation, "simulate", made)
    return jobs


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

    def fail(kind, progress):
        raise BuildError("the C++ kernels did not build: out of disk")

    monkeypatch.setattr(command.kernel_build, "build", fail)
    ran = replay()
    assert ran.code == 0
    assert [ran.rows[v, "time"]["value"] > 0 for v in VARIANTS] == [True] * len(VARIANTS)
    assert {
        (ran.rows[v, "spin_fraction"]["value"], ran.rows[v, "spin_fraction"]["source"])
        for v in VARIANTS
    } == {(None, "the C++ kernels did not build: out of disk")}


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
    monkeypatch.setattr(command, "isas", lambda name: ("native", "avx2", "portable"))
    monkeypatch.setattr(simulation, "simulable_isa", lambda name, cpu: "avx2")


def test_variants_are_timed_on_the_path_that_is_simulated(replay, quick, avx512, tmp_path):
    """Time and counts must be of the same code; the note names the path."""
    requests: list[Any] = []
    replay(variants=("autovec", "openmp"), requests=requests)
    assert [job.isa for job in requests[0].jobs] == ["avx2", "avx2"]
    notes = session.load(tmp_path / "session").manifest.notes
    assert any(n.startswith("autovec, openmp: on the avx2 path, because its native") for n in notes)


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


@pytest.fixture
def on_intel(replay, monkeypatch, tmp_path):
    """Replay on a machine with slot counters, played by recorded perf outputs."""
    monkeypatch.setattr(counted, "MIN_TIME_S", 0.01)
    others = hide_programs(monkeypatch, tmp_path / "others", ["perf", "valgrind"])

    def go(*argv, **options):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(counted, "find_counters", FIND_COUNTERS)
            fake_intel.pretend_intel(patch, tmp_path)
            patch.setenv("PATH", f"{tmp_path / 'bin'}:{others}")
            return replay(*argv, **options)

    return go


def test_slots_are_measured_where_they_can_be(on_intel, tmp_path):
    """The recorded Sapphire Rapids: every node measured, nothing simulated."""
    ran = on_intel()
    assert (ran.code, ran.complaints) == (0, [])
    rows = ran.rows
    for name in VARIANTS:
        assert {rows[name, node]["provenance"] for node in TREE} == {"measured"}
        assert rows[name, "Retiring"]["value"] == 0.75
        assert rows[name, "IPC"]["value"] == 3.0
        assert rows[name, "verdict"]["provenance"] == "measured"
        assert [m for m in CONTRACT_METRICS if (name, m) not in rows] == []
    assert {row["collector"] for row in ran.document["rows"]}.isdisjoint({"callgrind", "model"})
    assert (tmp_path / "session" / "raw" / "perf" / "scalar" / "perf_stat.csv").is_file()


def test_counted_events_are_of_one_forward(on_intel):
    """The recorded 6e9 instructions over the driver's own number of forwards."""
    rows = on_intel().rows
    row = rows["scalar", "instructions"]
    forwards = int(row["source"].split("per forward, ")[1].split()[0])
    assert (row["provenance"], row["value"]) == ("measured", pytest.approx(6e9 / forwards))
    assert rows["scalar", "instructions_per_mac"]["value"] == pytest.approx(
        row["value"] / layer_macs(Scenario(4, 32, 32, 4, 2))
    )


def test_a_variant_outside_of_the_driver_says_so(on_intel):
    """perf stat cannot count numba's code: rows with the reason, not silence."""
    rows = on_intel(variants=("scalar", "numba-parallel")).rows
    assert rows["scalar", "Retiring"]["value"] == 0.75
    for metric in (*TREE, "IPC", "instructions", "instructions_per_mac"):
        row = rows["numba-parallel", metric]
        assert (row["value"], row["provenance"]) == (None, "unavailable")
        assert "numba-parallel is not part of it" in row["source"]


@pytest.fixture
def counters(replay, monkeypatch):
    """Counters for cycles and slots whose runs have planted ends; no perf runs."""
    found = counted.Counters(EVENTS, None, "", "", "")

    def plant(**steps):
        monkeypatch.setattr(counted, "find_counters", lambda machine: found)
        for name, error in ({"count": None, "topdown": None} | steps).items():

            def step(target, counters, *, folder, timeout_s, error=error):
                if error is not None:
                    raise error
                return []

            monkeypatch.setattr(counted, name, step)

    return plant


@pytest.mark.parametrize("error", [UnavailableError("perf says no"), ToolError("perf fell over")])
def test_the_model_answers_where_perf_refuses_slots(replay, counters, quick, error):
    """A PMU that promises slots and then refuses them."""
    counters(topdown=error)
    ran = replay()
    assert ran.code == 0
    assert {ran.rows[v, "Retiring"]["provenance"] for v in VARIANTS} == {"modelled"}


def test_a_refused_count_leaves_reasons(replay, counters, quick):
    """The names of the contract are there, without values."""
    counters(count=UnavailableError("perf says no"))
    rows = replay().rows
    for metric in ("instructions", "instructions_per_mac", "IPC"):
        row = rows["scalar", metric]
        assert (row["value"], row["source"]) == (None, "perf says no")


def test_a_crash_under_perf_is_noted(replay, counters, quick, tmp_path):
    """The variant keeps its times; its nodes and a remark name the crash."""
    counters(topdown=WorkloadError("killed by SIGSEGV"))
    ran = replay()
    assert {ran.rows[v, "Retiring"]["source"] for v in VARIANTS} == {"killed by SIGSEGV"}
    notes = session.load(tmp_path / "session").manifest.notes
    assert "scalar: its slots were not counted: killed by SIGSEGV" in notes
