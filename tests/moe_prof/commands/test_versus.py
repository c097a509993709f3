"""``bench --vs``: old variants in the same rounds, stored sessions, refusals before measuring."""

import dataclasses
from pathlib import Path

import pytest

from moe_prof import session as sessions
from moe_prof.commands import bench
from moe_prof.kernels import isas
from moe_prof.measure import measure
from tests.moe_prof.commands.running import main

PLANS = Path(__file__).parent.parent / "measure"
SHAPE = "3,16,8,4,2"
QUICK = ("--repeat", "8", "--processes", "2")


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run ``bench`` on fake plans (see fake_plans); gives what came of it."""
    monkeypatch.setenv("PYTHONPATH", str(PLANS))
    monkeypatch.setenv("MOE_PROF_SESSIONS", str(tmp_path / "sessions"))
    monkeypatch.delenv("MOE_PROF_ISA", raising=False)

    def faked(request, progress, *, folder):
        jobs = tuple(dataclasses.replace(job, isa=isas(job.variant)[0]) for job in request.jobs)
        made = dataclasses.replace(request, plan_factory="fake_plans:scripted", jobs=jobs)
        return measure(made, progress, folder=folder)

    monkeypatch.setattr(bench, "measure", faked)

    def go(*argv, plans="openmp=good,autovec=fast"):
        monkeypatch.setenv("FAKE_PLANS", plans)
        return main("bench", SHAPE, *QUICK, *argv)

    return go


@pytest.fixture
def stored(run, tmp_path):
    """A session of openmp at 2 ms and scalar at 4 ms."""
    folder = tmp_path / "stored"
    assert run("--variant", "openmp", "--output", folder).code == 0
    return folder


def test_an_old_variant_is_timed_in_the_same_rounds(run):
    """Paired, the old one first; rows stand in the session as well."""
    ran = run("--variant", "autovec", "--vs", "openmp", "--format", "json")
    assert ran.code == 0
    rows = ran.rows
    assert rows["autovec", "comparison"]["source"] == "faster"
    assert rows["autovec", "time_ratio"]["value"] == pytest.approx(0.5, rel=0.02)
    assert "paired" in rows["autovec", "time_ratio"]["source"]
    saved = sessions.load(ran.document["session"])
    assert "time_ratio" in {row.metric for row in saved.rows}


def test_the_text_follows_the_table(run):
    """With the title that says against what."""
    ran = run("--variant", "openmp", "--vs", "autovec", "--fail-on", "3%")
    assert ran.code == 4
    assert "against autovec, in the same run" in ran.out
    assert f"{SHAPE}: openmp over autovec: slower, " in ran.out
    assert "slower by more than 3 %" in ran.err


def test_a_stored_session_is_compared_unpaired(run, stored):
    """All variants that both have; the baseline is the yardstick."""
    ran = run("--variant", "openmp", "--vs", stored, "--fail-on", "30%", "--format", "json")
    assert ran.code == 0
    assert "unpaired: two runs" in ran.rows["openmp", "time_ratio"]["source"]
    assert ran.rows["scalar", "time_ratio"]["value"] == pytest.approx(1, abs=0.03)


def test_rows_of_a_comparison_are_not_compared_again(run, stored, tmp_path):
    """A session of ``bench --vs`` is an old side like any other."""
    folder = tmp_path / "second"
    assert run("--variant", "openmp", "--vs", stored, "--output", folder).code == 0
    ran = main("compare", stored, folder, "--format", "json")
    assert ran.code == 0
    metrics = {row["metric"] for row in ran.document["rows"]}
    assert metrics & {"time_ratio", "time_ratio_ratio"} == {"time_ratio"}


@pytest.mark.parametrize(
    ("argv", "words"),
    [(("--seed", "3"), "differ in seed (0; 3)"), (("--threads", "7"), "differ in threads (")],
)
def test_what_differs_is_refused_before_it_is_measured(run, stored, tmp_path, argv, words):
    """Exit code 2 and no session."""
    ran = run("--variant", "openmp", "--vs", stored, *argv)
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err
    assert not (tmp_path / "sessions").exists()


def test_what_differs_can_be_allowed(run, stored):
    """Then it is told beside the result, and the baseline is no yardstick."""
    ran = run("--variant", "openmp", "--vs", stored, "--seed", "3", "--allow", "seed")
    assert ran.code == 0
    assert "compared although they differ in seed (0; 3)" in ran.out
    assert "stretched" not in ran.out


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("--vs", "nonesuch"), "neither the folder of a session, nor a library"),
        (("--vs", "./none.so"), "there is no library none.so"),
        (("--variant", "openmp", "--vs", "openmp"), "name another on one side"),
        (("--fail-on", "3%"), "need something to compare: --vs OLD"),
        (("--allow", "seed"), "need something to compare: --vs OLD"),
        (("--force",), "need something to compare: --vs OLD"),
    ],
)
def test_wrong_options(run, argv, words):
    """One line, exit code 2, nothing measured."""
    ran = run(*argv)
    assert (ran.code, ran.out) == (2, "")
    (line,) = ran.complaints
    assert words in line


def test_a_folder_that_is_no_session(run, tmp_path):
    """Exit code 1, before anything is measured."""
    ran = run("--variant", "openmp", "--vs", tmp_path)
    assert ran.code == 1
    assert "is not a session" in ran.err


def test_a_wrong_variant_is_no_regression_but_wrong(run):
    """Exit code 6 counts more than the comparison's."""
    ran = run(
        "--variant", "autovec", "--vs", "openmp", "--fail-on", "3%", plans="autovec=wrong"
    )  # fmt: skip
    assert ran.code == 6
    assert "no ratio: autovec: wrong result" in ran.out


class Watching:
    """Stands for ``measure``: notes the request, then measures on fake plans."""

    def __init__(self, inner):
        self.inner, self.enough = inner, "not asked"

    def __call__(self, request, progress, *, folder):
        """As ``measure``, in the rounds that the command line says."""
        self.enough = request.enough
        return self.inner(dataclasses.replace(request, enough=None), progress, folder=folder)


def side(ratio, processes=5):
    """Samples of 2 ms times a ratio, with 0.1 % of noise."""
    return {
        (process, number): 2e-3 * ratio * (1 + 1e-3 * ((number * 7 + process) % 3 - 1))
        for process in range(processes) for number in range(20)
    }  # fmt: skip


def test_processes_are_added_until_the_verdict_is_clear(run, monkeypatch):
    """Asked with the samples of all variants; the baseline's do not matter, a wrong one's lack."""
    watching = Watching(bench.measure)
    monkeypatch.setattr(bench, "measure", watching)
    monkeypatch.setattr(f"{__name__}.QUICK", ("--repeat", "8"))
    assert run("--variant", "autovec", "--vs", "openmp", "--fail-on", "3%").code == 0
    noisy = {key: value * (1.2 if key[0] % 2 else 0.8) for key, value in side(1.0).items()}
    for new, clear in ((side(1.0), True), (side(1.5), True), (noisy, False), ({}, True)):
        samples = {"scalar": {}, "openmp": side(1.0), "autovec": new}
        assert watching.enough(samples) is clear
    nearly = {"scalar": {}, "openmp": side(1.0), "autovec": side(1.03)}
    assert not watching.enough(nearly)  # slower, but whether by more than 3 % is open


def test_a_forced_number_of_processes_stays(run, monkeypatch):
    """``--processes`` is what the user wants; without an old variant nothing is compared."""
    watching = Watching(bench.measure)
    monkeypatch.setattr(bench, "measure", watching)
    run("--variant", "autovec", "--vs", "openmp")
    assert watching.enough is None
    monkeypatch.setattr(f"{__name__}.QUICK", ("--repeat", "2"))
    run("--variant", "openmp")
    assert watching.enough is None
