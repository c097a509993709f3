"""Tidy rows: what is allowed, and that nothing is lost on the way to a frame and back."""

import math

import pytest

from moe_prof.rows import COLUMNS, Row, from_frame, to_frame, to_json_record, unavailable


def test_columns_are_the_contract():
    """The tidy columns in their order."""
    assert COLUMNS == (
        "run_id", "scenario", "variant", "collector", "scope", "repeat", "time_s", "cpu", "thread",
        "phase", "metric", "level", "value", "unit", "stddev", "n", "mux_pct", "status",
        "provenance", "source",
    )  # fmt: skip


def test_nan_is_refused():
    """Missing is None, NaN is a mistake."""
    with pytest.raises(ValueError, match="NaN"):
        Row(collector="x", metric="m", value=math.nan, unit="1")


def test_unavailable_has_no_value():
    """An unavailable row with a value contradicts itself."""
    with pytest.raises(ValueError, match="has no value"):
        Row(collector="x", metric="m", value=1.0, unit="1", provenance="unavailable")


def test_unavailable_keeps_the_reason():
    """The reason stands in source, the value is missing."""
    row = unavailable("IPC", "1", "no PMU", collector="perf_stat", variant="scalar")
    assert (row.value, row.source, row.provenance, row.variant) == (
        None, "no PMU", "unavailable", "scalar",
    )  # fmt: skip


def test_frame_round_trip():
    """Values, integers, strings and missing ones survive."""
    rows = [
        Row(collector="a", metric="m", value=1.5, unit="s", repeat=3, n=7, thread="0", level=1),
        unavailable("IPC", "1", "no PMU", collector="b"),
    ]
    assert from_frame(to_frame(rows)) == rows


def test_infinity_becomes_null_in_json():
    """JSON has no infinity: null, and the status says so."""
    record = to_json_record(Row(collector="a", metric="m", value=math.inf, unit="1"))
    assert (record["value"], record["status"]) == (None, "out_of_bounds")
