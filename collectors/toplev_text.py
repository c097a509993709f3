"""Reading toplev's text for people: one line a node, in the layouts of old and new versions.

    C0    BE/Mem   Backend_Bound.Memory_Bound    % Slots       25.0 <  [ 6.0%]<==
    FE             Frontend_Bound:               36.40 +-  0.11 %      [ 5.0%]

Lines of description begin with a tab; they and toplev's advice at the end are no values.

Source: the manual of pmu-tools (toplev-manual), section on reading the output.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from moe_prof.collectors.perf_numbers import parse_plain
from moe_prof.collectors.perf_reading import finite

PLACE = (
    r"(?:cpu_\w+-)?(?:CPU\s?[0-9]+|S[0-9]+(?:-D?[CDT0-9-]+)?|C[0-9]+(?:-T[0-9]+)?|T[0-9]+|N[0-9]+)"
)
NUMBER = r"(?:[+-]?[0-9]+(?:[.,][0-9]+)?(?:[eE][+-]?[0-9]+)?|-?nan|[+-]?inf)"
_HEAD = re.compile(rf"\s*(?:(?P<time>[0-9]+\.[0-9]{{4,9}}|SUMMARY)\s+)?(?:(?P<cpu>{PLACE})\s+)?")
_TAIL = re.compile(r"\s*(?:\[\s*(?P<mux>[0-9]+(?:\.[0-9]+)?)\s?%\])?\s*(?P<mark><==)?\s*$")
_OLD = re.compile(
    rf"(?:(?P<area>\S+)\s+)?(?P<name>[A-Z][\w.]*):\s+(?P<value>{NUMBER})"
    r"(?:\s*\+-\s*(?P<stddev>[0-9]+(?:\.[0-9]+)?))?\s*(?P<unit>%?)\s*(?P<below>below)?"
)
_NEW = re.compile(
    r"(?:(?P<area>[A-Z][\w/.]*)\s+)?(?P<name>[A-Z][\w.]*)\s+"
    r"(?P<unit>%(?: [A-Z]\w*)?|(?:Core|Sys_?)?(?:Metric|Count|Clocks|Seconds|Nanoseconds)"
    rf"|[GM]B */ *sec|GHz)\s+(?P<value>{NUMBER})\s*(?P<below>[<?])?"
    r"(?:\s*\+-\s*(?P<stddev>[0-9]+(?:\.[0-9]+)?)\s*%?)?"
)


@dataclass(frozen=True, slots=True)
class TextValue:
    """One line's parts; see :class:`moe_prof.collectors.toplev_format.ToplevValue`."""

    name: str
    value: float | None
    unit: str
    time_s: float | None
    cpu: str | None
    below: bool
    stddev: float | None
    multiplex_pct: float | None
    bottleneck: bool


def read_line(line: str) -> TextValue | None:
    """The value of a line, None for any other line."""
    if line.startswith("\t"):
        return None
    head = _HEAD.match(line)
    tail = _TAIL.search(line)
    if head is None or tail is None:
        return None
    body = line[head.end() : tail.start()].strip()
    match = _NEW.fullmatch(body) or _OLD.fullmatch(body)
    if match is None:
        return None
    time_text = head["time"]
    return TextValue(
        name=match["name"],
        value=finite(parse_plain(match["value"])),
        unit=match["unit"] if match.re is _NEW else _old_unit(match),
        time_s=None if time_text in (None, "SUMMARY") else parse_plain(time_text),
        cpu=head["cpu"],
        below=bool(match["below"]),
        stddev=parse_plain(match["stddev"]) if match["stddev"] else None,
        multiplex_pct=parse_plain(tail["mux"]) if tail["mux"] else None,
        bottleneck=bool(tail["mark"]),
    )


def _old_unit(match: re.Match[str]) -> str:
    """Old versions print a bare percent sign; nodes are named with their area before them."""
    return "% Slots" if match["unit"] and match["area"] else match["unit"]
