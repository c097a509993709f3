"""Reading the summary that valgrind's tools print on stderr when the program ends.

The files behind it (callgrind_format) say more; it is read when nothing else was kept.

Source: valgrind manual, chapters on cachegrind and callgrind; outputs of valgrind 3.19.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from moe_prof.errors import InputError

LINE = re.compile(r".*?[=-]{2}(?P<pid>\d+)[=-]{2}(?:\s(?P<text>.*))?$")
_DIGITS = r"[\d,.'\u2019\u202f\u00a0]+"
_SUMMARY_LINE = re.compile(
    r"(?P<name>[A-Za-z0-9]+ +(?:refs|misses)|Branches|Mispredicts): +"
    rf"(?P<total>{_DIGITS})"
    rf"(?: +\( *(?P<first>{_DIGITS}) (?P<first_kind>\w+)"
    rf" +\+ *(?P<second>{_DIGITS}) (?P<second_kind>\w+)\s*\))?"
)
_EVENTS = re.compile(r"Events\s*: (?P<events>.+)")
_COLLECTED = re.compile(r"Collected\s*: (?P<counts>[\d ]+)$")
_COMMAND = re.compile(r"Command: (?P<command>.+)")
_TOOL = re.compile(r"(?P<tool>Cachegrind|Callgrind), a ")


@dataclass(slots=True)
class ProcessSummary:
    """One process: its counts by name (``I_refs``, ``D1_misses_rd``, ``Ir``...)."""

    pid: str
    tool: str = ""
    command: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    events: tuple[str, ...] = ()
    line: int = 0


def parse_summary(text: str) -> dict[str, int]:
    """The closing summary of the first process: ``I_refs``, ``D1_misses``, ``D1_misses_rd``...

    Rates are left out: they are rounded, and follow from the counts.

    Raises:
        InputError: the text has no such summary.
    """
    found = [one for one in parse_summaries(enumerate(text.splitlines(), 1)) if one.counts]
    if not found:
        raise InputError("this is no summary of cachegrind or callgrind: it has no 'refs:' line")
    return found[0].counts


def parse_summaries(lines: Iterable[tuple[int, str]]) -> list[ProcessSummary]:
    """The closing summaries of all processes, from numbered lines, in order of appearance."""
    found: dict[str, ProcessSummary] = {}
    for number, raw in lines:
        prefixed = LINE.match(raw)
        pid = prefixed["pid"] if prefixed else ""
        text = (prefixed["text"] or "") if prefixed else raw.strip()
        summary = found.setdefault(pid, ProcessSummary(pid, line=number))
        _read_line(text.strip(), summary)
    return list(found.values())


def _read_line(text: str, summary: ProcessSummary) -> None:
    counted, tool = _SUMMARY_LINE.match(text), _TOOL.match(text)
    command, events = _COMMAND.match(text), _EVENTS.match(text)
    collected = _COLLECTED.match(text)
    if counted:
        name = "_".join(counted["name"].split())
        summary.counts[name] = _integer(counted["total"])
        if counted["first"] is not None:
            summary.counts[f"{name}_{counted['first_kind']}"] = _integer(counted["first"])
            summary.counts[f"{name}_{counted['second_kind']}"] = _integer(counted["second"])
    elif tool:
        summary.tool = tool["tool"].lower()
    elif command:
        summary.command = command["command"].strip()
    elif events:
        summary.events = tuple(events["events"].split())
    elif collected and summary.events:
        counts = [int(word) for word in collected["counts"].split()]
        summary.counts |= dict(zip(summary.events, counts, strict=False))


def _integer(text: str) -> int:
    return int(re.sub(r"[^0-9]", "", text) or "0")
