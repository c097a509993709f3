"""VTune's reports, CSV and text, under VTune's own column names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from moe_prof.collectors import vtune_csv
from moe_prof.collectors.vtune_csv import SummaryMetric, VtuneTable
from moe_prof.errors import InputError
from moe_prof.importing.base import Found, Kind, Labels, Part, RowMaker
from moe_prof.rows import Row, Status

NAME = "vtune"
_COLUMN_WORDS = ("CPU Time", "Hardware Event", "Clockticks", "Instructions Retired", "Wait Time",
                 "Spin Time", "Metric Value", "Module", "Overhead Time")  # fmt: skip
_KEY_WORDS = ("Function", "Thread", "Module", "Source Line", "Sync Object", "Process",
              "Hierarchy Level", "Source File", "Metric Name")  # fmt: skip
_SUMMARY = re.compile(
    r"\s*(?:Elapsed Time: [\d.,]+\s*s|Collection and Platform Info\s*$"
    r"|(?:vtune|amplxe(?:-cl)?): (?:Executing actions|Using result path|Collection|Generating))"
)
_UNIT_IN_TITLE = re.compile(r"\((?P<unit>s|ms|us|ns|%|GB/sec|MB/sec)\)$")
_SCALES = {"s": (1.0, "s"), "ms": (1e-3, "s"), "us": (1e-6, "s"), "ns": (1e-9, "s"),
           "%": (0.01, "1"), "GB/sec": (1e9, "bytes/s"), "MB/sec": (1e6, "bytes/s"),
           "GB/s": (1e9, "bytes/s")}  # fmt: skip


def read(part: Part, labels: Labels) -> Found:
    """Rows of a table and of a summary; raises InputError."""
    rows: list[Row] = []
    notes: tuple[str, ...] = ()
    failure: InputError | None = None
    text = part.text
    try:
        table = vtune_csv.parse_table(text)
        if "Metric Name" not in table.columns:
            rows += _table_rows(table, RowMaker(labels, NAME))
            notes = table.notes if table.rows else ("the report of VTune has no rows",)
    except InputError as error:
        failure = error
    if not rows and not notes:
        try:
            metrics = vtune_csv.parse_summary(text)
        except InputError as error:
            raise failure or error from error
        rows = [row for metric in metrics for row in _summary_row(metric, RowMaker(labels, NAME))]
    return Found(tuple(rows), notes)


def _table_rows(table: VtuneTable, maker: RowMaker) -> Iterator[Row]:
    values = [column for column in table.columns[1:] if _is_value(table, column)]
    flat = len(set(table.depths)) <= 1 and "Stack" not in table.columns[0]
    for column in values:
        found = [number for row in table.rows if (number := table.number(row, column)) is not None]
        unit = _unit(table, column)[1]
        if flat and found and unit == "s":
            scale = _unit(table, column)[0]
            yield maker.row(column, sum(found) * scale, unit, "sum over the report's rows")
    for number, row in enumerate(table.rows):
        thread = table.cell(row, "Thread") or None
        source = _source(table, row, values, number)
        for column in values:
            scale, unit = _unit(table, column)
            value = table.number(row, column)
            yield maker.row(
                column,
                None if value is None else value * scale,
                unit,
                source,
                scope="function",
                thread=thread,
                status=_status(value),
                missing="VTune leaves the cell blank",
            )


def _source(table: VtuneTable, row: Sequence[str], values: Sequence[str], number: int) -> str:
    module = table.cell(row, "Module")
    words = [f"{row[0]} [{module}]" if module and table.columns[0] != "Module" else row[0] or "?"]
    words += [
        cell
        for column, cell in zip(table.columns[1:], row[1:], strict=True)
        if column not in (*values, "Module", "Thread") and cell and cell != row[0]
    ]
    return "; ".join([*words, f"row {number + 1}"])


def _is_value(table: VtuneTable, column: str) -> bool:
    cells = [cell for row in table.rows if (cell := table.cell(row, column))]
    if not cells or column.startswith(("Start Address", "Source Line", "PID", "TID", "Module")):
        return False
    return all(vtune_csv.value(cell) is not None for cell in cells)


def _unit(table: VtuneTable, column: str) -> tuple[float, str]:
    """The factor to base units beyond what the cells say, and the unit's name."""
    titled = _UNIT_IN_TITLE.search(column)
    if titled:
        return _SCALES[titled["unit"]]
    units = {
        found[1]
        for row in table.rows
        if (found := vtune_csv.value(table.cell(row, column))) is not None
    } - {""}
    if len(units) == 1 and (unit := units.pop()) in _SCALES:
        return (1.0, "s") if unit in ("s", "ms", "us", "ns") else _SCALES[unit]
    first = column.partition(vtune_csv.SEPARATOR)[0]
    return (1.0, "s") if first.endswith("Time") and "Hardware" not in column else (1.0, "1")


def _summary_row(metric: SummaryMetric, maker: RowMaker) -> Iterator[Row]:
    if metric.value is None:
        return
    scale, unit = _SCALES.get(metric.unit, (1.0, metric.unit or "1"))
    if unit == "s":
        scale = 1.0  # already in seconds
    name = vtune_csv.SEPARATOR.join(metric.path)
    yield maker.row(
        name, metric.value * scale, unit, f"summary: {metric.text}", status=_status(metric.value)
    )


def _status(value: float | None) -> Status:
    return "out_of_bounds" if value is not None and value < 0 else "ok"


def _starts(line: str) -> bool:
    if _SUMMARY.match(line):
        return True
    if not any(word in line for word in _COLUMN_WORDS):
        return False
    for delimiter in ("\t", ";", ",", "  "):
        names = [name.strip().strip('"') for name in line.split(delimiter) if name.strip()]
        if len(names) > 1 and any(name in _KEY_WORDS for name in names[:2]):
            return True
    return line.startswith(("Function Stack", "Function / Call Stack", "Hierarchy Level"))


KIND = Kind(name=NAME, title="VTune reports (CSV and text)", read=read, starts=_starts)
