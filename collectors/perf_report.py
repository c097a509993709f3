"""Reading ``perf report --stdio``: a pure parser, text in, sections out.

A section is one event: its sample count, its event count, and a table. The dotted line under the
titles gives each column's place; a name may hold blanks, colons and commas. Lines of call graphs
stand between the rows; those with a percentage become nodes, each with the way to it.

Source: perf-report(1); outputs of perf 6.1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from moe_prof.collectors.perf_numbers import parse_plain
from moe_prof.collectors.perf_reading import Warnings
from moe_prof.errors import InputError

NO_SAMPLES = re.compile(r"\s*The \S* ?(?:data|file) has no samples!", re.IGNORECASE)
SAMPLES = re.compile(
    r"#\s*Samples:\s*(?P<number>[0-9][0-9.,]*)\s*(?P<unit>[KMG]?)\s+of events?\s+"
    r"(?P<quote>[`'\"]?)(?P<event>.*?)(?P=quote)(?:,\s*(?:Thread|DSO|UID|Socket|[0-9]+ Hz).*)?$"
)
OLD_SAMPLES = re.compile(
    r"#\s*Events:\s*(?P<number>[0-9][0-9.,]*)\s*(?P<unit>[KMG]?)\s+(?P<event>\S.*?)\s*$"
)
EVENT_COUNT = re.compile(r"#\s*Event count \(approx\.\):\s*(?P<number>[0-9]+)")
LOST = re.compile(r"#\s*Total Lost Samples:\s*(?P<number>[0-9]+)")
PREAMBLE = re.compile(r"# To display the perf\.data header info")
ROW = re.compile(r"\s*(?:-?[0-9]+[.,][0-9]+%|-?nan%)(?=\s|[,;|:]|$)")
FULL_ROW = re.compile(r"\s*[0-9]+\.[0-9]+%\s.*\[[.kgHu]\]\s+\S")

_COMMAND = re.compile(r"#\s*cmdline\s*:\s*(?P<command>.+)")
_DOTS = re.compile(r"#(?:\s+\.{3,})+\s*$")
_TITLES = re.compile(r"#\s*(?:[A-Z][\w/:.\[\]]*(?: [\w/:.\[\]]+)*)(?:(?:\s{2,}|[,;|]).*)?$")
_VALUE_TITLES = {"overhead", "children", "self", "baseline", "delta", "delta abs", "sys", "usr",
                 "ratio", "weighted diff"}  # fmt: skip
_COUNT_TITLES = {"samples", "period"}
_LABELS = ("Command", "Shared Object", "Symbol")
_GRAPH = re.compile(r"\s*(?:\||--|-{2,}|\.{3}$)")
_FOLDED = re.compile(r"(?P<number>[0-9]+[.,][0-9]+)% (?P<path>\S.*)")
_NODE = re.compile(r"[\s|]*?-{1,3}(?P<number>[0-9]+[.,][0-9]+)%--\s?(?P<name>\S.*)")
_FACTORS = {"": 1, "K": 1000, "M": 1000_000, "G": 1000_000_000}
_PERCENT = re.compile(r"(?P<number>-?(?:[0-9]+[.,][0-9]+|nan))%")
_TAGGED = re.compile(r"\[(?P<mode>.)\]\s+(?P<name>\S.*)")


@dataclass(frozen=True, slots=True)
class ReportRow:
    """One row: percentages and counts by column title, labels by column title.

    ``values`` are in percent for titles with a percentage, else counts.
    """

    percents: Mapping[str, float]
    counts: Mapping[str, float]
    labels: Mapping[str, str]
    line: int

    @property
    def symbol(self) -> str:
        """The function without perf's mark of the privilege level, "" without such a column."""
        text = self.labels.get("Symbol", "")
        match = _TAGGED.fullmatch(text)
        return match["name"] if match else text

    @property
    def mode(self) -> str:
        """``.`` user, ``k`` kernel, ``H`` hypervisor..., "" where perf does not say."""
        match = _TAGGED.fullmatch(self.labels.get("Symbol", ""))
        return match["mode"] if match else ""


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A branch of a call graph: its percentage and the way to it from the row's own symbol."""

    percent: float
    path: tuple[str, ...]
    line: int


@dataclass(slots=True)
class ReportSection:
    """One event's table. ``samples`` is None where the text does not say; rounded beyond 1000."""

    event: str = ""
    samples: int | None = None
    rounded: bool = False
    event_count: int | None = None
    lost: int | None = None
    titles: tuple[str, ...] = ()
    rows: list[ReportRow] = field(default_factory=list)
    nodes: list[GraphNode] = field(default_factory=list)
    line: int = 0


@dataclass(frozen=True, slots=True)
class PerfReport:
    """All sections, the recorded command if the header was shown, and remarks about lines."""

    sections: tuple[ReportSection, ...]
    command: str
    no_samples: bool
    warnings: tuple[str, ...]


@dataclass(slots=True)
class _Columns:
    titles: tuple[str, ...] = ()
    spans: tuple[tuple[int, int], ...] = ()
    separator: str = ""


class _State:
    def __init__(self) -> None:
        self.sections: list[ReportSection] = []
        self.columns = _Columns()
        self.titles_line = ""
        self.command = ""
        self.lost: int | None = None
        self.no_samples = False
        self.warnings = Warnings()
        self.graph_open = False
        self.branch: list[tuple[int, str]] = []  # columns and names of the branches around a line

    @property
    def section(self) -> ReportSection:
        if not self.sections:
            self.sections.append(ReportSection())
        return self.sections[-1]


def parse(text: str) -> PerfReport:
    """Read a whole output.

    Raises:
        InputError: the text is no output of perf report.
    """
    state = _State()
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.rstrip()
        if line.startswith("#"):
            _read_comment(line, number, state)
        elif NO_SAMPLES.match(line):
            state.no_samples = True
        elif state.columns.spans and (chain := _FOLDED.fullmatch(line)):
            _read_chain(chain, number, state)
        elif ROW.match(line):
            _read_row(line, number, state)
        elif node := _NODE.fullmatch(line):
            _read_node(node, number, state)
        elif line.strip() and not _is_noise(line, state):
            state.warnings.add(number, f"not a row of perf report: {line.strip()[:60]!r}")
    if not state.sections and not state.no_samples and state.lost is None:
        raise InputError("this is no output of perf report --stdio: it has no table of samples")
    return PerfReport(
        tuple(state.sections), state.command, state.no_samples, state.warnings.result()
    )


def _read_comment(line: str, number: int, state: _State) -> None:
    samples = SAMPLES.match(line) or OLD_SAMPLES.match(line)
    count, lost = EVENT_COUNT.match(line), LOST.match(line)
    if samples:
        state.sections.append(
            ReportSection(
                event=samples["event"].strip(),
                samples=round(parse_plain(samples["number"]) * _FACTORS[samples["unit"]]),
                rounded=bool(samples["unit"]),
                lost=state.lost,
                line=number,
            )
        )
        state.columns = _Columns()
    elif count:
        state.section.event_count = int(count["number"])
    elif lost:
        state.lost = int(lost["number"])
    elif _DOTS.match(line):
        _place_columns(line, state)
    elif command := _COMMAND.match(line):
        state.command = command["command"].strip()
    elif _TITLES.match(line):
        state.titles_line = line
        _separated_titles(line, state)
    state.graph_open = False


def _place_columns(dots: str, state: _State) -> None:
    spans = [(match.start(), match.end()) for match in re.finditer(r"\.+", dots)]
    ends = [*(start for start, _ in spans[1:]), max(len(state.titles_line), spans[-1][1]) + 1]
    titles = tuple(
        state.titles_line[start:end].strip() or f"column {n}"
        for n, ((start, _), end) in enumerate(zip(spans, ends, strict=True), 1)
    )
    state.columns = _Columns(titles, tuple(spans))
    state.section.titles = titles


def _separated_titles(line: str, state: _State) -> None:
    """Titles of a report with ``--field-separator``: there is no dotted line."""
    body = line.lstrip("# ")
    for separator in (";", "|", "\t", ",", ":"):
        titles = tuple(part.strip() for part in body.split(separator))
        if len(titles) > 1 and titles[0].lower() in _VALUE_TITLES:
            state.columns = _Columns(titles, (), separator)
            state.section.titles = titles
            return


def _read_row(line: str, number: int, state: _State) -> None:
    columns = state.columns
    if columns.separator and columns.separator in line:
        count = len(columns.titles)
        cells = [cell.strip() for cell in line.split(columns.separator, count - 1)]
        pairs = list(zip(columns.titles, cells, strict=False))
    elif columns.spans and _is_aligned(line, columns.spans):
        ends = [*(end for _, end in columns.spans[:-1]), len(line)]
        starts = [0, *(start for start, _ in columns.spans[1:])]
        cells = [line[start:end].strip() for start, end in zip(starts, ends, strict=True)]
        pairs = list(zip(columns.titles, cells, strict=True))
    else:
        titles = columns.titles or tuple(
            re.split(r"\s{2,}", state.titles_line.lstrip("# ").rstrip())
        )
        pairs = _guessed(line, titles)
    row = _row(pairs, state.section.event, number)
    if not any(row.labels.values()):
        state.warnings.add(number, "a row without a name: it was cut off")
    state.section.rows.append(row)
    state.graph_open = True
    state.branch = []


def _read_chain(chain: re.Match[str], number: int, state: _State) -> None:
    """A call chain of ``-g folded``."""
    path = tuple(name.strip() for name in chain["path"].split(";"))
    state.section.nodes.append(GraphNode(parse_plain(chain["number"]), path, number))


def _read_node(node: re.Match[str], number: int, state: _State) -> None:
    column, name = node.start("number"), node["name"].strip()
    while state.branch and state.branch[-1][0] >= column:
        state.branch.pop()
    state.branch.append((column, name))
    rows = state.section.rows
    owner = (rows[-1].symbol,) if rows and rows[-1].symbol else ()
    path = (*owner, *(name for _, name in state.branch))
    state.section.nodes.append(GraphNode(parse_plain(node["number"]), path, number))


def _row(pairs: Sequence[tuple[str, str]], events: str, number: int) -> ReportRow:
    percents: dict[str, float] = {}
    counts: dict[str, float] = {}
    labels: dict[str, str] = {}
    for title, cell in pairs:
        found = [parse_plain(match["number"]) for match in _PERCENT.finditer(cell)]
        rest = _PERCENT.sub("", cell).strip()
        if found and not rest:
            names = [name.strip() for name in events.split(",")]
            if len(found) == 1:
                percents[title] = found[0]
            else:  # a group of events: one percentage each
                several = names if len(names) == len(found) else [str(n) for n in range(len(found))]
                percents |= {
                    f"{title} {name}": value for name, value in zip(several, found, strict=True)
                }
        elif title.lower() in _COUNT_TITLES and re.fullmatch(r"[0-9]+", cell):
            counts[title] = float(cell)
        elif title.lower() not in _VALUE_TITLES:
            labels[title] = cell
    return ReportRow(percents, counts, labels, number)


def _is_aligned(line: str, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether no cell crosses the place where a column begins."""
    return all(start >= len(line) or line[start - 1].isspace() for start, _ in spans[1:]) and line[
        : spans[0][1]
    ].strip().endswith("%")


def _guessed(line: str, titles: Sequence[str]) -> list[tuple[str, str]]:
    """Cells of a row that stands without its titles, or is not aligned with them."""
    cells = re.split(r"\s{2,}|(?<=%)\s+|\t", line.strip())
    percents = [cell for cell in cells if _PERCENT.fullmatch(cell)]
    rest = cells[len(percents) :]
    tagged = next((n for n, cell in enumerate(rest) if _TAGGED.match(cell)), None)
    if tagged is not None:
        rest = [*rest[:tagged], "  ".join(rest[tagged:])]
    if titles and len(titles) == len(percents) + len(rest):
        return list(zip(titles, [*percents, *rest], strict=True))
    heads = ("Children", "Self") if len(percents) == 2 else ("Overhead",)
    names = _LABELS[-len(rest) :] if len(rest) <= len(_LABELS) else ()
    if rest and not names:
        names = (*_LABELS[:2], "Symbol")
        rest = [rest[0], rest[1], "  ".join(rest[2:])]
    return [
        *zip(heads, percents, strict=False),
        *zip(names, rest, strict=False),
    ]


def _is_noise(line: str, state: _State) -> bool:
    """Lines of call graphs and of perf's own talk."""
    if state.graph_open and line[:1].isspace():
        return True
    return bool(
        _GRAPH.match(line)
        or re.match(r"\s*(?:Error:|\(?(?:Cannot|no entry|For a higher|Warning|WARNING))", line)
        or line.startswith(("[ perf", "Failed to", "Kernel address", "Processed", "Check IO"))
    )
