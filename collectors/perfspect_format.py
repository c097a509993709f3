"""Reading PerfSpect's metric CSV files: a pure parser, text in, values out.

Four layouts: version 3's series (``TS,SKT,CPU,CID`` or with PID and CMD, then one column a metric),
its summary (``metric,mean,min,max,stddev``, grouped by a first column), version 1 and 2's series
(``time`` and ``metric_...`` columns) and their averages (``metrics,avg,p95,min,max``, or one
column a socket or CPU). A value that could not be computed is an empty cell or an infinity.

Source: the manual of PerfSpect, section on the metrics command; README of versions 1 and 2.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from moe_prof.collectors.perf_numbers import parse_plain
from moe_prof.collectors.perf_reading import Warnings
from moe_prof.errors import InputError

_PLACES = ("TS", "SKT", "CPU", "CID", "PID", "CMD")
_STATISTICS = ("mean", "avg", "min", "max", "stddev", "p95")
_METRIC_TITLES = ("metric", "metrics", "name")
_OLD = "metric_"
_FIRST_TITLE = re.compile(r'"?(?:TS|SKT|CPU|CID|PID|CMD|time|timestamp|metrics?|name)\b', re.I)
_PART = re.compile(r"(?P<name>.+)\.(?:[SC]?)(?P<part>[0-9]+)")
_UNITS = (
    (re.compile(r"(?:^|_)TMA_.*(?:\(%\)|%)$"), "% slots"),
    (re.compile(r"\(%\)$|%$| %_|^NUMA %"), "%"),
    (re.compile(r"\((?:in )?GHz\)$"), "GHz"),
    (re.compile(r"\(MB/sec\)$|\(MB/s\)$"), "MB/s"),
    (re.compile(r"\(GB/sec\)$|\(GB/s\)$"), "GB/s"),
    (re.compile(r"\(in ns\)$|\(ns\)$|in ns$"), "ns"),
    (re.compile(r"\(in us\)$|\(us\)$"), "us"),
    (re.compile(r"\(watts?\)$", re.IGNORECASE), "W"),
    (re.compile(r"\(joules?\)$", re.IGNORECASE), "J"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PerfspectValue:
    """One value of one metric.

    Attributes:
        name: as printed, without the ``metric_`` of old versions.
        value: in ``unit``; None when empty, infinite when PerfSpect divided by zero.
        unit: as the name says it: ``% slots``, ``%``, ``GHz``, ``MB/s``, ``ns``, ``W`` or "".
        statistic: ``mean``, ``min``, ``max``, ``p95`` of a summary; "" in a series.
        time_s: seconds since the series' first row.
        cpu: ``SKT 0``, ``CPU 17``; None for the whole system.
        thread: process or control group, where the series is by those.
        stddev: of a summary's mean.
    """

    name: str
    value: float | None
    unit: str
    statistic: str = ""
    time_s: float | None = None
    cpu: str | None = None
    thread: str | None = None
    stddev: float | None = None
    line: int = 0


@dataclass(frozen=True, slots=True)
class PerfspectReport:
    """All values and remarks about lines."""

    values: tuple[PerfspectValue, ...]
    warnings: tuple[str, ...]


def is_header(line: str) -> bool:
    """Whether the line holds the titles of one of the layouts."""
    return _FIRST_TITLE.match(line) is not None and _layout(_cells(line)) is not None


def parse(text: str) -> PerfspectReport:
    """Read a whole file; a later line of titles begins another table.

    Raises:
        InputError: the text is no such file.
    """
    titles: list[str] = []
    layout: str | None = None
    start_s: float | None = None
    values: list[PerfspectValue] = []
    warnings = Warnings()
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        cells = _cells(line)
        found = _layout(cells)
        if found is not None:
            titles, layout, start_s = cells, found, None
            continue
        if layout is None:
            continue
        if len(cells) != len(titles):
            warnings.add(
                number, f"{len(cells)} cells for {len(titles)} columns; what is there is kept"
            )
        try:
            if layout == "series":
                start_s = _start(start_s, titles, cells)
                values += _series(titles, cells, start_s, number)
            else:
                values += _summary(titles, cells, number)
        except ValueError as error:
            warnings.add(number, f"not a row of PerfSpect: {error}")
    if layout is None:
        raise InputError("this is no metrics file of PerfSpect: no line has its titles")
    return PerfspectReport(tuple(values), warnings.result())


def unit_of(name: str) -> str:
    """The unit that a metric's name says, "" for ratios and counts."""
    return next((unit for pattern, unit in _UNITS if pattern.search(name)), "")


def _layout(cells: Sequence[str]) -> str | None:
    if len(cells) < 2:
        return None
    if cells[0] == "TS" and cells[1] in _PLACES:
        return "series"
    if cells[0].lower() in ("time", "timestamp", "ts") and any(c.startswith(_OLD) for c in cells):
        return "series"
    lowered = [cell.lower() for cell in cells]
    places = 1 if lowered[0].upper() in _PLACES else 0
    if lowered[places] in _METRIC_TITLES:
        rest = lowered[places + 1 :]
        if {"mean", "min"} <= set(rest) or {"avg", "min"} <= set(rest):
            return "summary"
        if places == 0 and lowered[0] == "metrics" and rest and all(c.isdigit() for c in rest):
            return "summary"
    return None


def _start(start_s: float | None, titles: Sequence[str], cells: Sequence[str]) -> float | None:
    if start_s is not None or not cells[0]:
        return start_s
    return _time(cells[0])


def _series(
    titles: Sequence[str], cells: Sequence[str], start_s: float | None, number: int
) -> list[PerfspectValue]:
    named = dict(zip(titles, cells, strict=False))
    time_s = _time(cells[0]) - start_s if cells[0] and start_s is not None else None
    cpu = " ".join(f"{key} {named[key]}" for key in ("SKT", "CPU") if named.get(key))
    thread = " ".join(named[key] for key in ("CMD", "PID", "CID") if named.get(key))
    found = []
    for title, cell in list(zip(titles, cells, strict=False))[1:]:
        if title in _PLACES:
            continue
        name, part = _split_part(title)
        found.append(
            PerfspectValue(
                name=name,
                value=_number(cell),
                unit=unit_of(name),
                time_s=None if time_s is None else max(0.0, time_s),
                cpu=cpu or part,
                thread=thread or None,
                line=number,
            )
        )
    return found


def _summary(titles: Sequence[str], cells: Sequence[str], number: int) -> list[PerfspectValue]:
    named = dict(zip((title.lower() for title in titles), cells, strict=False))
    place = titles[0] if titles[0] in _PLACES else ""
    name, part = _split_part(cells[1] if place else cells[0])
    cpu = f"{place} {cells[0]}" if place in ("SKT", "CPU") and cells[0] else part
    thread = cells[0] if place in ("CID", "PID", "CMD") and cells[0] else None
    found = []
    for title, cell in list(zip(titles, cells, strict=False))[2 if place else 1 :]:
        lowered = title.lower()
        if lowered == "stddev":
            continue
        known = lowered in _STATISTICS
        spread = _number(named.get("stddev", "")) if lowered in ("mean", "avg") else None
        found.append(
            PerfspectValue(
                name=name,
                value=_number(cell),
                unit=unit_of(name),
                statistic="mean" if lowered == "avg" else lowered if known else "mean",
                cpu=cpu if known else f"part {title}",
                thread=thread,
                stddev=spread if spread is not None and math.isfinite(spread) else None,
                line=number,
            )
        )
    return found


def _split_part(title: str) -> tuple[str, str | None]:
    """The name without ``metric_``; version 2 puts the socket or CPU behind a dot."""
    if not title.startswith(_OLD):
        return title, None
    match = _PART.fullmatch(title)
    name = match["name"] if match else title
    return name.removeprefix(_OLD), f"part {match['part']}" if match else None


def _time(text: str) -> float:
    seconds = parse_plain(text)
    if not math.isfinite(seconds):
        raise ValueError(f"{text!r} is no time")
    return seconds


def _number(text: str) -> float | None:
    stripped = text.strip()
    if not stripped or stripped.lower() == "nan":
        return None
    value = parse_plain(stripped.lower() if stripped.lower().lstrip("+-") == "inf" else stripped)
    return None if math.isnan(value) else value


def _cells(line: str) -> list[str]:
    separator = max((",", ";", "\t"), key=line.count)
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=separator), [])]
    except csv.Error:
        return [cell.strip() for cell in line.split(separator)]
