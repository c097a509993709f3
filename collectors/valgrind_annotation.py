"""Reading the tables of cg_annotate and callgrind_annotate: totals and the functions they list.

Up to valgrind 3.20 one table lists ``file:function``; from 3.21 on cg_annotate groups functions by
file (lines beginning with ``<``) and files by function (``>``), each group with its own sum. A
count may be followed by one or two percentages, or be ``.`` (never happened) and so missing.

Source: valgrind manual, chapters on cachegrind and callgrind; outputs of valgrind 3.19.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from moe_prof.errors import InputError

EVENTS = re.compile(r"Events shown:\s+(?P<events>\S.*?)\s*$")

_COUNT = r"(?P<count>-?[0-9][0-9,.'\u2019\u202f\u00a0]*|\.)"
_CELL = re.compile(rf"\s*{_COUNT}(?:\s*\(\s*-?[\d.,n/a]+%?(?:,\s*-?[\d.]+%)?\s*\))?(?=\s|$)")
_MARK = re.compile(r"\s*(?P<mark>[<>*])\s+(?=[0-9.])")
_SOURCE = re.compile(r"-- (?:Auto-annotated|User-annotated|Annotated) source")
_SECTION = re.compile(r"-- (?P<name>Metadata|Summary|File:function summary|Function:file summary)")
_TOTALS = ("PROGRAM TOTALS", "TOTALS")
_ARC = re.compile(r"\s*(?P<mark>[<>*])\s+(?P<name>\S.*)")
_RULE = re.compile(r"-{5,}\s*$")
_COMMAND = re.compile(r"(?:Command|Profiled target):\s+(?P<command>\S.*?)(?: \(PID.*)?$")


@dataclass(frozen=True, slots=True)
class AnnotatedFunction:
    """One line of an annotator's table; an event shown as ``.`` is missing, not 0.

    ``name`` is ``file:function`` as printed; ``group`` is True for a sum over a file or function.
    """

    name: str
    costs: Mapping[str, int | None]
    group: bool = False
    line: int = 0


@dataclass(frozen=True, slots=True)
class Annotation:
    """cg_annotate's or callgrind_annotate's output: totals and the functions it lists.

    Attributes:
        tool: ``cg_annotate`` or ``callgrind_annotate``.
        events: as shown, in order.
        totals: of the program; empty where the text was cut off before them.
        functions: as listed, largest first; those below the threshold are not in the text.
        command: what was run.
        warnings: one line per damaged place.
    """

    tool: str
    events: tuple[str, ...]
    totals: Mapping[str, int | None]
    functions: tuple[AnnotatedFunction, ...]
    command: str = ""
    warnings: tuple[str, ...] = ()

    def function(self, part: str) -> AnnotatedFunction:
        """The first listed function whose name contains ``part``.

        Raises:
            InputError: there is none.
        """
        for found in self.functions:
            if part in found.name:
                return found
        raise InputError(f"{self.tool} output: no function named like {part!r} is listed")


@dataclass(slots=True)
class _State:
    events: tuple[str, ...] = ()
    tool: str = "cg_annotate"
    command: str = ""
    totals: Mapping[str, int | None] = field(default_factory=dict)
    functions: list[AnnotatedFunction] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    section: str = ""
    group: str = ""
    wrapped: tuple[str, int] | None = None
    in_source: bool = False


def parse_annotation(text: str) -> Annotation:
    """An annotator's table of functions; annotated source lines are not read.

    Raises:
        InputError: the text is none.
    """
    state = _State()
    for number, line in enumerate(text.splitlines(), 1):
        _read_line(line.rstrip(), number, state)
    if not state.events:
        raise InputError("this is no annotator's output: it has no 'Events shown:' line")
    if not state.totals:
        state.warnings.append("it has no PROGRAM TOTALS: it was cut off")
    return Annotation(
        state.tool, state.events, state.totals, tuple(state.functions), state.command,
        tuple(state.warnings),
    )  # fmt: skip


def _read_line(line: str, number: int, state: _State) -> None:
    events, section, command = EVENTS.match(line), _SECTION.match(line), _COMMAND.match(line)
    if events:
        state.events = tuple(events["events"].split())
    elif "Profile data file" in line:
        state.tool = "callgrind_annotate"
    elif command:
        state.command = command["command"]
    elif section:
        state.section, state.group, state.in_source = section["name"], "", False
    elif _SOURCE.match(line):
        state.in_source = True
    elif line.strip() and not _RULE.match(line) and state.events and not state.in_source:
        _read_row(line, number, state)


def _read_row(line: str, number: int, state: _State) -> None:
    if state.wrapped is not None:
        start, first = state.wrapped
        line, number, state.wrapped = f"{start} {line}", first, None
    mark = _MARK.match(line)
    costs, rest = _cells(line[mark.end() :] if mark else line, state.events)
    name = rest.strip()
    if not costs:
        return  # a line of titles
    if len(costs) < len(state.events):
        if not name:
            state.wrapped = (line, number)
        elif re.match(r"[\d,]", line.strip()):
            state.warnings.append(
                f"line {number}: {len(costs)} counts for {len(state.events)} events: "
                f"{line.strip()[:60]!r}"
            )
        return
    if name in _TOTALS:
        state.totals = state.totals or costs
    elif mark and mark["mark"] in "<>":
        state.group = name.removesuffix(":")
        state.functions.append(AnnotatedFunction(state.group, costs, group=True, line=number))
    elif name and not _is_arc(name):
        name = name.removeprefix("* ").strip()
        state.functions.append(AnnotatedFunction(_full_name(name, state), costs, line=number))
    elif not name:
        state.warnings.append(f"line {number}: counts without a name: {line.strip()[:60]!r}")


def _full_name(name: str, state: _State) -> str:
    """``file:function``, whichever of both the group names."""
    if not state.group:
        return name
    by_file = state.section.startswith("File:")
    return f"{state.group}:{name}" if by_file else f"{name}:{state.group}"


def _is_arc(name: str) -> bool:
    """A caller or callee of ``callgrind_annotate --tree``: its cost belongs to another line."""
    match = _ARC.match(name)
    return match is not None and match["mark"] != "*"


def _cells(line: str, events: tuple[str, ...]) -> tuple[dict[str, int | None], str]:
    place = 0
    costs: dict[str, int | None] = {}
    for event in events:
        cell = _CELL.match(line, place)
        if cell is None:
            break
        digits = re.sub(r"[^0-9-]", "", cell["count"])
        costs[event] = int(digits) if digits.strip("-") else None
        place = cell.end()
    return costs, line[place:]
