"""Reading toplev's output (pmu-tools), CSV above all: a pure parser, text in, values out.

    [Timestamp] [CPUs] Area Value Unit Description Sample Stddev Multiplex Bottleneck [Idle]

Old versions print no titles, only ``# version on cpu``; ``-x`` chooses the separator; ``--columns``
gives one column a CPU. A unit that ends in ``<`` (old: ``?``) marks a value below the threshold
under which toplev itself does not trust it.

Source: the manual of pmu-tools (toplev-manual), sections on CSV output and on ``--columns``.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass

from moe_prof.collectors.perf_numbers import parse_plain
from moe_prof.collectors.perf_reading import Warnings, finite
from moe_prof.collectors.toplev_text import NUMBER, PLACE, TextValue, read_line
from moe_prof.errors import InputError

SEPARATORS = (",", ";", "\t", "|", ":")
COMMENT = re.compile(r'"?#\s+(?P<version>\S*\d\S*)\s+on\s+(?P<cpu>.+?)"?[,;|\t]*$')
_TITLES = ("Timestamp", "CPUs", "Area", "Value", "Unit", "Description", "Sample", "Stddev",
           "Multiplex", "Bottleneck", "Idle")  # fmt: skip
_TIME = re.compile(r"[0-9]+(?:[.,][0-9]+)?|SUMMARY")
_PLACE = re.compile(PLACE)
_NODE = re.compile(r"[A-Za-z][\w.:/-]*(?: [\w.:/-]+)*")
_UNIT = re.compile(
    r"(?:%|% .*|.*(?:Metric|Count|Clocks?|Slots|Seconds|seconds|GHz|/ ?sec|Uops|Nanoseconds|Ratio)"
    r".*)(?:\s*[<?])?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToplevValue:
    """One value of one node or metric at one place.

    Attributes:
        name: the node as toplev names it, with dots between levels.
        value: as printed, in ``unit``; None when missing.
        time_s: end of the interval; None for a whole run and for the summary over intervals.
        cpu: ``C0``, ``S0-C1-T0``...; None for a whole run.
        below: toplev's own mark that the value is too small to be trusted.
        multiplex_pct: share of the time in which its counters ran.
        bottleneck: toplev's mark ``<==``.
    """

    name: str
    value: float | None
    unit: str
    time_s: float | None = None
    cpu: str | None = None
    below: bool = False
    stddev: float | None = None
    multiplex_pct: float | None = None
    bottleneck: bool = False
    line: int = 0


@dataclass(frozen=True, slots=True)
class ToplevReport:
    """All values, toplev's version and the CPU it names, and remarks about lines."""

    values: tuple[ToplevValue, ...]
    version: str
    warnings: tuple[str, ...]


def is_header(line: str) -> bool:
    """Whether the line holds the titles of toplev's CSV."""
    return "Area" in line and any(
        {"Area", "Value", "Unit"} <= set(cells) or {"Area", "Node"} <= set(cells)
        for cells in (_split(line, separator) for separator in SEPARATORS if separator in line)
    )


def is_row(line: str) -> bool:
    """Whether the line is a row of toplev's CSV without titles."""
    return any(
        _row_shape(_split(line, separator)) is not None
        for separator in SEPARATORS
        if line.count(separator) >= 3
    )


def parse(text: str) -> ToplevReport:
    """Read a whole output.

    Raises:
        InputError: the text is no CSV of toplev.
    """
    values: list[ToplevValue] = []
    warnings = Warnings()
    titles: tuple[str, ...] = ()
    separator = ""
    version = ""
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        if comment := COMMENT.match(line):
            version = f"{comment['version']} on {comment['cpu'].strip()}"
        elif line.lstrip('"').startswith("#"):
            continue
        elif is_header(line):
            separator = _header_separator(line)
            titles = tuple(_split(line, separator))
        elif not titles and (text_value := read_line(line)) is not None:
            values.append(_from_text(text_value, number))
        elif line.startswith("\t") or not (separator or _row_separator(line)):
            continue  # descriptions and advice in the text for people
        else:
            separator = separator or _row_separator(line)
            found = _read(_split(line, separator), titles, number) if separator else None
            if found is None:
                warnings.add(number, f"not a row of toplev's CSV: {line.strip()[:60]!r}")
            else:
                values += found
    if not values and not titles:
        raise InputError("this is no output of toplev: no line has its titles or its columns")
    return ToplevReport(tuple(values), version, warnings.result())


def _from_text(found: TextValue, number: int) -> ToplevValue:
    return ToplevValue(
        name=found.name,
        value=found.value,
        unit=found.unit,
        time_s=found.time_s,
        cpu=found.cpu,
        below=found.below,
        stddev=found.stddev,
        multiplex_pct=found.multiplex_pct,
        bottleneck=found.bottleneck,
        line=number,
    )


def _read(cells: Sequence[str], titles: Sequence[str], number: int) -> list[ToplevValue] | None:
    if "Node" in titles:
        return _read_columns(cells, titles, number)
    if titles:
        if "Value" not in titles or len(cells) <= titles.index("Value"):
            return None
        named = dict(zip(titles, cells, strict=False))
    else:
        shape = _row_shape(cells)
        if shape is None:
            return None
        first = shape
        rest = ("Area", "Value", "Unit", "Description", "Sample", "Stddev", "Multiplex",
                "Bottleneck", "Idle")  # fmt: skip
        named = dict(zip(rest, cells[first:], strict=False))
        for cell in cells[:first]:
            named["Timestamp" if _TIME.fullmatch(cell) else "CPUs"] = cell
    return _value(named, number)


def _value(named: dict[str, str], number: int) -> list[ToplevValue] | None:
    name, printed = named.get("Area", ""), named.get("Value", "")
    unit = named.get("Unit", "")
    below = unit.endswith(("<", "?"))
    try:
        value = _number(printed)
        time_text = named.get("Timestamp", "")
        summary = not time_text or time_text == "SUMMARY"
        time_s = None if summary else finite(parse_plain(time_text))
        stddev, mux = _number(named.get("Stddev", "")), _number(named.get("Multiplex", ""))
    except ValueError:
        return None
    if not name or not _NODE.fullmatch(name) or (time_s is None and not summary):
        return None
    return [
        ToplevValue(
            name=name,
            value=value,
            unit=unit.rstrip("<? "),
            time_s=time_s,
            cpu=named.get("CPUs") or None,
            below=below,
            stddev=stddev,
            multiplex_pct=mux,
            bottleneck="<==" in named.get("Bottleneck", ""),
            line=number,
        )
    ]


def _read_columns(
    cells: Sequence[str], titles: Sequence[str], number: int
) -> list[ToplevValue] | None:
    """A row of ``--columns``: one value a CPU; its unit is not printed."""
    if len(cells) < titles.index("Node") + 1:
        return None
    named = dict(zip(titles, cells, strict=False))
    fixed = {"Timestamp", "Area", "Node", "Description", "Sample", "Stddev", "Multiplex", "Unit",
             "Bottleneck", "Idle"}  # fmt: skip
    unit = named.get("Unit", "") or ("% Slots" if named["Area"] else "")
    found = []
    for title, cell in zip(titles, cells, strict=False):
        if title in fixed or not title:
            continue
        common = {key: named.get(key, "") for key in ("Timestamp", "Multiplex", "Stddev")}
        value = _value(
            {**common, "Area": named["Node"], "Value": cell, "Unit": unit, "CPUs": title}, number
        )
        if value is None:
            return None
        found += value
    return found


def _row_shape(cells: Sequence[str]) -> int | None:
    """Where the node's name stands in a row without titles; None if it is no such row."""
    first = 0
    if cells and _TIME.fullmatch(cells[0]):
        first += 1
    if len(cells) > first and _PLACE.fullmatch(cells[first]):
        first += 1
    if len(cells) < first + 3 or not _NODE.fullmatch(cells[first]):
        return None
    number, unit = cells[first + 1], cells[first + 2]
    if not re.fullmatch(NUMBER, number) or not _UNIT.fullmatch(unit):
        return None
    return first


def _header_separator(line: str) -> str:
    return max(SEPARATORS, key=lambda sep: len({*_split(line, sep)} & {*_TITLES, "Node"}))


def _row_separator(line: str) -> str:
    return next(
        (s for s in SEPARATORS if s in line and _row_shape(_split(line, s)) is not None), ""
    )


def _split(line: str, separator: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=separator), [])]
    except csv.Error:
        return [cell.strip() for cell in line.split(separator)]


def _number(text: str) -> float | None:
    stripped = text.strip().rstrip("%").strip()
    if not stripped:
        return None
    if stripped.count(",") and "." in stripped:
        stripped = stripped.replace(",", "")  # digits grouped by the locale
    return finite(parse_plain(stripped))
