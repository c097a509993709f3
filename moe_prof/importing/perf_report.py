"""``perf report --stdio``: samples of each event, shares of each row, branches of call graphs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from moe_prof.collectors import perf_report
from moe_prof.collectors.perf_report import PerfReport, ReportRow, ReportSection
from moe_prof.importing.base import Found, Kind, Labels, Part, RowMaker
from moe_prof.rows import Row

NAME = "perf_report"
_TITLES = re.compile(r"#\s+(?:Overhead|Children\s+Self|Baseline)\b")
_CLOCKS = ("cpu-clock", "task-clock")


def read(part: Part, labels: Labels) -> Found:
    """Rows of every section; raises InputError."""
    report = perf_report.parse(part.text)
    maker = RowMaker(labels, NAME)
    rows = [row for section in report.sections for row in _section_rows(section, maker)]
    if not any(row.metric == "samples" for row in rows) and report.no_samples:
        rows.append(maker.row("samples", 0.0, "1", "perf says: the data has no samples"))
    return Found(tuple(rows), report.warnings, report.command or _note(report))


def _note(report: PerfReport) -> str:
    return "no samples" if report.no_samples else ""


def _section_rows(section: ReportSection, maker: RowMaker) -> Iterator[Row]:
    event = section.event or "event not named"
    if section.samples is not None:
        note = "; rounded by perf" if section.rounded else ""
        yield maker.row("samples", float(section.samples), "1", source=f"{event}{note}")
    if section.event_count is not None:
        clock = event.split(":")[0].split("/")[0] in _CLOCKS
        value = section.event_count / 1e9 if clock else float(section.event_count)
        yield maker.row(
            section.event or "event count", value, "s" if clock else "1",
            source="event count, approximate",
        )  # fmt: skip
    if section.lost is not None:
        yield maker.row("lost samples", float(section.lost), "1", source=event)
    for row in section.rows:
        yield from _function_rows(row, section, maker)
    for node in section.nodes:
        path = " > ".join(node.path)
        yield maker.row(
            "call tree", node.percent / 100, "1", scope="function",
            source=f"{path}; {event}; line {node.line}",
        )  # fmt: skip


def _function_rows(row: ReportRow, section: ReportSection, maker: RowMaker) -> Iterator[Row]:
    named = dict(row.labels)
    symbol = row.symbol or named.get("Source:Line", "")
    module = named.pop("Shared Object", "")
    thread = named.pop("Command", "") or None
    named.pop("Symbol", None)
    rest = [f"{title} {text}" for title, text in named.items() if text and text != symbol]
    what = f"{symbol} [{module}]" if symbol and module else symbol or module or thread or "?"
    words = [what, section.event, *rest, f"line {row.line}"]
    source = "; ".join(word for word in words if word)
    for title, percent in row.percents.items():
        yield maker.row(title, percent / 100, "1", scope="function", thread=thread, source=source)
    for title, count in row.counts.items():
        yield maker.row(title, count, "1", scope="function", thread=thread, source=source)


def _starts(line: str) -> object:
    return (
        perf_report.PREAMBLE.match(line)
        or perf_report.SAMPLES.match(line)
        or perf_report.OLD_SAMPLES.match(line)
        or perf_report.NO_SAMPLES.match(line)
        or _TITLES.match(line)
    )


def _fits(part: Part) -> bool:
    """Several rows, as they come through a filter that drops the titles."""
    return sum(bool(perf_report.FULL_ROW.match(line)) for line in part.lines[:1000]) > 0


KIND = Kind(name=NAME, title="perf report --stdio", read=read, starts=_starts, fits=_fits)
