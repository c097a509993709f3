"""The roofline command on played ceilings and played measurements."""

import dataclasses
import time
from pathlib import Path

import pytest

from moe_prof import session as sessions
from moe_prof.analysis import ceilings as ceiling_rows
from moe_prof.analysis.ceilings import Ceiling, Ceilings, missing
from moe_prof.commands import roofline as command
from moe_prof.errors import BuildError
from moe_prof.machine import read
from moe_prof.measure import measure, measure_phases
from moe_prof.measure.ceiling_store import Stored
from tests.moe_prof.commands.running import main

PLANS = Path(__file__).parent.parent / "measure"
SHAPE = "3,16,8,4,2"
HOUR_S = 3600


def ceilings(teams):
    """Round numbers for every team."""
    rates = (("int8_portable", 1e9), ("fp32_portable", 1e8))
    entries = [
        Ceiling(name, team, team * value, "MAC/s", "measured", "played")
        for team in teams
        for name, value in rates
    ]
    entries += [
        Ceiling("read_l1", team, 1e10, "bytes/s", "measured", "played", 1 << 30) for team in teams
    ]
    return Ceilings((*entries, *(missing("int8_avx2", t, "MAC/s", "no AVX2") for t in teams)))


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run ``roofline``; gives what came of it. ``asked`` keeps what the store was asked for."""
    monkeypatch.setenv("PYTHONPATH", str(PLANS))
    monkeypatch.setenv("MOE_PROF_SESSIONS", str(tmp_path / "sessions"))
    monkeypatch.setenv("FAKE_PLANS", "openmp=good")
    monkeypatch.delenv("MOE_PROF_ISA", raising=False)

    def played(function):
        def faked(request, progress, *, folder):
            changes = {"plan_factory": "fake_plans:scripted", "processes": 1}
            return function(dataclasses.replace(request, **changes), progress, folder=folder)

        return faked

    monkeypatch.setattr(command, "measure", played(measure))
    monkeypatch.setattr(command, "measure_phases", played(measure_phases))
    asked = []

    def go(*argv, age_s=3 * HOUR_S, others=0.0):
        def obtain(machine, teams, **options):
            asked.append((sorted(set(teams)), options["remeasure"]))
            return Stored(ceilings(sorted({1, *teams})), time.time() - age_s, 2, others)

        monkeypatch.setattr(command.ceiling_store, "obtain", obtain)
        return main("roofline", *argv)

    go.asked = asked
    return go


def timed(run, tmp_path, name="timed"):
    """A session of one scenario."""
    folder = tmp_path / name
    ran = run(SHAPE, "--variant", "openmp", "--threads", "1", "--repeat", "2", "--output", folder)
    assert ran.code == 0, ran.err
    return folder


def test_the_ceilings_alone(run):
    """Their age, every team, what is missing and why; nothing is timed, no session."""
    ran = run()
    assert ran.code == 0
    assert "ceilings measured 3 h ago" in ran.out
    assert "int8_portable" in ran.out
    assert "no int8_avx2: no AVX2" in ran.out
    ran = run("--format", "json")
    assert ran.document["session"] is None
    assert {row["collector"] for row in ran.document["rows"]} == {"ceilings"}


def test_remeasure_reaches_the_store(run):
    """Once."""
    run()
    run("--remeasure")
    assert [remeasure for _, remeasure in run.asked] == [False, True]


def test_a_scenario_is_measured_and_placed(run, tmp_path):
    """The forward and its phases, in the text and as rows of the session."""
    folder = timed(run, tmp_path)
    saved = sessions.load(folder)
    placed = {row.phase: row for row in saved.rows if row.collector == "roofline"}
    assert set(placed) == {None, "gate_up"}
    assert saved.manifest.scenario == SHAPE
    assert {row.collector for row in saved.rows} >= {"builtin", "ceilings", "roofline"}


def test_several_scenarios_are_one_session(run, tmp_path):
    """Each with a table of its own."""
    ran = run(
        SHAPE, "2,16,8,4,2", "--variant", "openmp", "--repeat", "2", "--output", tmp_path / "s"
    )
    assert ran.code == 0
    for label in (SHAPE, "2,16,8,4,2"):
        assert f"{label}: under the roofline" in ran.out
    assert sessions.load(tmp_path / "s").manifest.scenario == f"{SHAPE}+2,16,8,4,2"


def test_a_session_is_placed_under_its_own_ceilings(run, tmp_path):
    """As on another machine: nothing is measured here."""
    folder = timed(run, tmp_path)
    run.asked.clear()
    ran = run(folder)
    assert (ran.code, run.asked) == (0, [])
    assert "ceilings: the session's own" in ran.out
    assert f"{SHAPE}: under the roofline" in ran.out


def test_a_session_without_ceilings_gets_this_machines(run, tmp_path):
    """One of bench, made here."""
    folder = timed(run, tmp_path)
    bare = without_ceilings(folder, tmp_path)
    ran = run(bare)
    assert ran.code == 0
    assert "ceilings measured 3 h ago" in ran.out


def without_ceilings(folder, tmp_path, **changes):
    """The same session as bench would have made it."""
    saved = sessions.load(folder)
    made = sessions.create(
        "bench", scenario=SHAPE, shape=(), variants=("openmp",), seed=0,
        machine=read().as_dict() | changes, tools={}, argv=[], folder=tmp_path / "bare",
    )  # fmt: skip
    with made:
        made.add(row for row in saved.rows if row.collector == "builtin")
    return tmp_path / "bare"


def test_a_foreign_session_without_ceilings_is_refused(run, tmp_path):
    """Exit code 3, which machine, and what to do."""
    bare = without_ceilings(timed(run, tmp_path), tmp_path, model_name="Other CPU")
    ran = run(bare)
    assert ran.code == 3
    assert "model_name Other CPU" in ran.err
    assert "run 'moe-prof roofline' or" in ran.err


def test_a_crowd_is_told(run):
    """With what it means for the ceilings."""
    ran = run(others=1.2)
    assert "while other programs used 1.2 of 2 CPUs" in " ".join(ran.out.split())


def test_old_ceilings_name_the_remedy(run):
    """After a month."""
    assert "40 days ago; --remeasure measures them again" in run(age_s=40 * 24 * HOUR_S).out


@pytest.mark.parametrize("suffix", ["svg", "png", "SVG"])
def test_the_picture(run, tmp_path, suffix):
    """Written where it was asked for, and named on stderr."""
    path = tmp_path / f"roof.{suffix}"
    ran = run("--plot", path)
    assert ran.code == 0
    assert path.stat().st_size > 5000
    assert str(path) in ran.err


@pytest.mark.parametrize("columns", ["100", "80", "60"])
def test_no_column_is_lost(run, tmp_path, columns, monkeypatch):
    """On narrow terminals as well."""
    folder = timed(run, tmp_path)
    monkeypatch.setenv("COLUMNS", columns)
    out = run(folder).out
    assert max(map(len, out.splitlines())) <= int(columns)
    for word in ("MAC/byte", "MAC/s", "roof", "of roof", "of path", "limit", "bytes/s"):
        assert word in out


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("S9",), "unknown scenario 'S9'"),
        (("0,8,8,2,1",), "nothing to measure"),
        (("S1", "--variant", "nosuch"), "unknown variant 'nosuch'"),
        (("--plot", "roof.gif"), "end the name in .svg or .png"),
        (("--plot", "/nosuch/roof.svg"), "there is no folder /nosuch"),
        (("--plot", ""), "the path is empty"),
        (("--output", "folder"), "there is no session to keep"),
    ],
)
def test_wrong_requests(run, argv, words):
    """One line, exit code 2, nothing measured."""
    ran = run(*argv)
    assert (ran.code, ran.out, run.asked) == (2, "", [])
    (line,) = ran.complaints
    assert words in line


def test_a_picture_that_cannot_be_written(run, tmp_path):
    """Known before anything is measured: exit code 1."""
    link = tmp_path / "roof.svg"
    link.symlink_to(tmp_path / "none" / "roof.svg")
    ran = run(SHAPE, "--plot", link)
    assert (ran.code, ran.out, run.asked) == (1, "", [])
    assert "name a writable file with --plot" in ran.err


def test_what_is_no_session(run, tmp_path):
    """A folder without a manifest, a path that is not there: exit code 1."""
    for wrong in (tmp_path, tmp_path / "none"):
        ran = run(wrong)
        assert ran.code == 1
        assert "is not a session" in ran.err


def test_a_session_without_times(run, tmp_path):
    """Exit code 3 with the reason."""
    made = sessions.create(
        "topdown", scenario=SHAPE, shape=(), variants=(), seed=0, machine=read().as_dict(),
        tools={}, argv=[], folder=tmp_path / "empty",
    )  # fmt: skip
    with made:
        made.add(ceiling_rows.rows(ceilings([1])))
    ran = run(tmp_path / "empty")
    assert ran.code == 3
    assert "nothing to place under the roofline" in ran.err


def test_without_a_compiler(run, monkeypatch):
    """The error of the build, exit code 1."""

    def refuse(*_, **__):
        raise BuildError("no compiler; install g++")

    monkeypatch.setattr(command.ceiling_store, "store_path", refuse)
    monkeypatch.setattr(command.ceiling_store, "obtain", refuse)
    ran = main("roofline")
    assert (ran.code, ran.out) == (1, "")
    assert "no compiler; install g++" in ran.err
