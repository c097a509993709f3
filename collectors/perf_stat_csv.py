"""The CSV form of ``perf stat`` (``-x SEP``): a pure parser, text in, report out.

    [time | summary] [scope [cpus] | comm-tid] value unit event [cgroup] [stddev%] runtime pct
    [metric metric-unit]

Fields are not quoted, so with a comma as separator event names (``cpu/event=0x1,umask=2/``) and
decimal commas fall apart; the layout above, matched as a whole, puts them together again. Rows that
only carry a metric begin with empty fields. ``--metric-only`` prints a header and one row of cells.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from moe_prof.collectors.perf_numbers import parse_plain
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
from moe_prof.collectors.perf_scope import SCOPE_PATTERN, TIME_PATTERN, Place
from moe_prof.collectors.perf_stat_table import (
    Column,
    csv_columns,
    row_readings,
    warn_repeated,
)

SEPARATORS = (";", ",", "\t", "|", ":", "^", "~", "@", "!", "#", " ")
STARTED = re.compile(r"#\s*started on ")

_NUMBER = r"[+-]?[0-9]+(?:[.,][0-9]+)?(?:[eE][+-]?[0-9]+)?"
_VALUE = rf"(?P<value>{_NUMBER}|-?nan|-?inf|<not counted>|<not supported>)"
_DISCOVER = re.compile(
    r"(?:<not counted>|<not supported>|(?<![0-9.])[0-9]+(?:\.[0-9]+)?)"
    r"(?P<sep>[^\s0-9A-Za-z<>.%/-]{1,3}?)"
    r"[A-Za-z]*(?P=sep)[A-Za-z_][^\s]*?(?P=sep)[0-9]+(?P=sep)[0-9]+[.,][0-9]{2}"
)
_HEADER_PLACES = ("time", "core", "die", "socket", "node", "cpus", "cpu", "comm-pid", "ctrs")
_TABLE_STARTS = ("core", "die", "socket", "node")
_GROUP = re.compile(r"(?P<group>[A-Za-z]\w*)(?:\s+\((?P<pmu>\w+)\))?")
_TITLE = re.compile(
    r"(?:(?:%[a-z]*|percent of [a-z]+|[A-Za-z/]+) {1,2})?(?:tma_\w+|retiring\w*|[a-z_]+_bound\w*"
    r"|bad[ _]speculat\w*|(?:front|back)end bound|(?:FE|BE|memory|[Cc]ore) bound"
    r"|(?:heavy|light) operations|branch mispredict|machine clears|fetch (?:latency|bandwidth)"
    r"|smt_contention|insn per cycle|GHz|.* of all .*|.*cycles idle|stalled cycles per insn"
    r"|CPUs_utilized|insn_per_cycle|branch_\w+|cycles_frequency)"
)
_LOCALE_ADVICE = "run perf with LC_ALL=C and -x ';'"


@dataclass(frozen=True, slots=True)
class _Layout:
    place: re.Pattern[str]
    row: re.Pattern[str]
    short: re.Pattern[str]


@dataclass(slots=True)
class _State:
    separator: str
    readings: list[Reading] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=lambda: [Block()])
    warnings: Warnings = field(default_factory=Warnings)
    columns: tuple[Column, ...] = ()
    places: tuple[str, ...] = ()
    running_pct: float | None = None
    group: str = ""
    group_pmu: str | None = None
    rows: int = 0
    repaired: int = 0
    decimal_comma: bool = False


def find_separator(lines: Sequence[str]) -> tuple[str, int]:
    """The separator under which most lines have the layout of a count, and their number."""
    candidates = list(SEPARATORS)
    candidates += [match["sep"] for match in map(_DISCOVER.search, lines) if match]
    best, most = "", 0
    for separator in dict.fromkeys(candidates):
        layout = _layout(separator)
        matching = sum(
            bool(layout.row.fullmatch(line.strip())) for line in lines if separator in line
        )
        if matching > most:
            best, most = separator, matching
    return best, most


def looks_like_count(line: str) -> bool:
    """Whether a line has the layout of a count under some separator."""
    return _DISCOVER.search(line) is not None


def table_separator(lines: Sequence[str]) -> str:
    """The separator of a ``--metric-only`` table, "" where no line is its header."""
    filled = [line for line in lines if line.strip() and not STARTED.match(line)]
    if filled and all(len(set(line.strip())) == 1 and line[0] in ";,|\t" for line in filled):
        return filled[0][0]  # nothing could be counted: perf prints the separators alone
    for line in filled[:50]:
        for separator in filter(line.__contains__, (";", ",", "\t", "|")):
            cells = [cell.strip() for cell in line.replace(",", separator).split(separator)]
            titles = [cell for cell in cells if cell and cell not in _HEADER_PLACES]
            known = sum(bool(_TITLE.fullmatch(cell)) for cell in titles)
            if len(cells) > 1 and known and (known == len(titles) or cells[0] in _TABLE_STARTS):
                return separator
    return ""


def parse_csv(text: str) -> Report:
    """Read the CSV form; the text must be clean (see :func:`perf_reading.clean`)."""
    lines = text.split("\n")
    separator, matching = find_separator(lines[:2000])
    if not matching:
        separator = table_separator(lines)
    state = _State(separator)
    for number, line in enumerate(lines, 1):
        stripped = line.rstrip("\n")
        if STARTED.match(stripped):
            if state.rows:
                state.blocks.append(Block())
                state.rows, state.columns = 0, ()
        elif stripped.strip():
            try:
                _read_line(stripped, number, state)
            except ValueError as error:
                state.warnings.add(number, str(error))
    if state.decimal_comma:
        _drop_cut_metrics(state)
    return Report("csv", tuple(state.readings), tuple(state.blocks), state.warnings.result())


def _read_line(line: str, number: int, state: _State) -> None:
    if not state.separator:
        state.warnings.add(number, "no field separator found")
        return
    layout = _layout(state.separator)
    match = layout.row.fullmatch(line.strip())
    if match:
        _read_count(match, number, state)
        return
    if state.columns and _read_cells(line, number, state):
        return
    if _read_metric(line, number, state) or _read_header(line, number, state):
        return
    short = layout.short.fullmatch(line.strip())
    if short:
        _read_count(short, number, state)
        return
    if line.strip(" " + state.separator):
        state.warnings.add(number, f"not a row of perf stat -x: {line.strip()[:60]!r}")


def _read_count(match: re.Match[str], number: int, state: _State) -> None:
    found = match.groupdict()
    event = found["event"].strip()
    printed = found["value"]
    reading = Reading(
        event=event,
        pmu=take_apart(event).pmu,
        unit=(found.get("unit") or "").strip(),
        cgroup=found.get("cgroup") or None,
        block=len(state.blocks) - 1,
        line=number,
    )
    reading = _placed(reading, _place_of(found))
    state.rows += 1
    state.group, state.group_pmu = "", reading.pmu
    if _has_decimal_comma(found):
        state.decimal_comma = True
        state.repaired += state.separator == ","
    reading = _with_value(reading, printed, found)
    state.running_pct = reading.running_pct
    state.readings.append(reading)


def _with_value(reading: Reading, printed: str, found: dict[str, str | None]) -> Reading:
    if printed.startswith("<"):
        status = "not_supported" if "supported" in printed else "not_counted"
        return replace(reading, status=status)  # type: ignore[arg-type]
    value = finite(parse_plain(printed))
    runtime = found.get("runtime")
    running = _number(found.get("pct"))
    noise = found.get("noise") or found.get("noise2")
    metric_unit = (found.get("metric_unit") or "").strip()
    reading = replace(
        reading,
        value=value,
        unit=clock_unit(reading.event, reading.unit, printed),
        runtime_ns=int(runtime) if runtime else None,
        running_pct=running,
        stddev_pct=_number(noise),
        status=count_status(value, running),
        metric_value=_number(found.get("metric")) if metric_unit else None,
        metric_unit=metric_unit,
    )
    if value == 0 and reading.runtime_ns == 0:
        # the counter never ran: perf's 0 is no count
        return replace(reading, value=None, running_pct=None, status="not_counted")
    return reading


def _read_metric(line: str, number: int, state: _State) -> bool:
    """A row that only carries a metric, or the name of a metric group."""
    rest, place = _strip_place(line, state.separator)
    fields = [cell.strip() for cell in rest.split(state.separator)]
    filled = [cell for cell in fields if cell]
    if len(fields) < 3 or fields[0] or not 1 <= len(filled) <= 2:
        return False
    while fields and not fields[-1]:
        fields.pop()
    group = _GROUP.fullmatch(fields[-1])
    if len(filled) == 1 and group and "L" in fields[-1] and not fields[-1].startswith("tma_"):
        state.group, state.group_pmu = group["group"], group["pmu"]
        state.running_pct = None
        return True
    number_text = fields[-2]
    if number_text and not re.fullmatch(rf"{_NUMBER}|-?nan|-?inf", number_text):
        return False
    value = _number(number_text)
    reading = Reading(
        event="",
        pmu=state.group_pmu,
        running_pct=state.running_pct,
        group=state.group,
        metric_value=value,
        metric_unit=fields[-1],
        status="ok" if value is not None else "out_of_bounds",
        block=len(state.blocks) - 1,
        line=number,
    )
    reading = _placed(reading, place)
    state.rows += 1
    state.readings.append(reading)
    return True


def _read_header(line: str, number: int, state: _State) -> bool:
    cells = [cell.strip() for cell in re.split(f"{re.escape(state.separator)}|,", line)]
    while cells and not cells[-1]:
        cells.pop()
    places = []
    while cells and cells[0] in _HEADER_PLACES:
        places.append(cells.pop(0))
    if not cells or state.rows or any(re.fullmatch(rf"{_NUMBER}|<.*>", cell) for cell in cells):
        return False
    if not all(re.match(r"[A-Za-z%]", cell) for cell in cells):
        return False
    state.columns, state.places = csv_columns(cells), tuple(places)
    warn_repeated(state.columns, number, state.warnings)
    return True


def _read_cells(line: str, number: int, state: _State) -> bool:
    """A row below a header; cells may be empty, and perf ends the row with a separator."""
    cells = [cell.strip() for cell in line.split(state.separator)]
    found: dict[str, str | None] = {}
    if "time" in state.places or re.fullmatch(TIME_PATTERN, cells[0]):
        found["time"] = cells.pop(0)
    if cells and re.fullmatch(SCOPE_PATTERN, cells[0]):
        found["scope"] = cells.pop(0)
        counted = len(cells) > len(state.columns) and "cpus" in (*state.places, "cpus")
        if counted and cells[0].isdecimal() and not str(found["scope"]).startswith("CPU"):
            found["cpus"] = cells.pop(0)
    elif "comm-pid" in state.places:
        found["thread"] = cells.pop(0)
    while len(cells) > len(state.columns) and not cells[-1]:
        cells.pop()
    pattern = rf"(?:{_NUMBER}|-?nan|-?inf)?%?"
    if not any(cells) and not found:
        return True
    if len(cells) > len(state.columns) or not all(re.fullmatch(pattern, c) for c in cells):
        return False
    values = [_number(cell.removesuffix("%")) for cell in cells]
    values += [None] * (len(state.columns) - len(values))
    template = Reading(event="", block=len(state.blocks) - 1, line=number)
    template = _placed(template, _place_of(found))
    state.rows += 1
    state.readings.extend(row_readings(state.columns, values, template))
    return True


def _drop_cut_metrics(state: _State) -> None:
    """perf cuts its own metric at a decimal comma: 0,993 is printed as 0, which is no value."""
    with_metric = [reading for reading in state.readings if reading.metric_unit]
    state.readings = [
        reading if not reading.metric_unit
        else replace(reading, metric_value=None) if reading.event
        else replace(reading, metric_value=None, status="not_counted")
        for reading in state.readings
    ]  # fmt: skip
    if state.repaired:
        state.warnings.add(
            state.readings[0].line,
            f"decimal commas equal the separator; {state.repaired} rows were put together by their "
            f"layout; {_LOCALE_ADVICE} to be sure",
        )
    if with_metric:
        state.warnings.add(
            with_metric[0].line,
            f"perf cuts its own metrics at a decimal comma, they are left out; {_LOCALE_ADVICE}",
        )


def _has_decimal_comma(found: dict[str, str | None]) -> bool:
    return any("," in (found.get(name) or "") for name in ("value", "pct", "noise", "noise2"))


def _strip_place(line: str, separator: str) -> tuple[str, Place]:
    match = _layout(separator).place.match(line)
    if match is None:
        return line, Place()
    return line[match.end() :], _place_of(match.groupdict())


def _place_of(found: dict[str, str | None]) -> Place:
    time_text, cpus = found.get("time"), found.get("cpus")
    summary = time_text == "summary"
    time_s = parse_plain(time_text) if time_text and not summary else None
    return Place(
        time_s,
        found.get("scope") or "",
        int(cpus) if cpus else None,
        found.get("thread"),
        summary,
    )


def _placed(reading: Reading, place: Place) -> Reading:
    return replace(
        reading,
        time_s=place.time_s,
        cpu=place.cpu,
        scope=place.scope,
        cpus=place.cpus,
        thread=place.thread,
        summary=place.summary,
    )


def _number(text: str | None) -> float | None:
    return finite(parse_plain(text)) if text else None


@lru_cache(maxsize=64)
def _layout(separator: str) -> _Layout:
    sep = re.escape(separator)
    other = f"(?:(?!{sep}).)"
    time = rf"(?:\s*(?P<time>{TIME_PATTERN}|summary)\s*{sep})?"
    scope = (
        rf"(?:(?:(?P<scope>{SCOPE_PATTERN})\s*{sep}(?:(?P<cpus>[0-9]+)\s*{sep})?"
        rf"|(?P<thread>{other}*?[A-Za-z]{other}*?-[0-9]+){sep}))?"
    )
    unit = rf"(?P<unit>(?![0-9+-]){other}*|)"
    event = rf"(?P<event>[^/\s<]*?[A-Za-z_][^/\s]*?/[^/]*/\w*|(?![0-9]+{sep}){other}+)"
    head = rf"{time}{scope}{_VALUE}{sep}{unit}{sep}{event}"
    cgroup = rf"(?:{sep}(?P<cgroup>(?![0-9.,]+%?(?:{sep}|$)){other}*))?"
    decimals = r"[0-9]+(?:[.,][0-9]+)?"
    tail = (
        rf"(?:{sep}(?P<noise>{decimals}|-?nan|inf)%)?"
        rf"{sep}(?P<runtime>[0-9]+){sep}(?P<pct>[0-9]+[.,][0-9]{{2}}|[0-9]+)"
        rf"(?:{sep}(?P<noise2>{decimals})%)?"
        rf"(?:{sep}(?P<metric>{_NUMBER}|-?nan|-?inf|)(?:{sep}(?P<metric_unit>{other}*))?)?(?:{sep})*"
    )
    return _Layout(
        place=re.compile(time + scope),
        row=re.compile(head + cgroup + tail),
        short=re.compile(
            rf"{time}{scope}{_VALUE}{sep}(?:{unit}{sep})?(?P<event>[A-Za-z_]{other}*)(?:{sep})*"
        ),
    )
