"""valgrind's profilers: the files of callgrind and cachegrind, their annotators, their summaries."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from moe_prof.collectors import callgrind_format, valgrind_annotation, valgrind_text
from moe_prof.collectors.callgrind_format import CallgrindProfile, FunctionKey
from moe_prof.errors import InputError
from moe_prof.importing.base import Found, Kind, Labels, Part, Remarks
from moe_prof.rows import Row, Scope

_FILE_START = re.compile(
    r"# callgrind format|creator: \S|desc: (?:I1|D1|LL) cache:|events: [A-Z]\w*(?: \w+)*\s*$"
    r"|positions: (?:instr|line)"
)
_ANNOTATION_START = re.compile(
    r"(?:I1 cache: |-- Metadata\s*$|Profile data file '|Events (?:recorded|shown):\s"
    r"|Invocation:\s.*cg_annotate)"
)
_SUMMARY_START = re.compile(
    r"\s*(?:(?:I1?|LLi|D1?|LLd|LL|L2i|L2d|L2) +(?:refs|misses): +\d|Mispredicts: +\d)"
)


def read_file(part: Part, labels: Labels) -> Found:
    """callgrind.out or cachegrind.out; raises InputError."""
    remarks = Remarks()
    profile = callgrind_format.parse(part.text.rstrip("\n") + "\n", remarks.add)
    if not profile.functions and not profile.summary:
        raise InputError("this file of callgrind or cachegrind holds no costs")
    found = [] if profile.complete else [profile.incomplete_reason]
    name = _collector(profile)
    maker = _Maker(labels, name)
    rows = [
        maker.row(event, float(total), f"total of the file{_cut(profile)}")
        for event, total in profile.totals.items()
    ]
    rows.append(maker.row("complete", float(profile.complete), profile.incomplete_reason))
    for key, cost in profile.functions.items():
        costs = dict(zip(profile.events, cost, strict=True))
        rows += maker.function_rows(_function_name(key), costs)
    first = profile.events[0]
    inclusive = profile.inclusive_cost(first) if profile.calls else {}
    for key, total in inclusive.items():
        rows.append(maker.row(f"{first} inclusive", float(total), _function_name(key), "function"))
    return Found(tuple(rows), (*remarks.result(), *found), profile.header.get("cmd", ""))


def read_annotation(part: Part, labels: Labels) -> Found:
    """What cg_annotate or callgrind_annotate prints; raises InputError."""
    found = valgrind_annotation.parse_annotation(part.text)
    maker = _Maker(labels, found.tool)
    rows = [
        maker.row(event, None if count is None else float(count), "PROGRAM TOTALS")
        for event, count in found.totals.items()
    ]
    for function in found.functions:
        rows += maker.function_rows(function.name, function.costs)
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
        maker = _Maker(
            labels, one.tool or "cachegrind", repeat=number if len(processes) > 1 else None
        )
        where = f"process {one.pid}" if one.pid else "closing summary"
        rows += [maker.row(name, float(count), where) for name, count in one.counts.items()]
    return Found(tuple(rows), (), processes[0].command)


class _Maker:
    """Rows of simulated counts with their labels."""

    def __init__(self, labels: Labels, collector: str, repeat: int | None = None) -> None:
        self._labels = labels
        self._collector = collector
        self._repeat = repeat

    def row(
        self, metric: str, value: float | None, source: str, scope: Scope = "process"
    ) -> Row:
        return Row(
            scenario=self._labels.scenario,
            variant=self._labels.variant,
            collector=self._collector,
            scope=scope,
            repeat=self._repeat,
            metric=metric,
            value=value,
            unit="1",
            status="ok" if value is not None else "not_counted",
            provenance="simulated" if value is not None else "unavailable",
            source=source if value is not None else f"{source}; not shown by the tool",
        )

    def function_rows(self, name: str, costs: Mapping[str, int | None]) -> Iterator[Row]:
        """One row an event; zeros are kept for the first event only, they are most of a file."""
        for number, (event, count) in enumerate(costs.items()):
            if count or number == 0:
                value = None if count is None else float(count)
                yield self.row(event, value, name, "function")


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


FILE = Kind(
    name="callgrind",
    title="callgrind.out, cachegrind.out",
    read=read_file,
    starts=_FILE_START.match,
)
ANNOTATION = Kind(
    name="cg_annotate",
    title="cg_annotate, callgrind_annotate",
    read=read_annotation,
    starts=_ANNOTATION_START.match,
)
SUMMARY = Kind(
    name="cachegrind",
    title="cachegrind's and callgrind's summary on stderr",
    read=read_summary,
    starts=lambda line: valgrind_text.LINE.match(line) or _SUMMARY_START.match(line),
    scattered=True,
)
