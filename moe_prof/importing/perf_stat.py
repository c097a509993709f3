"""``perf stat`` in its three forms; each is a kind of its own, so that a log may hold several."""

from __future__ import annotations

import re
from collections.abc import Callable

from moe_prof.collectors import perf_rows
from moe_prof.collectors.perf_reading import Report
from moe_prof.collectors.perf_stat_csv import (
    find_separator,
    looks_like_count,
    parse_csv,
    table_separator,
)
from moe_prof.collectors.perf_stat_json import LOOKS_LIKE, parse_json
from moe_prof.collectors.perf_stat_text import HEADER, INTERVAL_HEADER, parse_text
from moe_prof.errors import InputError
from moe_prof.importing.base import Found, Kind, Labels, Part
from moe_prof.rows import Scope

NAME = "perf_stat"
_PROBE_LINES = 2000
_SYSTEM = re.compile(r"system wide|CPU\(s\)")


def _reader(parse: Callable[[str], Report]) -> Callable[[Part, Labels], Found]:
    def read(part: Part, labels: Labels) -> Found:
        report = parse(part.text)
        if not report.readings and report.warnings:
            raise InputError(f"perf stat: nothing could be read; {report.warnings[0]}")
        rows = perf_rows.rows(
            report,
            perf_rows.Labels(
                scenario=labels.scenario, variant=labels.variant, scope=_scope(report)
            ),
        )
        remarks = report.warnings
        if not rows:
            remarks += ("perf stat printed no value: none of its events could be counted",)
        return Found(tuple(rows), remarks, report.command)

    return read


def _scope(report: Report) -> Scope:
    """The whole machine where perf says so or prints one row a CPU or core; else a process."""
    by_place = any(reading.scope for reading in report.readings)
    return "system" if by_place or _SYSTEM.search(report.command) else "process"


def _probe(part: Part) -> list[str]:
    return list(part.lines[:_PROBE_LINES])


TEXT = Kind(
    name=NAME,
    title="perf stat, text",
    read=_reader(parse_text),
    starts=lambda line: HEADER.match(line) or INTERVAL_HEADER.match(line),
)
JSON = Kind(
    name=NAME,
    title="perf stat, -j",
    read=_reader(parse_json),
    starts=LOOKS_LIKE.search,
)
CSV = Kind(
    name=NAME,
    title="perf stat, -x",
    read=_reader(parse_csv),
    starts=looks_like_count,
    fits=lambda part: find_separator(_probe(part))[1] > 0,
)
FRAGMENT = Kind(
    name=NAME,
    title="perf stat, text without its title line",
    read=_reader(parse_text),
    fits=lambda part: bool(parse_text("\n".join(_probe(part))).readings),
)
TABLE = Kind(
    name=NAME,
    title="perf stat, -x, metrics only",
    read=_reader(parse_csv),
    fits=lambda part: bool(table_separator(_probe(part))),
)
