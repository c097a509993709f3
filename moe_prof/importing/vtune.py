"""VTune's reports, CSV and text, under VTune's own column names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from moe_prof.collectors import vtune_csv
from moe_prof.collectors.perf_units import to_base
from moe_prof.collectors.vtune_csv import SummaryMetric, VtuneTable
from moe_prof.errors import InputError
from moe_prof.importing.base import Found, Kind, Labels, Part, RowMaker
from moe_prof.rows import Row, Status

NAME = "vtune"
_COLUMN_WORDS = ("CPU Time", "Hardware Event", "Clockticks", "Instructions Retired", "Wait Time",
                 "Spin Time", "Metric Value", "Module", "Overhead Time")  # fmt: skip
_KEY_WORDS = ("Function", "Thread", "Module", "Source Line", "Sync Object", "Process",
              "Hierarchy Level", "Source File", "Metric Name")  # fmt: skip
_SUM = "sum over the report's rows"
_HEADS = ("Elapsed Time", "Collection and Platform Info")  # under which all else is shown
_SUMMARY = re.compile(
    r"\s*(?:Elapsed Time: [\d.,]+\s*s|Collection and Platform Info\s*$"
    r"|(?:vtune|amplxe(?:-cl)?): (?:Executing actions|Using result path|Collection|Generating))"
)
_RULE = re.compile(r"-{2,}(?: +-{2,})+\s*")
_METRIC = re.compile(r"[A-Z][\w ]+: \S|Collection and Platform Info")
_UNIT_IN_TITLE = re.compile(r"\((?P<unit>s|ms|us|ns|%|GB/sec|MB/sec)\)$")
_SCALES = {"s": (1.0, "s"), "ms": (1e-3, "s"), "us": (1e-6, "s"), "ns": (1e-9, "s"),
           "%": (0.01, "1"), "GB/sec": (1e9, "bytes/s"), "MB/sec": (1e6, "bytes/s"),
           "GB/s": (1e9, "bytes/s")}  # fmt: skip


def read(part: Part, labels: Labels) -> Found:
    """Rows of tables and of a summary; raises InputError."""
    maker = RowMaker(labels, NAME)
    rows: list[Row] = []
    notes: tuple[str, ...] = ()
    failure: InputError | None = None
    table_text, summary_text = _split(part.lines)
    try:
        table = vtune_csv.parse_table(table_text)
        if "Metric Name" not in table.columns:
            rows += _table_rows(table, maker)
            notes = table.notes if table.rows else ("the report of VTune has no rows",)
    except InputError as error:
        failure = error
    if summary_text or not (rows or notes):
        try:
            metrics = vtune_csv.parse_summary(summary_text or table_text)
            told = [row for metric in metrics for row in _summary_row(metric, maker)]
            names = {row.metric for row in told}  # the summary's totals, not those of its top rows
            rows = [*told, *(row for row in rows if row.source != _SUM or row.metric not in names)]
        except InputError as error:
            if not rows and not notes:
                raise failure or error from error
    return Found(tuple(rows), notes)


def _split(lines: Sequence[str]) -> tuple[str, str]:
    """The table whose columns a line of dashes marks, and the text around it, "" if there is none.

    Lines of the other part are empty, so that numbers stay true.
    """
    rule = next((n for n, line in enumerate(lines) if n and _RULE.fullmatch(line)), None)
    if rule is None or not any(word in lines[rule - 1] for word in _COLUMN_WORDS):
        return "\n".join(lines), ""
    end = next(
        (n for n in range(rule + 1, len(lines)) if not lines[n].strip() or _METRIC.match(lines[n])),
        len(lines),
    )
    inside = range(rule - 1, end)
    table = [line if n in inside else "" for n, line in enumerate(lines)]
    rest = [line if n not in inside else "" for n, line in enumerate(lines)]
    return "\n".join(table), "\n".join(rest) if any(map(str.strip, rest)) else ""


def _table_rows(table: VtuneTable, maker: RowMaker) -> Iterator[Row]:
    values = [column for column in table.columns[1:] if _is_value(table, column)]
    flat = len(set(table.depths)) <= 1 and "Stack" not in table.columns[0]
    for column in values:
        found = [number for row in table.rows if (number := table.number(row, column)) is not None]
        unit = _unit(table, column)[1]
        if flat and found and unit == "s":
            scale = _unit(table, column)[0]
            yield maker.row(column, sum(found) * scale, unit, _SUM)
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
                scope="process" if table.columns[0] == "Thread" else "function",
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
    path = metric.path[1:] if len(metric.path) > 1 and metric.path[0] in _HEADS else metric.path
    slots = "Pipeline Slots" in metric.text
    unit = metric.unit or ("s" if path[-1].endswith("Time") else "")
    value, base = (metric.value, "s") if unit == "s" else to_base(metric.value, unit)
    yield maker.row(
        vtune_csv.SEPARATOR.join(path), value, "slots" if slots else base,
        f"summary: {metric.text}", status=_status(metric.value),
    )  # fmt: skip


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
