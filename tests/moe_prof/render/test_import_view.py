"""Tables of imported rows: values with units, functions of several events, long lists."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from moe_prof.render.import_view import MAX_FUNCTIONS, MAX_TOTALS, file_view, value_text
from moe_prof.rows import Row, Status


def row(value: float | None = 1.0, **fields: object) -> Row:
    """A row of perf report."""
    status: Status = "ok" if value is not None else "not_counted"
    defaults: dict[str, object] = {
        "collector": "perf_report", "metric": "samples", "unit": "1", "value": value,
        "status": status, "provenance": "measured" if value is not None else "unavailable",
    }  # fmt: skip
    return Row(**{**defaults, **fields})  # type: ignore[arg-type]


def printed(rows: list[Row], width: int = 100) -> str:
    """The view as text."""
    stream = io.StringIO()
    console = Console(file=stream, width=width, no_color=True, highlight=False)
    for part in file_view("f.txt", ("perf report",), rows):
        console.print(part)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0125, "s", "12.5 ms"), (1234567.0, "1", "1,234,567"), (0.25, "slots", "25.0 % of slots"),
        (2048.0, "bytes", "2.00 KiB"), (3.1e9, "Hz", "3.10 G Hz"), (0.5, "1", "0.50"),
        (None, "s", "-"), (12.0, "J", "12 J"),
    ],
)  # fmt: skip
def test_values(value: float | None, unit: str, text: str) -> None:
    """A value with its unit; a missing one is a dash."""
    assert value_text(row(value, unit=unit)) == text


def test_functions_of_two_events() -> None:
    """Each share says of which event it is."""
    out = printed([
        row(0.75, metric="Overhead", scope="function", thread="moe", source="f [moe]; cycles; l 1"),
        row(0.5, metric="Overhead", scope="function", source="f [moe]; faults; line 9"),
    ])  # fmt: skip

    assert "75.0 %  f [moe] (moe, cycles)" in out
    assert "50.0 %  f [moe] (faults)" in out


def test_where_and_remarks() -> None:
    """Place, interval, repetition, multiplexing and deviation stand beside the value."""
    out = printed([
        row(10.0, cpu="CPU3", time_s=1.5, status="multiplexed", mux_pct=25.0),
        row(10.0, repeat=2, stddev=1.0, n=3), row(None, thread="w-7"),
    ])  # fmt: skip

    for words in ("CPU3, from 1.5 s", "counted 25 % of the time", "run 2", "+- 10 %", "w-7",
                  "not counted"):  # fmt: skip
        assert words in out


def test_long_lists_say_what_is_left_out() -> None:
    """The rest is counted, and how to see it is said."""
    rows = [row(float(n)) for n in range(MAX_TOTALS + 3)]
    rows += [
        row(0.1, metric="Overhead", scope="function", source=f"f{n} [moe]; cycles; line {n}")
        for n in range(MAX_FUNCTIONS + 2)
    ]
    out = printed(rows)

    assert "and 3 further rows; --format csv or json gives all" in out
    assert "and 2 further functions" in out
