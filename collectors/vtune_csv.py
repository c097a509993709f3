"""Reading VTune's reports: CSV in three delimiters, and text; text in, tables and metrics out.

A report of functions nests its columns by name: ``CPU Time`` contains ``CPU Time:Spin Time``, which
contains ``CPU Time:Spin Time:Lock Contention``. A parent holds the sum of its children, so they are
never added. Its difficulties: the delimiter is chosen by the user; templates hold commas; call
stacks are indented within their quotes; cells are blank; progress lines precede the values, even on
the same line; and a report of nothing is empty.

Source: Intel VTune Profiler User Guide, "report" action, -format csv, -csv-delimiter.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from moe_prof.errors import InputError

SEPARATOR = ":"  # between the levels of a column's name

_DELIMITERS = ("\t", ";", ",")
_PROGRESS = re.compile(
    r"(?:vtune|amplxe(?:-cl)?): (?:Executing actions\s+\d+ %|Using result path|Warning|Error"
    r"|Collection |Peak bandwidth|Loading|Processing)"
)
_PROGRESS_WORDS = re.compile(
    r"(?:vtune|amplxe(?:-cl)?): Executing actions\s+\d+ %\s*"
    r"(?:(?:Generating a report|Finalizing [\w ]*|Loading [\w ]*|done)\s*)*"
)
_INDENTED_QUOTE = re.compile(r'^(?P<indent> +)"(?=[^"]*"[,;\t])')  # csv wants it inside
_VALUE = re.compile(
    r"(?P<number>[+-]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(?P<unit>%|[A-Za-z/]*)"
    r"(?: of .*)?"
)
_SCALES = {"ns": (1e-9, "s"), "us": (1e-6, "s"), "ms": (1e-3, "s"), "s": (1.0, "s")}
_KEYS = ("Function", "Thread", "Module", "Source Line", "Function Stack", "Sync Object", "Process",
         "Source File", "Function / Call Stack", "Hierarchy Level", "Metric Name")  # fmt: skip
_SUMMARY_LINE = re.compile(r"(?P<indent>\s*)(?P<name>[A-Z][^:|]*?)\s*:\s+(?P<value>\S.*)")
_RULE = re.compile(r"-+(?: +-+)*\s*")


@dataclass(frozen=True, slots=True)
class VtuneTable:
    """One report as a table.

    Attributes:
        columns: names as VTune writes them; levels are separated by a colon.
        rows: cells as text, without surrounding blanks; "" where VTune left them blank.
        depths: blanks in front of each row's first cell: the level in a call stack.
        notes: lines that could not be read, with their numbers.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    depths: tuple[int, ...]
    notes: tuple[str, ...] = ()

    def cell(self, row: Sequence[str], column: str) -> str:
        """The text of a cell, "" when there is no such column."""
        return row[self.columns.index(column)] if column in self.columns else ""

    def number(self, row: Sequence[str], column: str) -> float | None:
        """The value of a cell in base units; None when blank or absent."""
        found = value(self.cell(row, column))
        return None if found is None else found[0]

    def children(self, column: str) -> tuple[str, ...]:
        """Columns one level below; their values are part of the column's own."""
        parent = _plain(column)
        return tuple(
            name for name in self.columns if _plain(name).rpartition(SEPARATOR)[0] == parent
        )

    def find(self, *path: str) -> str | None:
        """The column of that path of levels, whatever unit VTune adds to its name."""
        wanted = SEPARATOR.join(path)
        return next((name for name in self.columns if _plain(name) == wanted), None)


@dataclass(frozen=True, slots=True)
class SummaryMetric:
    """One line of a summary: the path of names from the top, its text and its value.

    ``value`` is in base units (s, fractions of 1 as VTune's percent / 100 stay in percent); None
    for texts such as the command line.
    """

    path: tuple[str, ...]
    text: str
    value: float | None
    unit: str


def parse_table(text: str) -> VtuneTable:
    """Read a report of rows, CSV or text.

    Raises:
        InputError: there is no header line of a report.
    """
    lines = _lines(text)
    for index, (_, line) in enumerate(lines):
        if _RULE.fullmatch(line) and index and "-" in line:
            return _fixed_width(lines, index)
        delimiter = _delimiter(line)
        if delimiter is not None:
            return _delimited(lines[index:], delimiter)
    raise InputError(
        "this is no report of VTune: no line names its columns; make one with 'vtune -report "
        "hotspots -format csv -csv-delimiter comma'"
    )


def parse_summary(text: str) -> tuple[SummaryMetric, ...]:
    """Read ``vtune -report summary``, as CSV or as text.

    Raises:
        InputError: not one metric is found.
    """
    lines = _lines(text)
    for index, (_, line) in enumerate(lines):
        delimiter = _delimiter(line)
        if delimiter is not None and "Metric Name" in line:
            found = _summary_rows(_delimited(lines[index:], delimiter))
            break
    else:
        found = _summary_lines([line for _, line in lines])
    if not found:
        raise InputError(
            "this is no summary of VTune: it has no 'Elapsed Time: ...' and no other metric; make "
            "one with 'vtune -report summary'"
        )
    return found


def value(text: str) -> tuple[float, str] | None:
    """A cell's number in base units with its unit; None for blank cells and other texts."""
    words = text.strip()
    match = _VALUE.fullmatch(words)
    if match is None:
        return None
    number = float(match["number"].replace(",", ""))
    scale, unit = _SCALES.get(match["unit"], (1.0, match["unit"]))
    return number * scale, unit


def by_path(metrics: Sequence[SummaryMetric]) -> Mapping[tuple[str, ...], SummaryMetric]:
    """Metrics by their path, the first of equal ones."""
    found: dict[tuple[str, ...], SummaryMetric] = {}
    for metric in metrics:
        found.setdefault(metric.path, metric)
    return found


def _lines(text: str) -> list[tuple[int, str]]:
    """Lines with their numbers, without what VTune says about its own progress."""
    found = []
    for number, raw in enumerate(text.lstrip("\ufeff").split("\n"), 1):
        for part in raw.split("\r"):
            line = _PROGRESS_WORDS.sub("", part, count=1)
            line = _INDENTED_QUOTE.sub(r'"\g<indent>', line)
            if line.strip() and not _PROGRESS.match(line):
                found.append((number, line.rstrip(" ")))  # a tab at the end ends an empty cell
    return found


def _delimiter(line: str) -> str | None:
    """The delimiter of a header line, None when this is none."""
    for delimiter in _DELIMITERS:
        names = [_plain(name.strip().strip('"')) for name in line.split(delimiter)]
        if len(names) > 1 and (names[0] in _KEYS or any(name in _KEYS for name in names)):
            return delimiter
    return None


def _plain(column: str) -> str:
    """A column's name without the unit in parentheses that newer versions add."""
    return re.sub(r"\s*\([^()]*\)$", "", column)


def _delimited(lines: Sequence[tuple[int, str]], delimiter: str) -> VtuneTable:
    reader = csv.reader(io.StringIO("\n".join(line for _, line in lines)), delimiter=delimiter)
    try:
        table = [(reader.line_num, cells) for cells in reader]
    except csv.Error as error:
        number = lines[min(reader.line_num, len(lines)) - 1][0]
        raise InputError(f"VTune's report is damaged at line {number}: {error}") from error
    columns = tuple(name.strip() for name in table[0][1])
    rows, depths, notes = [], [], []
    for last, row in table[1:]:
        number = lines[min(last, len(lines)) - 1][0]
        extra = row[len(columns) :]
        cells = row if any(cell.strip() for cell in extra) else row[: len(columns)]
        if len(cells) != len(columns):
            notes.append(f"line {number}: {len(cells)} cells for {len(columns)} columns")
            continue
        rows.append(tuple(cell.strip() for cell in cells))
        depths.append(len(cells[0]) - len(cells[0].lstrip()))
    return VtuneTable(columns, tuple(rows), tuple(depths), tuple(notes))


def _fixed_width(lines: Sequence[tuple[int, str]], rule: int) -> VtuneTable:
    """A text report: a line of dashes says where the columns are."""
    spans = [match.span() for match in re.finditer(r"-+", lines[rule][1])]
    begins = [begin for begin, _ in spans]
    cut = [slice(begin, end) for begin, end in zip(begins, [*begins[1:], None], strict=True)]
    columns = tuple(lines[rule - 1][1][part].strip() for part in cut)
    rows, depths = [], []
    for _, line in lines[rule + 1 :]:
        cells = [line[part] for part in cut]
        rows.append(tuple(cell.strip() for cell in cells))
        depths.append(len(cells[0]) - len(cells[0].lstrip()))
    return VtuneTable(columns, tuple(rows), tuple(depths))


def _summary_rows(table: VtuneTable) -> tuple[SummaryMetric, ...]:
    path: list[str] = []
    found = []
    for row in table.rows:
        name, text = table.cell(row, "Metric Name"), table.cell(row, "Metric Value")
        level = value(table.cell(row, "Hierarchy Level"))
        depth = int(min(max(level[0], 0), len(path))) if level is not None else 0
        path = [*path[:depth], name]
        found.append(_metric(tuple(path), text))
    return tuple(found)


def _summary_lines(lines: Sequence[str]) -> tuple[SummaryMetric, ...]:
    path: list[tuple[int, str]] = []
    found = []
    for line in lines:
        match = _SUMMARY_LINE.fullmatch(line)
        if match is None or line.lstrip().startswith("|"):
            continue
        depth = len(match["indent"])
        path = [step for step in path if step[0] < depth] + [(depth, match["name"])]
        found.append(_metric(tuple(name for _, name in path), match["value"].strip()))
    return tuple(found)


def _metric(path: tuple[str, ...], text: str) -> SummaryMetric:
    found = value(text)
    number, unit = found if found is not None else (None, "")
    return SummaryMetric(path, text, number, unit)
