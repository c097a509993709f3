"""Metric tables of ``perf stat``: ``--topdown`` up to 6.3 and ``--metric-only`` of every version.

A header names the columns, every later row has one cell a column. In the text form names contain
blanks and cells may be missing, so cells are matched to columns by their right edges, which perf
aligns; in the CSV form by their position.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from moe_prof.collectors.perf_numbers import parse_plain
from moe_prof.collectors.perf_reading import Reading, Warnings, finite

# Column titles of perf 4.8 to 6.3; their cells are percent of slots.
_TOPDOWN_TITLES = (
    "retiring", "bad speculation", "bad speculat", "frontend bound", "FE bound", "backend bound",
    "BE bound", "heavy operations", "light operations", "branch mispredict", "machine clears",
    "fetch latency", "fetch bandwidth", "memory bound", "Core bound", "core bound",
)  # fmt: skip
_TITLE = re.compile(
    r"(?:%[a-z]*|percent of [a-z]+) {1,2}\w+"
    + "".join(f"|{title}(?= |$)" for title in sorted(_TOPDOWN_TITLES, key=len, reverse=True))
    + r"|\S+(?: \S+)*"
)
_TOPDOWN_METRIC = re.compile(
    r"(?:%[a-z]*|percent of slots) +(?:tma_\w+|[a-z_]+_bound\w*|bad_speculation\w*|retiring\w*"
    r"|smt_contention|" + "|".join(_TOPDOWN_TITLES) + ")"
)
_CELL = re.compile(r"(?P<number>[+-]?(?:nan|inf|[0-9]+(?:[.,][0-9]+)?))\s?%?(?=\s|$)")


@dataclass(frozen=True, slots=True)
class Column:
    """One column: the metric text as a row form would print it, its PMU and its right edge."""

    metric: str
    pmu: str | None
    edge: int = 0


def text_columns(header: str, offset: int = 0) -> tuple[Column, ...]:
    """Columns of a text header; ``offset`` is the length of what stood before ``header``."""
    found = [(match[0], offset + match.end()) for match in _TITLE.finditer(header)]
    return _columns(found)


def csv_columns(cells: Sequence[str]) -> tuple[Column, ...]:
    """Columns of a CSV header, from its cells without the aggregation columns."""
    return _columns([(cell.strip(), 0) for cell in cells])


def is_topdown(columns: Sequence[Column]) -> bool:
    """Whether a line can be nothing but the header of a top-down table."""
    return len(columns) > 1 and all(_TOPDOWN_METRIC.fullmatch(c.metric) for c in columns)


def text_cells(line: str, start: int) -> list[tuple[float | None, int]] | None:
    """(value, right edge) of every cell after ``start``; None if the line holds anything else."""
    cells = []
    position = start
    rest = line.removesuffix("<==").rstrip()
    for match in _CELL.finditer(rest, start):
        if rest[position : match.start()].strip():
            return None
        cells.append((finite(parse_plain(match["number"])), match.end()))
        position = match.end()
    return None if rest[position:].strip() else cells


def place_cells(
    columns: Sequence[Column], cells: Sequence[tuple[float | None, int]]
) -> list[float | None] | None:
    """One value a column; missing cells are None. None if there are too many cells."""
    if len(cells) > len(columns):
        return None
    if len(cells) == len(columns):
        return [value for value, _ in cells]
    values: list[float | None] = [None] * len(columns)
    first = 0
    for left, (value, edge) in zip(range(len(cells) - 1, -1, -1), cells, strict=True):
        free = range(first, len(columns) - left)
        best = min(free, key=lambda index: abs(columns[index].edge - edge))
        values[best] = value
        first = best + 1
    return values


def row_readings(
    columns: Sequence[Column], values: Sequence[float | None], template: Reading
) -> list[Reading]:
    """One reading a column; a missing cell stays missing with status ``not_counted``."""
    return [
        replace(
            template,
            pmu=column.pmu,
            metric_value=value,
            metric_unit=column.metric,
            status="ok" if value is not None else "not_counted",
        )
        for column, value in zip(columns, values, strict=True)
    ]


def warn_repeated(columns: Sequence[Column], line: int, warnings: Warnings) -> None:
    """Say that a hybrid CPU's columns come twice without their PMU."""
    twice = [column.metric for column in columns if column.pmu == "pmu-2"]
    if twice:
        warnings.add(
            line, f"column {twice[0]!r} comes twice; perf does not print which PMU is which"
        )


def _columns(found: Sequence[tuple[str, int]]) -> tuple[Column, ...]:
    names = Counter(name for name, _ in found)
    seen: dict[str, int] = {}
    columns = []
    for name, edge in found:
        seen[name] = seen.get(name, 0) + 1
        pmu = f"pmu-{seen[name]}" if names[name] > 1 else None
        metric = f"%  {name}" if name in _TOPDOWN_TITLES else name
        columns.append(Column(metric, pmu, edge))
    return tuple(columns)
