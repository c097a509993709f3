"""Reading what valgrind's tools print for people: the closing summary and the annotators' tables.

The files behind them (callgrind_format) say more; these are read when nothing else was kept.

Source: valgrind manual, chapters on cachegrind and callgrind; outputs of valgrind 3.19.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from moe_prof.errors import InputError

_PREFIX = re.compile(r"^==\d+==\s?")
_SUMMARY_LINE = re.compile(
    r"(?P<name>[A-Za-z0-9]+ +(?:refs|misses)|Branches|Mispredicts): +(?P<total>[\d,]+)"
    r"(?: +\( *(?P<first>[\d,]+) (?P<first_kind>\w+)"
    r" +\+ *(?P<second>[\d,]+) (?P<second_kind>\w+)\))?"
)
_COUNT = r"(?P<count>[\d,]+|\.)"
_CELL = re.compile(rf"\s*{_COUNT}(?:\s+\(\s*[\d.]+%\))?(?=\s|$)")
_EVENTS = re.compile(r"^Events shown:\s+(?P<events>.+?)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class AnnotatedFunction:
    """One line of an annotator's table; an event shown as ``.`` is missing, not 0."""

    name: str
    costs: Mapping[str, int | None]


@dataclass(frozen=True, slots=True)
class Annotation:
    """cg_annotate's or callgrind_annotate's output: totals and the functions it lists.

    Attributes:
        tool: ``cg_annotate`` or ``callgrind_annotate``.
        events: as shown, in order.
        totals: of the program.
        functions: as listed, largest first; those below the threshold are not in the text.
    """

    tool: str
    events: tuple[str, ...]
    totals: Mapping[str, int | None]
    functions: tuple[AnnotatedFunction, ...]

    def function(self, part: str) -> AnnotatedFunction:
        """The first listed function whose name contains ``part``.

        Raises:
            InputError: there is none.
        """
        for found in self.functions:
            if part in found.name:
                return found
        raise InputError(f"{self.tool} output: no function named like {part!r} is listed")


def parse_summary(text: str) -> dict[str, int]:
    """The closing summary on stderr: ``I_refs``, ``D1_misses``, ``LL_refs``, ``D1_misses_rd``...

    Rates are left out: they are rounded, and follow from the counts.

    Raises:
        InputError: the text has no such summary.
    """
    found: dict[str, int] = {}
    for raw in text.splitlines():
        match = _SUMMARY_LINE.match(_PREFIX.sub("", raw))
        if match is None:
            continue
        name = "_".join(match["name"].split())
        found[name] = _integer(match["total"])
        if match["first"] is not None:
            found[f"{name}_{match['first_kind']}"] = _integer(match["first"])
            found[f"{name}_{match['second_kind']}"] = _integer(match["second"])
    if not found:
        raise InputError("this is no summary of cachegrind or callgrind: it has no 'refs:' line")
    return found


def parse_annotation(text: str) -> Annotation:
    """An annotator's table of functions; annotated source lines are not read.

    Raises:
        InputError: the text is none, or its totals are missing.
    """
    head = _EVENTS.search(text)
    if head is None:
        raise InputError("this is no annotator's output: it has no 'Events shown:' line")
    events = tuple(head["events"].split())
    totals: Mapping[str, int | None] | None = None
    functions = []
    for line in text[head.end() :].splitlines():
        if line.startswith("-- Auto-annotated source"):
            break
        row = _table_row(line, events)
        if row is None:
            continue
        if totals is None and row.name in {"PROGRAM TOTALS", "TOTALS"}:
            totals = row.costs
        elif row.name:
            functions.append(row)
    if totals is None:
        raise InputError("this annotator's output has no PROGRAM TOTALS: it was cut off")
    tool = "callgrind_annotate" if "Profile data file" in text else "cg_annotate"
    return Annotation(tool, events, totals, tuple(functions))


def _table_row(line: str, events: tuple[str, ...]) -> AnnotatedFunction | None:
    place = 0
    costs: dict[str, int | None] = {}
    for event in events:
        cell = _CELL.match(line, place)
        if cell is None:
            return None
        costs[event] = None if cell["count"] == "." else _integer(cell["count"])
        place = cell.end()
    return AnnotatedFunction(line[place:].strip(), costs)


def _integer(text: str) -> int:
    return int(text.replace(",", ""))
