"""Readings as tidy rows: units, ratios per PMU, intervals, repetitions, missing values."""

from __future__ import annotations

from pathlib import Path

import pytest

from moe_prof.collectors.perf_parse import parse
from moe_prof.collectors.perf_rows import Labels, rows
from moe_prof.rows import Row

FOLDERS = Path(__file__).parents[1] / "fixtures"


def of_text(text: str, **labels: object) -> list[Row]:
    """Rows of an output."""
    return rows(parse(text), Labels(**labels))  # type: ignore[arg-type]


def of_file(name: str) -> list[Row]:
    """Rows of a recorded output."""
    return of_text((FOLDERS / name).read_text(encoding="utf-8"))


def find(found: list[Row], metric: str, **fields: object) -> Row:
    """The only row of a metric with these fields."""
    (row,) = [
        r for r in found
        if r.metric == metric and all(getattr(r, k) == v for k, v in fields.items())
    ]  # fmt: skip
    return row


def test_counts_come_in_base_units() -> None:
    """Milliseconds, MiB and Joules become s, bytes and J under perf's names."""
    found = of_text(
        "202.56;msec;task-clock;9;100.00;;\n1.50;MiB;uncore_imc/reads/;9;100.00;;\n"
        "12.50;Joules;power/energy-pkg/;9;100.00;;\n377;;page-faults;9;100.00;;\n"
    )

    assert [(r.metric, r.value, r.unit) for r in found] == [
        ("task-clock", 0.20256, "s"),
        ("uncore_imc/reads/", 1572864.0, "bytes"),
        ("power/energy-pkg/", 12.5, "J"),
        ("page-faults", 377.0, "1"),
    ]


def test_ipc_is_recomputed_per_pmu() -> None:
    """perf printed 10.94 by dividing across PMUs; the counts give 2.60."""
    found = of_file("perf/hybrid.txt")

    assert round(find(found, "IPC", cpu="cpu_core").value or 0, 2) == 2.6
    assert round(find(found, "IPC", cpu="cpu_atom").value or 0, 3) == 0.119


def test_printed_ipc_that_contradicts_the_counts_is_marked() -> None:
    """perf's figure is kept under its name, with what is wrong about it."""
    row = find(of_file("perf/hybrid.txt"), "insn per cycle", cpu="cpu_core")

    assert (row.value, row.status) == (10.94, "out_of_bounds")
    assert row.source == "printed by perf; the counts of this PMU give 2.60"


def test_rates_are_fractions_of_counts() -> None:
    """Miss rates come from the counts, whatever perf prints beside them."""
    found = of_text(
        "1000;;branches;9;100.00;;\n5;;branch-misses;9;50.00;99.0;of all branches\n"
        "200;;cache-references;9;100.00;;\n300;;cache-misses;9;100.00;;\n"
    )

    branch, cache = find(found, "branch_miss_rate"), find(found, "cache_miss_rate")
    assert (branch.value, branch.mux_pct, branch.status) == (0.005, 50.0, "multiplexed")
    assert (cache.value, cache.status) == (1.5, "out_of_bounds")
    assert find(found, "of all branches").value == 0.99


def test_different_modifiers_are_not_divided() -> None:
    """User instructions over all cycles is no IPC."""
    found = of_text("100;;instructions:u;9;100.00;;\n50;;cycles;9;100.00;;\n")

    assert [r.metric for r in found] == ["instructions:u", "cycles"]


def test_missing_counts_give_unavailable_rows_with_the_reason() -> None:
    """A counter that the machine lacks is a row without value; so is the ratio."""
    found = of_text("<not supported>;;cycles;0;100.00;;\n<not counted>;;instructions;0;100.00;;\n")

    assert [(r.metric, r.value, r.status, r.provenance, r.mux_pct) for r in found] == [
        ("cycles", None, "not_supported", "unavailable", None),
        ("instructions", None, "not_counted", "unavailable", None),
        ("IPC", None, "not_counted", "unavailable", None),
    ]
    assert find(found, "IPC").source == "instructions: not counted"


def test_intervals_have_start_times_and_are_summed() -> None:
    """Four intervals, then the run's total."""
    found = [r for r in of_file("corpus/A22.txt") if r.metric == "page-faults"]

    assert [(r.time_s, r.value) for r in found] == [
        (0.0, 365.0), (0.060160579, 0.0), (0.120712348, 0.0), (0.181050799, 12.0), (None, 377.0),
    ]  # fmt: skip


def test_summary_rows_are_not_added_again() -> None:
    """Totals that perf printed are taken as they are."""
    found = [r for r in of_file("corpus/B14.txt") if r.metric == "page-faults"]

    assert [r.value for r in found if r.time_s is None] == [377.0]


def test_repetitions_give_a_standard_deviation() -> None:
    """perf's +- is the error of the mean: times the root of the number of runs."""
    report = (
        " Performance counter stats for 't' (4 runs):\n\n     1,000   cycles  ( +- 2.00% )\n\n"
        "      0.50000 +- 0.01000 seconds time elapsed  ( +-  2.00% )\n"
    )
    found = of_text(report)

    cycles, elapsed = find(found, "cycles"), find(found, "time_elapsed")
    assert (cycles.stddev, cycles.n) == (40.0, 4)
    assert (elapsed.value, elapsed.stddev, elapsed.n) == (0.5, 0.02, 4)


@pytest.mark.parametrize(("runs", "stddev"), [(4, 40.0), (None, None)])
def test_csv_does_not_say_how_many_repetitions(runs: int | None, stddev: float | None) -> None:
    """Without the number of runs there is no deviation, but the error stays readable."""
    row = find(of_text("1000;;cycles;2.00%;9;100.00;;\n", runs=runs), "cycles")

    assert row.stddev == stddev
    assert ("+-2 % of unknown repetitions" in row.source) == (runs is None)


def test_top_down_nodes_are_fractions_of_slots() -> None:
    """TMA's names at level 1 and 2, perf's own beside them."""
    found = of_file("perf/topdown_612.txt")
    row = find(found, "Retiring")

    assert (row.value, row.unit, row.level, row.source) == (0.752, "slots", 1, "tma_retiring")
    assert find(found, "tma_retiring").value == 0.752


def test_impossible_top_down_value_stays() -> None:
    """143 % retiring is reported as such and marked; the missing cell stays missing."""
    found = of_file("corpus/R02.txt")
    row = find(found, "Retiring", cpu="S0-C0")

    assert (row.value, row.status) == (1.43, "out_of_bounds")
    assert find(found, "Backend_Bound", cpu="S0-C0").value is None
    assert find(found, "Backend_Bound", cpu="S0-C1").value == 0.192


def test_rates_and_clocks_of_perf_come_in_base_units() -> None:
    """K/sec and GHz are multiplied out and named after the event."""
    found = of_text("376;;page-faults;9;100.00;2.399;K/sec\n9;;cycles;9;100.00;3.1;GHz\n")

    assert (find(found, "page-faults/sec").value, find(found, "page-faults/sec").unit) == (
        2399.0, "1/s",
    )  # fmt: skip
    assert (find(found, "cycles/sec").value, find(found, "cycles/sec").unit) == (3.1e9, "Hz")


def test_labels_and_places() -> None:
    """Scope labels, CPUs, threads and the caller's labels are carried."""
    found = of_text(
        "CPU0;17;;context-switches;9;100.00;;\nbash-3000;4;;page-faults;9;100.00;;\n",
        scenario="S3", variant="packed", scope="process", repeat=2,
    )  # fmt: skip

    assert [(r.cpu, r.thread) for r in found] == [("CPU0", None), (None, "bash-3000")]
    assert {(r.scenario, r.variant, r.scope, r.repeat) for r in found} == {
        ("S3", "packed", "process", 2)
    }


def test_several_runs_in_one_file_are_repeats() -> None:
    """Blocks become the repeat index."""
    text = "# started on Thu Mar 14 10:21:07 2024\n\n5;;page-faults;100;100.00;;\n"

    assert [r.repeat for r in of_text(text + text)] == [0, 1]
