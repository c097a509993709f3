"""Counting with perf stat, which is played by recorded outputs."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from moe_prof.collectors import perf_stat
from moe_prof.errors import MoeProfError, ToolError, UnavailableError, WorkloadError
from moe_prof.machine import read
from moe_prof.measure.expected import layer_macs
from moe_prof.model.interval import NODES
from moe_prof.rows import Row
from moe_prof.topdown import counted
from tests.moe_prof.topdown.fake_intel import FIXTURES, pretend_intel
from tests.moe_prof.topdown.made import SCENARIO

TARGET = counted.Target(SCENARIO, "scalar", None, 1, 0)
FORWARDS = 1000
ANSWER = (
    f'{{"variant": "scalar", "isa": "portable", "microkernel": "", "note": "", "threads": 1, '
    f'"iterations": {FORWARDS}, "total_ns": 1000, "checksum": "0"}}'
)
TIME_LIMIT_S = 30.0


def workload(mode: str, *, answer: str = ANSWER) -> list[str]:
    """A program that marks its region as the native driver does, and answers as it does."""
    program = FIXTURES / "fake_workload.py"
    script = f"'{sys.executable}' '{program}' {mode} \"$@\" || exit; echo '{answer}'"
    return ["sh", "-c", script, "workload"]


@pytest.fixture
def intel(monkeypatch, tmp_path):
    """Counters of the played machine; the workload stands in for the driver."""
    pretend_intel(monkeypatch, tmp_path)
    monkeypatch.setattr(counted, "_command", lambda target: workload("ok"))
    return counted.find_counters(read())


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    """Rows of one run each, counters and slots, for the tests that only look."""
    folder = tmp_path_factory.mktemp("intel")
    with pytest.MonkeyPatch.context() as patch:
        pretend_intel(patch, folder)
        patch.setattr(counted, "_command", lambda target: workload("ok"))
        found = counted.find_counters(read())
        return tuple(
            step(TARGET, found, folder=folder / "raw", timeout_s=TIME_LIMIT_S)
            for step in (counted.count, counted.topdown)
        )


@pytest.fixture
def counts(once):
    """Counted rows by metric."""
    return {row.metric: row for row in once[0]}


@pytest.fixture
def nodes(once):
    """Top-down rows by metric."""
    return {row.metric: row for row in once[1]}


def test_a_machine_with_counters(intel):
    """All events and the slots, no reason against them."""
    assert (intel.has_hardware, intel.reason, intel.topdown_reason) == (True, "", "")
    assert set(intel.events) == set(perf_stat.EVENTS)


def test_counts_are_of_one_forward(counts):
    """6e9 instructions in 1000 forwards, said in the source."""
    row = counts["instructions"]
    assert (row.value, row.provenance, row.variant) == (6e6, "measured", "scalar")
    assert row.source.endswith("; per forward, 1000 counted")


def test_ratios_are_not_divided(counts):
    """IPC stays what it is."""
    assert counts["IPC"].value == 3.0


def test_times_are_of_one_forward(counts):
    """800 ms of CPU time in 1000 forwards, in seconds."""
    assert (counts["task-clock"].value, counts["task-clock"].unit) == (pytest.approx(8e-4), "s")


def test_instructions_per_mac(counts):
    """Over the layer's useful products."""
    row = counts["instructions_per_mac"]
    assert (row.value, row.unit) == (pytest.approx(6e6 / layer_macs(SCENARIO)), "1")


def test_nodes_are_measured(nodes):
    """Slot counts of the recorded Sapphire Rapids."""
    assert (nodes["Retiring"].value, nodes["Backend_Bound.Memory_Bound"].value) == (0.75, 0.005)
    assert {nodes[name].provenance for name, _ in NODES} == {"measured"}


def test_level_one_sums_to_one(nodes):
    """As counted."""
    assert sum(nodes[name].value for name, level in NODES if level == 1) == pytest.approx(
        1, abs=2e-3
    )


def test_a_level_that_perf_does_not_give_has_a_reason(intel, tmp_path, monkeypatch):
    """A core with level 1 only: the rows of level 2 are there, without a value."""
    report = tmp_path / "level1.csv"
    lines = (FIXTURES / "spr_slots.csv").read_text().splitlines()
    kept = [line for line in lines if "heavy" not in line and "mispredict" not in line]
    kept = [line for line in kept if "fetch-lat" not in line and "mem-bound" not in line]
    report.write_text("\n".join(kept) + "\n")
    perf = tmp_path / "bin" / "perf"
    perf.write_text(perf.read_text().replace(str(FIXTURES / "spr_slots.csv"), str(report)))
    rows = counted.topdown(TARGET, intel, folder=tmp_path / "raw", timeout_s=TIME_LIMIT_S)
    found = {row.metric: row for row in rows}
    assert found["Retiring"].value == 0.75
    memory = found["Backend_Bound.Memory_Bound"]
    assert (memory.value, memory.level, memory.provenance) == (None, 2, "unavailable")
    assert memory.source.startswith("perf gives no such figure")


def test_without_facts_there_is_no_attempt(tmp_path):
    """The known reason is raised, nothing runs."""
    none = counted.Counters((), None, "no perf", "perf is not installed", "")
    with pytest.raises(UnavailableError, match="perf is not installed"):
        counted.topdown(TARGET, none, folder=tmp_path, timeout_s=TIME_LIMIT_S)


def test_a_refusal_names_every_attempt(intel, tmp_path, monkeypatch):
    """perf forbidden in between."""
    monkeypatch.setenv("FAKE_PERF", "forbidden")
    with pytest.raises(UnavailableError, match="perf is forbidden here"):
        counted.topdown(TARGET, intel, folder=tmp_path / "raw", timeout_s=TIME_LIMIT_S)


def test_a_crash_is_the_workloads(intel, tmp_path, monkeypatch):
    """Not perf's error."""
    monkeypatch.setattr(counted, "_command", lambda target: workload("fail"))
    with pytest.raises(WorkloadError, match="exit code 3"):
        counted.count(TARGET, intel, folder=tmp_path / "raw", timeout_s=TIME_LIMIT_S)


def test_a_driver_without_an_answer_is_refused(intel, tmp_path, monkeypatch):
    """Counts of an unknown number of forwards are worth nothing."""
    monkeypatch.setattr(counted, "_command", lambda target: workload("ok", answer="done"))
    with pytest.raises(WorkloadError, match="no result line"):
        counted.count(TARGET, intel, folder=tmp_path / "raw", timeout_s=TIME_LIMIT_S)


def test_no_perf(monkeypatch, tmp_path):
    """Not an error: nothing can be counted, and why."""
    monkeypatch.setenv("PATH", str(tmp_path))
    found = counted.find_counters(read())
    assert (found.events, found.facts, found.has_hardware) == ((), None, False)
    assert (found.reason, found.topdown_reason) == ("perf is not installed",) * 2
    assert found.remedy


@pytest.mark.parametrize("error", [UnavailableError("refused"), ToolError("fell over")])
def test_a_refused_probe_is_a_reason(intel, monkeypatch, error):
    """perf that counts one event but refuses the list does not end the command."""

    def refuse():
        raise error

    monkeypatch.setattr(counted.perf_stat, "probe_events", refuse)
    found = counted.find_counters(read())
    assert (found.events, found.reason, found.topdown_reason) == ((), str(error), str(error))


def test_software_events_only(monkeypatch, tmp_path):
    """No cycles among what can be counted: a reason for counters and for slots."""
    report = tmp_path / "soft.csv"
    lines = (FIXTURES / "intel_counts.csv").read_text().splitlines()
    hard = ("cycles", "instructions", "branch", "cache")
    report.write_text("".join(f"{x}\n" for x in lines if not any(word in x for word in hard)))
    pretend_intel(monkeypatch, tmp_path, report)
    found = counted.find_counters(read())
    assert (found.has_hardware, found.events[0]) == (False, "task-clock")
    assert (found.reason, found.topdown_reason) == ("perf counts no cycles here",) * 2


def counted_row(metric: str, value: float | None, mux_pct: float = 100.0, **more: object) -> Row:
    """A row as perf_rows makes it."""
    missing = {"status": "not_counted", "provenance": "unavailable"} if value is None else {}
    return Row(
        collector="perf_stat", metric=metric, value=value, unit="1", mux_pct=mux_pct,
        source="perf stat, line 3", **(missing | more),  # type: ignore[arg-type]
    )  # fmt: skip


def plain(*rows: Row) -> dict[str, Row]:
    """The rows after naming, by metric."""
    return {row.metric: row for row in counted.plainly_named(rows)}


def test_plain_names_stay():
    """Nothing is changed where perf prints what was asked for."""
    row = counted_row("cycles", 5.0)
    assert counted.plainly_named([row]) == [row]


def test_parts_of_a_forward_are_not_added_to_the_whole():
    """The whole has no phase; its parts stay as they are."""
    rows = [counted_row("instructions", 9.0)]
    rows += [
        replace(rows[0], phase=phase, value=value)
        for phase, value in (("down", 5.0), ("router", 4.0))
    ]
    assert counted.plainly_named(rows) == rows


def test_user_space_only_is_said():
    """``cycles:u`` is cycles, and its own name stays in the source."""
    row = plain(counted_row("cycles:u", 5.0))["cycles"]
    assert (row.value, row.source) == (5.0, "cycles:u: perf stat, line 3")


def test_kinds_of_cores_are_added_by_their_time():
    """perf scales each to the whole time: 100 in 25 % and 200 in 75 % of it are 25 + 150."""
    found = plain(
        counted_row("cpu_atom/cycles/", 100.0, 25.0, cpu="cpu_atom"),
        counted_row("cpu_core/cycles/", 200.0, 75.0, cpu="cpu_core"),
    )
    row = found["cycles"]
    assert (row.value, row.cpu, row.mux_pct, row.status) == (175.0, None, 100.0, "ok")


def test_multiplexed_kinds_of_cores_are_scaled():
    """Both ran half of their time: the sum is scaled up, and marked."""
    row = plain(
        counted_row("cpu_atom/cycles/", 100.0, 12.5), counted_row("cpu_core/cycles/", 200.0, 37.5)
    )["cycles"]
    assert (row.value, row.status) == (175.0, "multiplexed")


def test_a_kind_of_cores_that_never_ran_is_left_out():
    """The other's count is the whole."""
    row = plain(counted_row("cpu_atom/cycles/", None, 0.0), counted_row("cpu_core/cycles/", 200.0))[
        "cycles"
    ]
    assert (row.value, row.source) == (200.0, "cpu_core/cycles/: perf stat, line 3")


def test_no_kind_of_cores_counted():
    """Still no zero."""
    row = plain(
        counted_row("cpu_atom/cycles/", None, 0.0), counted_row("cpu_core/cycles/", None, 0.0)
    )["cycles"]
    assert (row.value, row.provenance) == (None, "unavailable")


def test_ipc_of_all_kinds_of_cores():
    """One value from the sums, not that of the cores named last."""
    found = counted.plainly_named(
        [
            counted_row("cpu_atom/cycles/", 100.0, 50.0),
            counted_row("cpu_core/cycles/", 300.0, 50.0),
            counted_row("cpu_atom/instructions/", 100.0, 50.0),
            counted_row("cpu_core/instructions/", 900.0, 50.0),
            counted_row("IPC", 1.0, cpu="cpu_atom"), counted_row("IPC", 3.0, cpu="cpu_core"),
        ]
    )  # fmt: skip
    assert [(row.value, row.cpu) for row in found if row.metric == "IPC"] == [(2.5, None)]


def test_other_rows_pass_through():
    """perf's own metrics and times keep their names."""
    rows = [counted_row("time_elapsed", 1.0), counted_row("tma_retiring", 0.5)]
    assert counted.plainly_named(rows) == rows


def test_missing_counts_and_nodes_have_the_reason():
    """All names that reports look for."""
    rows = [*counted.missing_counts("s", "x", "why"), *counted.missing_nodes("s", "x", "why")]
    assert {row.metric for row in rows} == {
        "instructions", "instructions_per_mac", "IPC", *(name for name, _ in NODES),
    }  # fmt: skip
    assert {(row.value, row.provenance, row.source) for row in rows} == {
        (None, "unavailable", "why")
    }


def test_the_command_counts_one_variant_of_the_driver(monkeypatch):
    """No baseline, long enough, with the run's threads and seed."""
    target = counted.Target(SCENARIO, "openmp", "portable", 2, 7)
    try:
        argv = counted._command(target)
    except MoeProfError as error:
        pytest.skip(str(error))
    assert argv[1:] == [
        "4", "32", "32", "4", "2", "1", "--benchmark", "--json", "--variant", "openmp",
        "--threads", "2", "--seed", "7", "--warmup", "2", "--min-time", "0.5",
    ]  # fmt: skip
