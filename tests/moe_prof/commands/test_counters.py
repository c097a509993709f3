"""The ``counters`` command from end to end: by recorded perf outputs, by callgrind, by neither."""

from __future__ import annotations

import shutil

import pytest

from moe_prof import session
from moe_prof.collectors.perf_stat import EVENTS
from moe_prof.deadline import Deadline
from moe_prof.errors import BuildError, UnavailableError, WorkloadError
from moe_prof.kernels import build as kernel_build
from moe_prof.measure.expected import layer_macs
from moe_prof.scenario import Scenario
from moe_prof.topdown import counted, simulation
from tests.moe_prof.commands.running import hide_programs, main
from tests.moe_prof.topdown import fake_intel
from tests.moe_prof.topdown.made import SCENARIO, row, simulated

SHAPE = "4,32,32,4,2"
MACS = layer_macs(Scenario(4, 32, 32, 4, 2))
NO_PMU = "this virtual machine has no CPU PMU"
NO_COUNTERS = counted.Counters((), None, NO_PMU, NO_PMU, "run on bare metal")
ALL_COUNTERS = counted.Counters(EVENTS, None, "", "", "")


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run ``counters`` on the tiny layer with a session in a folder of its own."""
    monkeypatch.delenv("MOE_PROF_ISA", raising=False)

    def go(variants, *argv):
        options = ("--variant", variants, "--output", tmp_path / "session")
        return main("counters", SHAPE, *options, *argv)

    return go


@pytest.fixture
def without_tools(monkeypatch, tmp_path):
    """A PATH with everything but perf and valgrind."""
    hide_programs(monkeypatch, tmp_path / "without", ["perf", "valgrind"])


@pytest.fixture
def quick(monkeypatch):
    """No counters, and hand-made counts instead of callgrind; gives jobs and options."""
    calls = []

    def made(wanted, scenario, **options):
        calls.append((list(wanted), options))
        return {job.variant: simulated(variant=job.variant, isa=job.isa) for job in wanted}, {}

    monkeypatch.setattr(counted, "find_counters", lambda machine: NO_COUNTERS)
    monkeypatch.setattr(simulation, "simulate", made)
    return calls


def test_neither_perf_nor_valgrind(run, without_tools):
    """Exit code 3 and one line with both reasons and a remedy; nothing on stdout."""
    ran = run("scalar,openmp", "--format", "json")
    assert (ran.code, ran.out) == (3, "")
    assert ran.complaints == [
        "moe-prof: nothing can be counted here: perf is not installed; "
        "valgrind is not installed; apt install valgrind"
    ]


def test_real_simulation(run, monkeypatch):
    """Instructions of the real kernels by callgrind, with a document that fits the schema."""
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")
    monkeypatch.setattr(counted, "find_counters", lambda machine: NO_COUNTERS)
    ran = run("scalar", "--format", "json")
    assert (ran.code, ran.complaints) == (0, [])
    found = ran.rows["scalar", "instructions"]
    assert (found["provenance"], found["collector"]) == ("simulated", "callgrind")
    assert found["value"] > 2 * MACS  # at least a load and a multiply-add for each product
    assert ran.rows["scalar", "instructions_per_mac"]["value"] == pytest.approx(
        found["value"] / MACS
    )


def test_hardware_counters_are_enough(run, without_tools, monkeypatch, tmp_path):
    """Recorded counts, measured, of one forward; nothing is simulated."""
    monkeypatch.setattr(counted, "MIN_TIME_S", 0.01)
    fake_intel.pretend_intel(monkeypatch, tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{tmp_path / 'without'}")
    ran = run("scalar,numba-parallel", "--format", "json")
    assert (ran.code, ran.complaints) == (0, [])
    rows = ran.rows
    assert {rows["scalar", event]["provenance"] for event in EVENTS} == {"measured"}
    assert rows["scalar", "IPC"]["value"] == 3.0
    assert rows["scalar", "instructions"]["value"] < 6e9
    assert "not part of it" in rows["numba-parallel", "instructions"]["source"]
    assert "callgrind" not in {r["collector"] for r in ran.document["rows"]}


def test_the_page_names_the_missing_counters(run, quick):
    """The reason and what would change it."""
    ran = run("scalar,numba-parallel")
    page = " ".join(ran.out.split())
    assert ran.code == 0
    assert page.startswith("4,32,32,4,2: events of one forward")
    assert f"No hardware counters: {NO_PMU}." in page
    assert "To count in hardware: run on bare metal." in page
    assert max(map(len, ran.out.splitlines())) <= 100


def test_a_variant_that_cannot_be_simulated_has_its_reason(run, quick):
    """Beside those that can."""
    rows = run("scalar,numba-parallel", "--format", "json").rows
    assert rows["scalar", "instructions"]["value"] == 2000
    assert "numba compiles" in rows["numba-parallel", "instructions"]["source"]


def test_seed_and_time_limit_reach_the_simulation(run, quick):
    """The limit is an end for all jobs together."""
    run("scalar", "--seed", "7", "--max-time", "30s")
    ((_, options),) = quick
    assert (options["seed"], options["end_s"] is None) == (7, False)


def test_a_path_that_was_asked_for_is_simulated(run, quick, monkeypatch, tmp_path):
    """By --isa, which leaves the baseline its only one, and by MOE_PROF_ISA."""
    monkeypatch.setattr(simulation, "simulable_isa", lambda name, cpu: "best")
    run("scalar,openmp", "--isa", "portable", "--output", tmp_path / "first")
    monkeypatch.setenv("MOE_PROF_ISA", "portable")
    run("scalar,openmp")
    assert [[job.isa for job in jobs] for jobs, _ in quick] == [
        ["best", "portable"], ["portable", "portable"],
    ]  # fmt: skip


@pytest.fixture
def planted(monkeypatch):
    """Counters that are there, and a perf run per variant that gives rows or fails."""

    def plant(**outcomes):
        monkeypatch.setattr(counted, "find_counters", lambda machine: ALL_COUNTERS)

        def count(target, counters, *, folder, timeout_s):
            outcome = outcomes[target.variant]
            if isinstance(outcome, Exception):
                raise outcome
            return [row("instructions", outcome, target.variant, collector="perf_stat")]

        monkeypatch.setattr(counted, "count", count)

    return plant


def test_a_crash_is_exit_code_six(run, planted, tmp_path):
    """One line for the variant; the others are counted and shown."""
    planted(scalar=5.0, openmp=WorkloadError("killed by SIGSEGV"))
    ran = run("scalar,openmp", "--format", "json")
    assert (ran.code, ran.complaints) == (6, ["moe-prof: variant openmp: killed by SIGSEGV"])
    assert ran.rows["scalar", "instructions"]["value"] == 5
    assert ran.rows["openmp", "instructions"]["source"] == "killed by SIGSEGV"
    assert session.load(tmp_path / "session").manifest.state == "complete"


def test_what_the_time_limit_stopped_has_not_failed(run, planted, monkeypatch):
    """The limit ends the tool: that is a reason for a missing value, no failed workload."""
    passed = iter([False, False, True])  # before scalar, before openmp, after openmp was stopped
    monkeypatch.setattr(Deadline, "passed", property(lambda deadline: next(passed)))
    planted(scalar=5.0, openmp=WorkloadError("did not end within 3 s and was stopped"))
    ran = run("scalar,openmp", "--max-time", "20s", "--format", "json")
    assert (ran.code, ran.complaints) == (0, [])
    assert ran.rows["openmp", "instructions"]["source"] == (
        "the time limit of 20 s was reached before it was counted"
    )


def test_one_refusal_is_a_reason(run, planted):
    """Exit code 0: something could be counted."""
    planted(scalar=5.0, openmp=UnavailableError("perf says no"))
    ran = run("scalar,openmp", "--format", "json")
    assert (ran.code, ran.rows["openmp", "IPC"]["source"]) == (0, "perf says no")


def test_only_refusals_are_exit_code_three(run, planted):
    """One line, with perf's reason."""
    planted(scalar=UnavailableError("perf says no"))
    ran = run("scalar")
    assert (ran.code, ran.out) == (3, "")
    assert ran.complaints == [
        "moe-prof: nothing can be counted here: perf counted nothing; perf says no"
    ]


def test_the_target_is_the_runs(run, monkeypatch):
    """Threads of the variant: one for those that use no more; path and seed as asked."""
    targets = []

    def count(target, counters, *, folder, timeout_s):
        targets.append(target)
        return [row("instructions", 5.0, target.variant)]

    monkeypatch.setattr(counted, "find_counters", lambda machine: ALL_COUNTERS)
    monkeypatch.setattr(counted, "count", count)
    run("scalar,openmp", "--threads", "3", "--isa", "portable", "--seed", "9")
    assert targets == [
        counted.Target(SCENARIO, "scalar", None, 1, 9),
        counted.Target(SCENARIO, "openmp", "portable", 3, 9),
    ]


def test_the_session_knows_its_command_line(run, quick, tmp_path):
    """The one that was given in this process."""
    run("scalar")
    assert session.load(tmp_path / "session").manifest.argv[:2] == ("counters", SHAPE)


def test_no_compiler_is_an_error(run, monkeypatch):
    """Exit code 1 with what would install one, as in every command; not 'unavailable'."""

    def fail(kind, progress):
        raise BuildError("no C++ compiler found; pip install -e '.[compiler]'")

    monkeypatch.setattr(kernel_build, "build", fail)
    ran = run("scalar,openmp")
    assert (ran.code, ran.out) == (1, "")
    assert ran.complaints == ["moe-prof: no C++ compiler found; pip install -e '.[compiler]'"]
