"""The JSON form of perf stat: shapes of its versions, and what JSON readers refuse."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moe_prof.collectors.perf_parse import parse
from moe_prof.collectors.perf_reading import Reading


def only(text: str) -> Reading:
    """The only reading of a text."""
    (reading,) = parse(text).readings
    return reading


@pytest.mark.parametrize("metric", ["0.992716", '"0.992716"', "0,992716"])
def test_metric_value_as_number_or_string(metric: str) -> None:
    """6.1 prints a bare number, 6.12 a string, some locales a comma."""
    reading = only(
        '{"counter-value" : "200.568570", "unit" : "msec", "event" : "task-clock", '
        f'"event-runtime" : 200568570, "pcnt-running" : 100.00, "metric-value" : {metric}, '
        '"metric-unit" : "CPUs utilized"}\n'
    )

    assert (reading.value, reading.unit, reading.metric_value) == (200.56857, "msec", 0.992716)


@pytest.mark.parametrize("metric", ["nan", "-nan", '"nan"', '"none"', '""', "inf"])
def test_metric_without_a_finite_value(metric: str) -> None:
    """nan, none and empty texts are no values."""
    reading = only(
        '{"counter-value" : "5.000000", "unit" : "", "event" : "cycles", "event-runtime" : 7, '
        f'"pcnt-running" : 100.00, "metric-value" : {metric}, "metric-unit" : "GHz"}}\n'
    )

    assert (reading.value, reading.metric_value) == (5.0, None)


def test_object_without_metric_and_with_a_trailing_comma() -> None:
    """Versions that omit the metric leave a comma before the brace."""
    reading = only(
        '{"counter-value" : "3817732.000000", "unit" : "", "event" : "topdown-retiring", '
        '"event-runtime" : 5552708, "pcnt-running" : 61.50, }\n'
    )

    assert (reading.value, reading.running_pct, reading.status) == (
        3817732.0, 61.5, "multiplexed",
    )  # fmt: skip


def test_repeated_keys_are_several_metrics() -> None:
    """Two metrics of one event come as repeated keys; both are kept."""
    report = parse(
        '{"counter-value" : "3.0", "unit" : "", "event" : "instructions", "event-runtime" : 5, '
        '"pcnt-running" : 100.00, "metric-value" : 0.5, "metric-unit" : "insn per cycle", '
        '"metric-value" : 0.25, "metric-unit" : "stalled cycles per insn"}\n'
    )

    assert [(r.event, r.metric_value, r.metric_unit) for r in report.readings] == [
        ("instructions", 0.5, "insn per cycle"),
        ("", 0.25, "stalled cycles per insn"),
    ]


def test_metric_group_and_interval() -> None:
    """A group's object names the PMU of the metrics that follow."""
    report = parse(
        '{"interval" : 1.001089747, "event-runtime" : 16045397172, "pcnt-running" : 98.50, '
        '"metricgroup" : "TopdownL1 (cpu_core)"}\n'
        '{"interval" : 1.001089747, "metric-value" : "22.036686", '
        '"metric-unit" : "%  tma_backend_bound", "metric-threshold" : "bad"}\n'
    )

    (reading,) = report.readings
    assert (reading.group, reading.pmu, reading.time_s) == ("TopdownL1", "cpu_core", 1.001089747)
    assert (reading.metric_value, reading.running_pct) == (22.036686, 98.5)


def test_metric_only_objects_of_61() -> None:
    """Unit objects, then value objects behind an aggregation key without its brace."""
    report = parse(
        '{"unit" : "GHz"}{"unit" : "insn per cycle"}\n'
        '{"cpu" : "0", {"metric-value" : "0.101"}{"metric-value" : "0.86"}\n'
        '{"cpu" : "1", {"metric-value" : "0.102"}{"metric-value" : ""}\n'
    )

    assert [(r.cpu, r.metric_unit, r.metric_value) for r in report.readings] == [
        ("0", "GHz", 0.101), ("0", "insn per cycle", 0.86),
        ("1", "GHz", 0.102), ("1", "insn per cycle", None),
    ]  # fmt: skip


def test_metric_only_object_of_later_versions() -> None:
    """One object whose keys are the metrics' names."""
    report = parse(
        '{"core" : "S0-D0-C0", "counters" : 2, "%  tma_retiring" : "22.0", "GHz" : "none"}\n'
    )

    assert [(r.scope, r.cpus, r.metric_unit, r.metric_value) for r in report.readings] == [
        ("S0-D0-C0", 2, "%  tma_retiring", 22.0),
        ("S0-D0-C0", 2, "GHz", None),
    ]


def test_nothing_counted_gives_no_rows() -> None:
    """What 6.1 prints with --metric-only and no PMU."""
    assert parse('{}\n{"metric-value" : ""}\n').readings == ()


def test_cut_off_object_keeps_its_count() -> None:
    """A file that ends within an object keeps what is whole and says so."""
    report = parse(
        '{"counter-value" : "5.0", "unit" : "", "event" : "cycles", "event-runtime" : 7, '
        '"pcnt-running" : 100.00}\n{"counter-value" : "6.0", "unit" : "", "event" : "branches", "ev'
    )

    assert [(r.event, r.value) for r in report.readings] == [("cycles", 5.0), ("branches", 6.0)]
    assert report.warnings == ("line 2: an object is cut off; its count is kept",)


def test_program_output_between_objects_is_named() -> None:
    """Foreign lines become warnings, objects around them are kept."""
    line = '{"counter-value" : "5.0", "unit" : "", "event" : "cycles", "event-runtime" : 7}\n'
    report = parse(f"{line}Optimized time: 3.2 s\n{line}")

    assert len(report.readings) == 2
    assert report.warnings == ("line 2: not an object of perf stat -j: 'Optimized time: 3.2 s'",)


def test_count_that_is_no_number_is_missing() -> None:
    """A damaged value is missing with a warning; it never becomes 0."""
    report = parse('{"counter-value" : "5#", "unit" : "", "event" : "cycles"}\n')

    assert (report.readings[0].value, report.readings[0].status) == (None, "not_counted")
    assert report.warnings == ("line 1: cycles: '5#' is not a number",)


@settings(deadline=None)
@given(
    st.integers(1, 2**50),
    st.integers(1, 9999),
    st.sampled_from(["cycles", "cpu_core/cycles/u", "cpu/event=0x1,umask=2/", "a {b}"]),
)
def test_valid_json_reads_as_json_readers_do(value: int, running: int, event: str) -> None:
    """Objects that are valid JSON give what a JSON reader finds in them."""
    record = {
        "counter-value": f"{value:.6f}", "unit": "", "event": event, "event-runtime": 77,
        "pcnt-running": running / 100,
    }  # fmt: skip
    reading = only(json.dumps(record) + "\n")

    assert (reading.event, reading.value, reading.running_pct) == (event, value, running / 100)
