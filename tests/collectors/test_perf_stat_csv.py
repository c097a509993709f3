"""The CSV form of perf stat: separators, layouts, locales, metric rows, tables, damage."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from moe_prof.collectors.perf_parse import parse, recognise

EVENTS = [
    "cycles", "cycles:u", "cpu/event=0x9c,umask=0x1,cmask=0x4/", "cpu_core/instructions/u",
    "L1-dcache-load-misses", "sched:sched_switch", "de_no_dispatch_per_slot.backend_stalls",
]  # fmt: skip
PLACES = ["", "CPU3", "S0-D0-C1|2", "S1|8", "N0|4", "bash-3000", "Web Content-31"]

counts = st.one_of(st.integers(1, 10**15), st.sampled_from(["<not counted>", "<not supported>"]))


@st.composite
def csv_rows(draw: st.DrawFn) -> tuple[str, dict[str, object]]:
    """One printed row and what must be read from it."""
    sep = draw(st.sampled_from([";", ",", "\t", "|", "::"]))
    event = draw(st.sampled_from(EVENTS))
    assume("|" not in event and not (sep == "::" and "sched" in event))
    value = draw(counts)
    time = draw(st.sampled_from(["", "     1.000123456", "         summary"]))
    place = draw(st.sampled_from(PLACES))
    noise = draw(st.sampled_from(["", "0.43%"]))
    cgroup = draw(st.sampled_from(["", "/user.slice"]))
    running = draw(st.integers(1, 10000))
    missing = isinstance(value, str)
    metric = "" if missing else draw(st.sampled_from(["", "0.994", "12.000"]))
    fields = [f for f in (time, *place.split("|")) if f] + [str(value), "", event]
    fields += [f for f in (cgroup, noise) if f]
    fields += ["0" if missing else "1000214231", f"{running / 100:.2f}"]
    fields += [metric, "K/sec" if metric else ""]
    expected = {
        "event": event,
        "value": None if missing else float(value),
        "time_s": 1.000123456 if "." in time else None,
        "summary": "summary" in time,
        "stddev_pct": 0.43 if noise and not missing else None,
        "running_pct": None if missing else running / 100,
        "cgroup": cgroup or None,
        "metric_value": float(metric) if metric else None,
        "scope": place.split("|")[0] if place[:3] in ("CPU", "S0-", "S1|", "N0|") else "",
        "cpus": int(place.split("|")[1]) if "|" in place else None,
        "thread": place if "-3" in place else None,
    }
    return sep.join(fields), expected


@settings(deadline=None)
@given(csv_rows())
def test_rows_round_trip(case: tuple[str, dict[str, object]]) -> None:
    """Whatever columns and separator: the values that were printed are read back."""
    text, expected = case
    (reading,) = parse(text + "\n").readings

    assert {name: getattr(reading, name) for name in expected} == expected


@settings(deadline=None)
@given(st.integers(0, 10**12), st.integers(0, 9999), st.integers(1, 10000))
def test_decimal_comma_as_separator_round_trips(value: int, msec: int, running: int) -> None:
    """Rows torn apart by decimal commas are put together by their layout."""
    pct = f"{running / 100:.2f}".replace(".", ",")
    clock = f"{msec / 100:.2f}".replace(".", ",")
    report = parse(
        f"{clock},msec,task-clock,5000,{pct},0,CPUs utilized\n{value},,cycles,5000,{pct},,\n"
    )

    assert [r.value for r in report.readings] == [msec / 100, float(value)]
    assert [r.running_pct for r in report.readings] == [running / 100] * 2


def test_metric_rows_without_a_count() -> None:
    """Rows that begin with empty fields carry another metric of the event before."""
    report = parse(
        "1234;;slots;4815531;62.50;22.0;%  tma_backend_bound\n;;;;;7.6;%  tma_bad_speculation\n"
        "S0-D0-C0;2;1234;;slots;4815531;62.50;22.0;%  tma_backend_bound\n"
        "S0-D0-C0;2;;;;;;7.5;%  tma_bad_speculation\n"
    )

    found = [(r.event, r.scope, r.metric_value, r.running_pct) for r in report.readings]
    assert found == [
        ("slots", "", 22.0, 62.5),
        ("", "", 7.6, 62.5),
        ("slots", "S0-D0-C0", 22.0, 62.5),
        ("", "S0-D0-C0", 7.5, 62.5),
    ]


def test_metric_that_perf_left_empty_is_missing() -> None:
    """Negative and nan metrics are printed as nothing: missing, not 0."""
    report = parse("1234;;slots;4815531;100.00;22.0;%  tma_x\n;;;;;;%  tma_frontend_bound\n")

    last = report.readings[-1]
    assert (last.metric_value, last.metric_unit, last.status) == (
        None, "%  tma_frontend_bound", "out_of_bounds",
    )  # fmt: skip


def test_metric_group_row() -> None:
    """The group's name and PMU are kept with the metrics below it."""
    report = parse(
        "5;;cycles;100;100.00;;\n;;;;;TopdownL1 (cpu_core)\n;;;;;;33.6;%  tma_retiring\n"
    )

    last = report.readings[-1]
    assert (last.group, last.pmu, last.metric_value) == ("TopdownL1", "cpu_core", 33.6)


def test_variance_behind_the_percentage() -> None:
    """The layout of the manual is read like that of the program."""
    (reading,) = parse(
        "209.20,msec,task-clock,209203360,100.00,9.18%,1.115,CPUs utilized\n"
    ).readings

    assert (reading.stddev_pct, reading.metric_value) == (9.18, 1.115)


def test_short_rows_of_old_versions() -> None:
    """Rows without time and percentage say nothing of multiplexing."""
    report = parse("209.2,msec,task-clock,209203360,100.00\n1234567,,cycles\n77,instructions\n")

    assert [(r.event, r.value, r.running_pct) for r in report.readings] == [
        ("task-clock", 209.2, 100.0),
        ("cycles", 1234567.0, None),
        ("instructions", 77.0, None),
    ]


def test_zero_of_a_counter_that_never_ran_is_no_count() -> None:
    """Only a positive running time makes a value."""
    (reading,) = parse("0;;cycles;0;100.00;;\n").readings

    assert (reading.value, reading.status) == (None, "not_counted")


def test_metric_table_with_time_and_units() -> None:
    """``--metric-only -I``: the header names the columns, an empty row has no values."""
    report = parse(
        "time,percent of slots  retiring,percent of slots  backend_bound,\n"
        "     1.000839140,31.6,50.0,\n     2.000839140,,,\n"
    )

    assert [(r.time_s, r.metric_unit, r.metric_value) for r in report.readings] == [
        (1.00083914, "percent of slots  retiring", 31.6),
        (1.00083914, "percent of slots  backend_bound", 50.0),
        (2.00083914, "percent of slots  retiring", None),
        (2.00083914, "percent of slots  backend_bound", None),
    ]


def test_table_header_has_commas_under_any_separator() -> None:
    """perf writes ``core,cpus,`` with commas whatever the separator."""
    report = parse("core,cpus,insn per cycle;GHz;\nS0-D0-C0;2;1.96;3.10;\n")

    assert [(r.scope, r.cpus, r.metric_unit, r.metric_value) for r in report.readings] == [
        ("S0-D0-C0", 2, "insn per cycle", 1.96),
        ("S0-D0-C0", 2, "GHz", 3.1),
    ]


def test_appended_runs_are_blocks() -> None:
    """Each ``# started on`` after rows begins a new run."""
    text = "# started on Thu Mar 14 10:21:07 2024\n\n5;;cycles;100;100.00;;\n"

    assert [r.block for r in parse(text + text).readings] == [0, 1]


def test_program_output_between_rows_is_named() -> None:
    """Foreign lines become warnings with their numbers, rows around them are kept."""
    report = parse("5;;cycles;100;100.00;;\nOptimized time: 3.2 s\n6;;branches;100;100.00;;\n")

    assert [r.event for r in report.readings] == ["cycles", "branches"]
    assert report.warnings == ("line 2: not a row of perf stat -x: 'Optimized time: 3.2 s'",)


@pytest.mark.parametrize(
    "text",
    [
        "", "hello, world\n1, 2, 3\n", "TS,SKT,CPU,metric_CPI\n1,,,0.8\n", "\x00\x01\x02",
        "# Overhead;Command\n50.0%;bench\n", "name;value\nfoo;1\n",
    ],
)  # fmt: skip
def test_other_files_are_not_taken(text: str) -> None:
    """Other tables and binary data are no output of perf stat."""
    assert recognise(text) is None
