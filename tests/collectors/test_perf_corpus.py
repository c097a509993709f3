"""Recorded perf stat outputs of every form, against the values that a reader must find in them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from moe_prof.collectors.perf_parse import parse, recognise
from moe_prof.collectors.perf_reading import Reading, Report

FOLDER = Path(__file__).parents[1] / "fixtures" / "corpus"
INDEX = [
    entry
    for entry in json.loads((FOLDER / "index.json").read_text(encoding="utf-8"))
    if entry["kind"].startswith(("perf-stat", "perf topdown"))
]
CASES = [
    pytest.param(entry["file"], key, value, id=f"{entry['id']}-{key}")
    for entry in INDEX
    for key, value in entry["expected"].items()
    if key != "verdict"
]
UNITS = {"ns": "ns", "ms": "msec"}


def report_of(name: str) -> Report:
    """The parsed file."""
    return parse((FOLDER / name).read_text(encoding="utf-8"))


def times(report: Report) -> list[float]:
    """End times of the intervals, ascending."""
    return sorted({r.time_s for r in report.readings if r.time_s is not None})


def named(readings: list[Reading], name: str) -> float | None:
    """Value of an event, or of a clock in the unit that the name ends in."""
    clock = re.fullmatch(r"(duration_time|user_time|task.clock)_(ns|ms)", name)
    if clock:
        name = clock[1].replace("task_", "task-")
    (found,) = [r for r in readings if r.event.split(":")[0] == name]
    if clock:
        assert found.unit == UNITS[clock[2]]
    return found.value


def column(readings: list[Reading], name: str) -> float | None:
    """A cell of a metric table: ``retiring``, ``be`` for the back end."""
    title = {"be": "backend bound"}.get(name, name)
    (found,) = [r for r in readings if r.metric_unit.endswith(title)]
    return found.metric_value


def value_of(report: Report, key: str) -> object:
    """What the report says for one key of the index."""
    totals = [r for r in report.readings if r.time_s is None and not r.summary]
    bracket = re.fullmatch(r"rel_stddev_pct\[(.+)\]", key)
    if bracket:
        return next(r.stddev_pct for r in totals if r.event == bracket[1])
    simple = {
        "elapsed_s": lambda: report.elapsed_s,
        "intervals": lambda: len(times(report)),
        "rows": lambda: len(report.readings),
        "metric": lambda: totals[0].metric_value,
        "pcnt_running": lambda: totals[0].running_pct,
        "running_pct": lambda: totals[0].running_pct,
        "rel_stddev_pct": lambda: totals[0].stddev_pct,
    }
    if key in simple:
        return simple[key]()
    part, dot, name = key.partition(".")
    if not dot:
        return named(totals, key)
    if part.startswith("t"):
        when = times(report)[int(part[1:])]
        return named([r for r in report.readings if r.time_s == when], name)
    if part == "sum":
        wanted = name.removesuffix("(derived)")
        return sum(r.value for r in report.readings if r.event == wanted)
    if part == "summary":
        return named([r for r in report.readings if r.summary], name)
    scoped = [r for r in report.readings if r.scope == part]
    if name == "count":
        return scoped[0].value
    if name == "running_pct":
        return scoped[0].running_pct
    return named(scoped, name) if scoped[0].event else column(scoped, name)


@pytest.mark.parametrize(("name", "key", "expected"), CASES)
def test_corpus_value(name: str, key: str, expected: object) -> None:
    """Each listed value is read exactly; a missing one stays None."""
    assert value_of(report_of(name), key) == expected


@pytest.mark.parametrize("entry", INDEX, ids=lambda entry: entry["id"])
def test_form_is_found_by_content(entry: dict[str, str]) -> None:
    """The form follows from the content, without being told."""
    text = (FOLDER / entry["file"]).read_text(encoding="utf-8")
    kind = entry["kind"]
    expected = "json" if "json" in kind else "csv" if "csv" in kind else "text"

    assert recognise(text) == expected


def test_not_supported_events_keep_their_reason() -> None:
    """Hardware events of a machine without a PMU are missing and say so."""
    missing = [r for r in report_of("A21.txt").readings if r.value is None]

    assert [(r.event, r.status, r.running_pct) for r in missing] == [
        ("cycles", "not_supported", None),
        ("instructions", "not_supported", None),
        ("branches", "not_supported", None),
        ("branch-misses", "not_supported", None),
    ]


def test_decimal_comma_as_separator_is_repaired_with_advice() -> None:
    """Rows that the locale tore apart are put together, and the user is told how to avoid it."""
    report = report_of("B10.txt")

    assert [r.metric_value for r in report.readings] == [None, None, None, None]
    assert "LC_ALL=C" in report.warnings[0]


def test_metric_cut_at_a_decimal_comma_is_left_out() -> None:
    """perf prints 1 for 1,006: no value is better than a wrong one."""
    report = report_of("B12.txt")

    assert [r.metric_value for r in report.readings] == [None, None, None]
    assert "LC_ALL=C" in report.warnings[0]


@pytest.mark.parametrize("entry", INDEX, ids=lambda entry: entry["id"])
def test_nothing_is_dropped_silently(entry: dict[str, str]) -> None:
    """Every line of an undamaged file is understood: the only warnings are about the locale."""
    report = report_of(entry["file"])

    assert [w for w in report.warnings if "LC_ALL=C" not in w] == []
