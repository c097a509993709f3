"""The ``topdown`` command where perf counts: on a played Intel machine, and where perf refuses."""

from __future__ import annotations

import pytest

from moe_prof import session
from moe_prof.collectors.perf_stat import EVENTS
from moe_prof.errors import ToolError, UnavailableError, WorkloadError
from moe_prof.measure.expected import layer_macs
from moe_prof.scenario import Scenario
from moe_prof.topdown import counted
from tests.moe_prof.commands.running import CONTRACT_METRICS, TREE, hide_programs
from tests.moe_prof.commands.topdown_run import VARIANTS
from tests.moe_prof.topdown import fake_intel

FIND_COUNTERS = counted.find_counters


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
