"""The text form of ``perf stat``: a pure parser, text in, report out.

A report starts at `` Performance counter stats for``, or, with ``-I``, at the line
``#           time``; text before it is the program's and is skipped. One line is taken apart by
:mod:`moe_prof.collectors.perf_text_line`. Further metrics of the same event follow on lines that
begin with ``#``; rows of a metric table are read by :mod:`moe_prof.collectors.perf_stat_table`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from moe_prof.collectors.perf_numbers import parse_grouped, parse_plain
from moe_prof.collectors.perf_reading import (
    Block,
    Reading,
    Report,
    Warnings,
    clock_unit,
    count_status,
    finite,
    take_apart,
)
from moe_prof.collectors.perf_scope import Place
from moe_prof.collectors.perf_stat_table import (
    Column,
    is_topdown,
    place_cells,
    row_readings,
    text_cells,
    text_columns,
    warn_repeated,
)
from moe_prof.collectors.perf_text_line import (
    COUNT,
    GROUP,
    LONE_COUNT,
    Marks,
    read_metric,
    read_name,
    read_place,
    strip_marks,
    unwrapped,
)

HEADER = re.compile(
    r"\s*Performance counter stats for\s+(?:process id |thread id )?"
    r"['\u2018](?P<command>.*?)(?P<end>['\u2019])?\s*(?:\((?P<runs>[0-9]+) runs\))?\s*:?\s*$"
)
_HEADER_END = re.compile(r"(?P<command>.*)['\u2019]\s*(?:\((?P<runs>[0-9]+) runs\))?\s*:\s*$")
INTERVAL_HEADER = re.compile(r"#\s+time(?=\s{2}|\s(?:CPU|core|die|socket|node|comm)|\s*$)")
_FOOTER = re.compile(
    r"\s*(?P<value>[0-9][0-9.,]*)\s*(?:\+-\s*(?P<error>[0-9.,]+|-?nan)\s*)?"
    r"seconds\s+(?P<what>time elapsed|elapsed|user|sys)\b"
)
_TABLE_NOISE = re.compile(
    r"\s*#\s+(?:Table of individual|Final result)|\s+[0-9.,]+\s+\([+-][0-9.,]+\)\s+#+\s*$"
)
_NOTICES = (
    "Some events weren't counted", "echo ", "perf stat", "The events in group usually",
    "started on",
)  # fmt: skip
_NAMED_EVENT = re.compile(r".*[-_/:.#]|cycles$|instructions$|branches$|faults$|slots$")
_TITLES = re.compile(
    r"%|percent of|retiring|bound|speculat|per cycle|of all|cycles idle|GHz|tma_|IPC|CPI"
    r"|^ {8,}[A-Za-z][\w ]*$", re.IGNORECASE
)  # fmt: skip


@dataclass(slots=True)
class _State:
    readings: list[Reading] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    warnings: Warnings = field(default_factory=Warnings)
    inside: bool = False
    headless: bool = False
    footer: bool = False
    columns: tuple[Column, ...] = ()
    table: bool = False
    summary: bool = False
    rows: int = 0
    last_time_s: float = 0.0
    unmarked: int = 0  # first reading whose marks may still follow on a later line
    header_open: bool = False
    group: str = ""
    group_pmu: str | None = None
    pending: tuple[str, int] | None = None

    def open(self, block: Block) -> None:
        self.blocks.append(block)
        self.inside, self.footer, self.table, self.summary = True, False, False, False
        self.rows, self.last_time_s = 0, 0.0
        self.columns, self.group, self.group_pmu = (), "", None

    def open_summary(self, block: Block) -> None:
        """The totals that ``--summary`` prints after the intervals of the same run."""
        self.blocks.pop()
        self.open(block)
        self.summary = True

    def start(self, place: Place, number: int) -> Reading:
        """An empty reading at a place; a clock that jumps back begins a new run."""
        if place.time_s is not None:
            if place.time_s < self.last_time_s:
                columns, table = self.columns, self.table
                self.open(Block())
                self.columns, self.table = columns, table
            self.last_time_s = place.time_s
        self.rows += 1
        return Reading(
            event="",
            time_s=place.time_s,
            cpu=place.cpu,
            scope=place.scope,
            cpus=place.cpus,
            thread=place.thread,
            summary=self.summary,
            block=len(self.blocks) - 1,
            line=number,
        )

    def update(self, **changes: float | None) -> None:
        self.blocks[-1] = replace(self.blocks[-1], **changes)  # type: ignore[arg-type]


def parse_text(text: str) -> Report:
    """Read the text form; the text must be clean (see :func:`perf_reading.clean`)."""
    state = _State()
    lines = unwrapped(text.split("\n"))
    if not any(HEADER.match(line) or INTERVAL_HEADER.match(line) for line in lines):
        state.open(Block())
        state.headless = True
    for number, line in enumerate(lines, 1):
        _read_line(line.rstrip(), number, state)
    if state.pending is not None:
        state.warnings.add(state.pending[1], "a count without an event's name")
    return Report("text", tuple(state.readings), tuple(state.blocks), state.warnings.result())


def _read_line(line: str, number: int, state: _State) -> None:
    header = HEADER.match(line)
    try:
        if header:
            _open_block(header, state)
        elif INTERVAL_HEADER.match(line):
            _open_intervals(line, number, state)
        elif state.inside and line.strip():
            _read_inside(line, number, state)
    except ValueError as error:
        state.warnings.add(number, str(error))


def _open_block(header: re.Match[str], state: _State) -> None:
    block = Block(command=header["command"], runs=int(header["runs"] or 1))
    after_intervals = state.blocks and state.last_time_s > 0 and not state.footer
    (state.open_summary if after_intervals else state.open)(block)
    state.header_open = header["end"] is None


def _read_inside(line: str, number: int, state: _State) -> None:
    """A line between a header and the end of its report."""
    if _read_footer(line, state) or (state.header_open and _read_header_end(line, state)):
        return
    if state.footer and not state.headless:
        state.inside = False
        return
    if _TABLE_NOISE.match(line) or any(word in line for word in _NOTICES):
        return
    if not _read_row(line, number, state) and not state.headless:
        state.warnings.add(number, f"not a row of perf stat: {line.strip()[:60]!r}")


def _read_header_end(line: str, state: _State) -> bool:
    """The rest of a command that was wrapped inside the header."""
    state.header_open = False
    end = _HEADER_END.match(line)
    if end:
        block = state.blocks[-1]
        runs = int(end["runs"]) if end["runs"] else block.runs
        command = f"{block.command} {end['command'].strip()}"
        state.blocks[-1] = replace(block, command=command, runs=runs)
    return bool(end)


def _open_intervals(line: str, number: int, state: _State) -> None:
    if not (state.inside and state.blocks and not state.blocks[-1].command):
        state.open(Block())
    rest = line[INTERVAL_HEADER.match(line).end() :]  # type: ignore[union-attr]
    rest = re.sub(r"^\s+(?:CPU|(?:core|die|socket|node)\s+cpus|comm-pid)(?=\s|$)",
                  lambda match: " " * len(match[0]), rest)  # fmt: skip
    if re.match(r"\s*counts\s+unit\s+events", rest):
        return
    state.columns = text_columns(rest, len(line) - len(rest))
    state.table = True
    warn_repeated(state.columns, number, state.warnings)


def _read_footer(line: str, state: _State) -> bool:
    footer = _FOOTER.match(line)
    if not footer:
        return False
    value = finite(parse_plain(footer["value"]))
    if footer["what"] == "user":
        state.update(user_s=value)
    elif footer["what"] == "sys":
        state.update(sys_s=value)
    else:
        error = finite(parse_plain(footer["error"])) if footer["error"] else None
        state.update(elapsed_s=value, elapsed_error_s=error)
    state.footer = True
    return True


def _read_row(line: str, number: int, state: _State) -> bool:
    place, start = read_place(line)
    rest = line[start:]
    count = COUNT.match(rest)
    lone = LONE_COUNT.fullmatch(rest)
    if state.table and _read_cells(line, start, number, (place, state)):
        understood = True
    elif rest.lstrip().startswith("#"):
        understood = _read_metrics_only(rest, number, place, state)
    elif count:
        understood = _read_count(rest, count, number, (place, state))
    elif state.pending is not None:
        understood = _read_wrapped(rest, number, place, state)
    elif lone and not state.headless:
        state.pending = (lone["value"], number)
        understood = True
    else:
        understood = _read_title(line, start, number, (place, state))
    return understood


def _read_title(line: str, start: int, number: int, context: tuple[Place, _State]) -> bool:
    """The name of a metric group with its first metric, or the header of a metric table."""
    place, state = context
    titles = line[start:]
    head, _, tail = titles.partition("#")
    group = GROUP.fullmatch(head)
    if group and tail:
        state.group, state.group_pmu = group["group"], group["pmu"]
        state.unmarked = len(state.readings)
        return _read_metrics_only(f"#{tail}", number, place, state)
    if state.rows or state.table or not _TITLES.search(titles):
        return False
    columns = text_columns(titles, start)
    if state.headless and not is_topdown(columns):
        return False
    state.columns = columns
    state.table = True
    warn_repeated(state.columns, number, state.warnings)
    return True


def _read_cells(line: str, start: int, number: int, context: tuple[Place, _State]) -> bool:
    place, state = context
    if place.scope and place.cpus is None:
        cpus = re.compile(r"\s+([0-9]+)(?=\s)").match(line, start)
        if cpus:
            place, start = replace(place, cpus=int(cpus[1])), cpus.end()
    cells = text_cells(line, start)
    if cells is None:
        return False
    if not state.columns or (not cells and not place.scope and place.time_s is None):
        return True  # nothing could be counted: only the times are printed
    values = place_cells(state.columns, cells)
    if values is None:
        state.warnings.add(number, f"{len(cells)} cells for {len(state.columns)} columns")
        return True
    state.readings.extend(row_readings(state.columns, values, state.start(place, number)))
    return True


def _read_wrapped(rest: str, number: int, place: Place, state: _State) -> bool:
    """The name of a count that was wrapped after its number."""
    value, line = state.pending or ("", number)
    state.pending = None
    joined = f"{value} {rest.strip()}"
    count = COUNT.match(joined)
    if count and _read_count(joined, count, line, (place, state)):
        return True
    state.warnings.add(line, "a count without an event's name")
    return False


def _read_count(
    rest: str, count: re.Match[str], number: int, context: tuple[Place, _State]
) -> bool:
    place, state = context
    body, marks = strip_marks(rest[count.end() :])
    name, *metrics = body.split("#")
    named = read_name(name)
    if named is None:
        return False
    if state.headless and not _plausible(named.event, count["value"], metrics):
        return False
    state.unmarked = len(state.readings)
    reading = replace(
        state.start(place, number),
        event=named.event,
        pmu=take_apart(named.event).pmu,
        unit=named.unit,
        cgroup=named.cgroup,
    )
    state.group, state.group_pmu = "", reading.pmu
    state.pending = None
    _add_metrics(_with_value(reading, count["value"], marks), metrics, state)
    return True


def _with_value(reading: Reading, printed: str, marks: Marks) -> Reading:
    if printed.startswith("<"):
        status = "not_supported" if "supported" in printed else "not_counted"
        return replace(reading, status=status)  # type: ignore[arg-type]
    value = finite(parse_grouped(printed))
    running = 100.0 if marks.running_pct is None else marks.running_pct
    if value == 0 and running == 0:
        return replace(reading, status="not_counted")  # the counter never ran: this 0 is no count
    return replace(
        reading,
        value=value,
        unit=clock_unit(reading.event, reading.unit, printed),
        running_pct=running,
        stddev_pct=marks.stddev_pct,
        status=count_status(value, running),
    )


def _add_metrics(reading: Reading, metrics: list[str], state: _State) -> None:
    """Append the count with its first metric, then each further metric as its own reading."""
    parsed = [pair for pair in map(read_metric, metrics) if pair is not None]
    if reading.status in ("not_counted", "not_supported"):
        parsed = []  # perf prints 0 here, which is no value
    if parsed:
        reading = replace(reading, metric_value=parsed[0][0], metric_unit=parsed[0][1])
    state.readings.append(reading)
    for value, text in parsed[1:]:
        state.readings.append(_metric_reading(reading, value, text))


def _metric_reading(owner: Reading, value: float | None, text: str) -> Reading:
    return replace(
        owner,
        event="",
        value=None,
        unit="",
        runtime_ns=None,
        status="ok" if value is not None else "out_of_bounds",
        metric_value=value,
        metric_unit=text,
    )


def _read_metrics_only(rest: str, number: int, place: Place, state: _State) -> bool:
    body, marks = strip_marks(rest)
    parsed = [read_metric(part) for part in body.split("#")[1:]]
    if not parsed or None in parsed:
        return False
    owner = replace(state.start(place, number), pmu=state.group_pmu, group=state.group)
    for value, text in (pair for pair in parsed if pair is not None):
        state.readings.append(_metric_reading(owner, value, text))
    if marks.running_pct is not None or marks.stddev_pct is not None:
        marked = state.readings[state.unmarked :]
        state.readings[state.unmarked :] = [_marked(reading, marks) for reading in marked]
        state.unmarked = len(state.readings)
    return True


def _marked(reading: Reading, marks: Marks) -> Reading:
    """perf prints the marks of an event behind its last metric: they hold for all of its lines."""
    if reading.event and reading.value is None:
        return reading
    running = marks.running_pct if marks.running_pct is not None else reading.running_pct
    return replace(
        reading,
        running_pct=running,
        stddev_pct=marks.stddev_pct if marks.stddev_pct is not None else reading.stddev_pct,
        status=count_status(reading.value, running) if reading.event else reading.status,
    )


def _plausible(event: str, value: str, metrics: list[str]) -> bool:
    """Without a header only lines that look like perf's are taken."""
    return bool(metrics) or value.startswith("<") or bool(_NAMED_EVENT.match(event))
