"""valgrind's profilers: files of callgrind and cachegrind, annotators, closing summaries."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from moe_prof.collectors import callgrind_format, valgrind_annotation, valgrind_text
from moe_prof.collectors.callgrind_format import CallgrindProfile, FunctionKey
from moe_prof.collectors.perf_reading import Warnings
from moe_prof.errors import InputError
from moe_prof.importing.base import Found, Kind, Labels, Part, RowMaker
from moe_prof.rows import Row

_FILE_START = re.compile(
    r"# callgrind format|creator: \S|desc: (?:I1|D1|LL) cache:|events: [A-Z]\w*(?: \w+)*\s*$"
    r"|positions: (?:instr|line)"
)
_ANNOTATION_START = re.compile(
    r"(?:I1 cache: |-- Metadata\s*$|Profile data file '|Events (?:recorded|shown):\s"
    r"|Invocation:\s.*cg_annotate)"
)
_MANY = 50_000  # costs beyond which zeros get no rows
_SUMMARY_START = re.compile(
    r"\s*(?:(?:I1?|LLi|D1?|LLd|LL|L2i|L2d|L2) +(?:refs|misses): +\d|Mispredicts: +\d)"
)


def read_file(part: Part, labels: Labels) -> Found:
    """callgrind.out or cachegrind.out; raises InputError."""
    remarks = Warnings()
    profile = callgrind_format.parse(part.text.rstrip("\n") + "\n", remarks.add)
    if not profile.functions and not profile.summary:
        raise InputError("this file of callgrind or cachegrind holds no costs")
    found = [] if profile.complete else [profile.incomplete_reason]
    if len(profile.functions) * len(profile.events) > _MANY:
        found.append("functions' costs of 0 are left out: there are very many")
    name = _collector(profile)
    maker = RowMaker(labels, name, "simulated")
    rows = [
        maker.row(event, float(total), "1", f"total of the file{_cut(profile)}")
        for event, total in profile.totals.items()
    ]
    rows.append(maker.row("complete", float(profile.complete), "1", profile.incomplete_reason))
    many = len(profile.functions) * len(profile.events) > _MANY
    for key, cost in profile.functions.items():
        costs: dict[str, int | None] = dict(zip(profile.events, cost, strict=True))
        if many:
            costs = {event: count for event, count in costs.items() if count}
        rows += _function_rows(maker, _function_name(key), costs)
    first = profile.events[0]
    inclusive = profile.inclusive_cost(first) if profile.calls else {}
    for key, total in inclusive.items():
        rows.append(
            maker.row(
                f"{first} inclusive", float(total), "1", _function_name(key), scope="function"
            )
        )
    return Found(tuple(rows), (*remarks.result(), *found), profile.header.get("cmd", ""))


def read_annotation(part: Part, labels: Labels) -> Found:
    """What cg_annotate or callgrind_annotate prints; raises InputError."""
    found = valgrind_annotation.parse_annotation(part.text)
    maker = RowMaker(labels, found.tool, "simulated")
    rows = [
        maker.row(event, _float(count), "1", "PROGRAM TOTALS")
        for event, count in found.totals.items()
    ]
    for function in found.functions:
        rows += _function_rows(maker, function.name, function.costs)
    if not rows:
        raise InputError(f"this output of {found.tool} was cut off before its first count")
    return Found(tuple(rows), found.warnings, found.command)


def read_summary(part: Part, labels: Labels) -> Found:
    """The summaries on stderr, one a process; raises InputError."""
    processes = [one for one in valgrind_text.parse_summaries(part.filled) if one.counts]
    if not processes:
        raise InputError(
            "this log of valgrind has no counts: only cachegrind's and callgrind's can be imported"
        )
    rows = []
    for number, one in enumerate(processes):
        maker = RowMaker(labels, one.tool or "cachegrind", "simulated")
        repeat = number if len(processes) > 1 else None
        where = f"process {one.pid}" if one.pid else "closing summary"
        rows += [
            maker.row(name, float(count), "1", where, repeat=repeat)
            for name, count in one.counts.items()
        ]
    return Found(tuple(rows), (), processes[0].command)


def _function_rows(maker: RowMaker, name: str, costs: Mapping[str, int | None]) -> Iterator[Row]:
    """One row an event."""
    for event, count in costs.items():
        yield maker.row(event, _float(count), "1", name, scope="function")


def _float(count: int | None) -> float | None:
    return None if count is None else float(count)


def _collector(profile: CallgrindProfile) -> str:
    creator = re.match(r"[A-Za-z_]+", profile.header.get("creator", ""))
    if creator:
        return creator[0].lower()
    return "callgrind" if profile.calls or "version" in profile.header else "cachegrind"


def _cut(profile: CallgrindProfile) -> str:
    return "" if profile.complete else f"; incomplete: {profile.incomplete_reason}"


def _function_name(key: FunctionKey) -> str:
    module = f" [{key.object}]" if key.object else ""
    return f"{key.name} ({key.file}){module}"


def _is_summary_line(line: str) -> bool:
    marked = ("==" in line or "--" in line) and valgrind_text.LINE.match(line) is not None
    return marked or _SUMMARY_START.match(line) is not None


FILE = Kind(
    name="callgrind",
    title="callgrind.out and cachegrind.out",
    read=read_file,
    starts=_FILE_START.match,
)
ANNOTATION = Kind(
    name="cg_annotate",
    title="cg_annotate and callgrind_annotate",
    read=read_annotation,
    starts=_ANNOTATION_START.match,
)
SUMMARY = Kind(
    name="cachegrind",
    title="valgrind's summary on stderr",
    read=read_summary,
    starts=_is_summary_line,
    scattered=True,
)
