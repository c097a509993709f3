"""The JSON form of ``perf stat`` (``-j``): a pure parser, text in, report out.

perf writes flat objects, one a line, that JSON readers often refuse: a decimal comma or ``nan`` as
a bare number, a comma before the brace, several objects on one line, an aggregation key before the
brace of the next object, keys that repeat (two metrics of one event). So objects are found by their
braces and read pair by pair; a damaged one becomes a warning and what it still says is kept.

Shapes: 6.0/6.1 print metric-value as a bare number, 6.12 as a string, later versions omit it or
write "none"; ``--metric-only`` gives unit objects and value objects up to 6.1, afterwards one
object with the metrics' names as keys.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

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
from moe_prof.collectors.perf_scope import Place
from moe_prof.collectors.perf_stat_table import csv_columns, row_readings

_STRING = r'"(?:[^"\\\n]|\\.)*"'
_OBJECT = re.compile(rf"\{{(?:[^{{}}\"\n]|{_STRING})*\}}")
_PAIR = re.compile(
    rf"(?P<key>{_STRING})\s*:\s*(?P<value>{_STRING}|[^\s\"{{}}][^\"{{}}]*?)\s*(?=,\s*(?:[\"{{}}]|$)|\}}|$)"
)
_STARTED = re.compile(r"#\s*started on ")
LOOKS_LIKE = re.compile(
    r"\{\s*\"(?:interval|counter-value|unit|event|metric-value|metric-unit|metricgroup|cpu|core"
    r"|die|socket|node|thread|cache|cluster|cgroup|event-runtime|%  \w+|insn per cycle)\"\s*:"
)
_SCOPES = ("cpu", "core", "die", "cluster", "cache", "socket", "node")
_KNOWN = {
    *_SCOPES, "interval", "thread", "cgroup", "aggregate-number", "counters", "cpus", "percore",
    "counter-value", "unit", "event", "variance", "event-runtime", "pcnt-running", "metric-value",
    "metric-unit", "metric-threshold", "metricgroup", "summary",
}  # fmt: skip

Pairs = list[tuple[str, str]]


@dataclass(slots=True)
class _State:
    readings: list[Reading] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=lambda: [Block()])
    warnings: Warnings = field(default_factory=Warnings)
    group: str = ""
    group_pmu: str | None = None
    running_pct: float | None = None
    columns: list[str] = field(default_factory=list)
    cells: list[str] = field(default_factory=list)
    rows: int = 0


def parse_json(text: str) -> Report:
    """Read the JSON form; the text must be clean (see :func:`perf_reading.clean`)."""
    state = _State()
    for number, line in enumerate(text.split("\n"), 1):
        if _STARTED.match(line):
            if state.rows:
                state.blocks.append(Block())
                state.rows, state.columns = 0, []
        elif line.strip():
            try:
                _read_line(line, number, state)
            except ValueError as error:
                state.warnings.add(number, str(error))
    return Report("json", tuple(state.readings), tuple(state.blocks), state.warnings.result())


def _read_line(line: str, number: int, state: _State) -> None:
    objects = list(_OBJECT.finditer(line))
    outside = _OBJECT.sub(" ", line)
    context = _pairs(outside) if '"' in outside else []
    state.cells = []
    for match in objects:
        pairs = _pairs(match[0])
        if not pairs and match[0].strip("{} \t"):
            state.warnings.add(number, f"not an object of perf stat -j: {match[0][:60]!r}")
        elif {key for key, _ in pairs} == {"interval"}:
            context += pairs
        else:
            _read_object(context, pairs, number, state)
    if state.cells:
        _finish_cells(context, number, state)
    if objects or any(key in _SCOPES or key == "interval" for key, _ in context):
        damaged = "counter-value" in outside or "metric-value" in outside
    else:
        damaged = True
    if damaged:
        _salvage(context, outside, number, state)


def _salvage(context: Pairs, outside: str, number: int, state: _State) -> None:
    """An object that was cut off: keep its count if both event and value are whole."""
    values = dict(context)
    if "counter-value" in values and "event" in values:
        state.warnings.add(number, "an object is cut off; its count is kept")
        known = [(key, value) for key, value in context if not key.startswith("metric")]
        _read_object([], known, number, state)
    else:
        state.warnings.add(number, f"not an object of perf stat -j: {outside.strip()[:60]!r}")


def _read_object(context: Pairs, pairs: Pairs, number: int, state: _State) -> None:
    values = dict(reversed([*context, *pairs]))  # the first of a repeated key
    if "event" in values or "counter-value" in values:
        _read_count(values, pairs, number, state)
    elif "metricgroup" in values:
        group = re.fullmatch(r"(?P<name>.*?)\s*(?:\((?P<pmu>\w+)\))?", values["metricgroup"])
        state.group = group["name"] if group else values["metricgroup"]
        state.group_pmu = group["pmu"] if group else None
        state.running_pct = _number(values.get("pcnt-running"))
    elif "metric-unit" in values:
        _add_metrics(_place(values), _metrics(pairs), number, state)
    elif "metric-value" in values:
        state.cells += [value for key, value in pairs if key == "metric-value"]
    elif set(values) == {"unit"}:
        state.columns = [] if state.rows else state.columns
        state.columns.append(values["unit"])
    else:
        _read_named_metrics(values, pairs, number, state)


def _read_count(values: dict[str, str], pairs: Pairs, number: int, state: _State) -> None:
    event, printed = values.get("event", ""), values.get("counter-value", "")
    if not event:
        state.warnings.add(number, f"a count of {printed!r} without its event")
        return
    template = _template(_place(values), number, state)
    reading = replace(
        template,
        event=event,
        pmu=take_apart(event).pmu,
        unit=values.get("unit", ""),
        cgroup=values.get("cgroup") or None,
    )
    state.group, state.group_pmu = "", reading.pmu
    try:
        reading = _with_value(reading, printed, values)
    except ValueError as error:
        state.warnings.add(number, f"{event}: {error}")
        reading = replace(reading, status="not_counted")
    try:
        metrics = _metrics(pairs) if reading.value is not None else []
    except ValueError as error:
        state.warnings.add(number, f"metric of {event}: {error}")
        metrics = []
    if metrics:
        reading = replace(reading, metric_value=metrics[0][0], metric_unit=metrics[0][1])
    state.readings.append(reading)
    state.running_pct = reading.running_pct
    _add_metrics(_place(values), metrics[1:], number, state)


def _with_value(reading: Reading, printed: str, values: dict[str, str]) -> Reading:
    if printed.startswith("<"):
        status = "not_supported" if "supported" in printed else "not_counted"
        return replace(reading, status=status)  # type: ignore[arg-type]
    value = finite(parse_plain(printed))
    running = _number(values.get("pcnt-running"))
    runtime = _number(values.get("event-runtime"))
    if value == 0 and runtime == 0:
        # the counter never ran: perf's 0 is no count
        return replace(reading, runtime_ns=0, status="not_counted")
    return replace(
        reading,
        value=value,
        unit=clock_unit(reading.event, reading.unit, printed),
        runtime_ns=int(runtime) if runtime is not None else None,
        running_pct=running,
        stddev_pct=_number(values.get("variance")),
        status=count_status(value, running),
    )


def _metrics(pairs: Pairs) -> list[tuple[float | None, str]]:
    """Every metric-value with the metric-unit that follows it; nameless ones are padding."""
    found: list[tuple[float | None, str]] = []
    value: float | None = None
    for key, text in pairs:
        if key == "metric-value":
            value = _number(text)
        elif key == "metric-unit":
            if text.strip():
                found.append((value, text.strip()))
            value = None
    return found


def _add_metrics(
    place: Place, metrics: list[tuple[float | None, str]], number: int, state: _State
) -> None:
    for value, text in metrics:
        template = _template(place, number, state)
        state.readings.append(
            replace(
                template,
                pmu=state.group_pmu,
                running_pct=state.running_pct,
                group=state.group,
                metric_value=value,
                metric_unit=text,
                status="ok" if value is not None else "out_of_bounds",
            )
        )


def _finish_cells(context: Pairs, number: int, state: _State) -> None:
    """The value objects of one ``--metric-only`` line, under the unit objects seen before."""
    columns = [name for name in state.columns if name != "sec"]
    values = [_number(cell) for cell in state.cells]
    state.cells = []
    if not any(value is not None for value in values) and not columns:
        return
    if len(values) != len(columns):
        state.warnings.add(number, f"{len(values)} metric values for {len(columns)} names")
        return
    template = _template(_place(dict(reversed(context))), number, state)
    state.readings.extend(row_readings(csv_columns(columns), values, template))


def _read_named_metrics(values: dict[str, str], pairs: Pairs, number: int, state: _State) -> None:
    names = [key for key, _ in pairs if key not in _KNOWN]
    if not names:
        return
    numbers: list[float | None] = []
    for key, text in pairs:
        if key in _KNOWN:
            continue
        try:
            numbers.append(_number(text.removesuffix("%")))
        except ValueError:
            state.warnings.add(number, f"metric {key!r} has the value {text[:40]!r}")
            numbers.append(None)
    template = _template(_place(values), number, state)
    state.readings.extend(row_readings(csv_columns(names), numbers, template))


def _template(place: Place, number: int, state: _State) -> Reading:
    state.rows += 1
    return Reading(
        event="",
        time_s=place.time_s,
        cpu=place.cpu,
        scope=place.scope,
        cpus=place.cpus,
        thread=place.thread,
        summary=place.summary,
        block=len(state.blocks) - 1,
        line=number,
    )


def _place(values: dict[str, str]) -> Place:
    scope = next((values[key] for key in _SCOPES if values.get(key)), "")
    if scope.isdecimal():
        scope = f"CPU{scope}"
    interval = values.get("interval")
    cpus = values.get("aggregate-number") or values.get("counters") or values.get("cpus")
    return Place(
        _number(interval) if interval and interval != "summary" else None,
        scope,
        int(cpus) if cpus and cpus.isdecimal() else None,
        values.get("thread"),
        interval == "summary",
    )


def _pairs(text: str) -> Pairs:
    return [(_unquoted(match["key"]), _unquoted(match["value"])) for match in _PAIR.finditer(text)]


def _unquoted(text: str) -> str:
    if not text.startswith('"'):
        return text
    return re.sub(r"\\(.)", r"\1", text[1:-1])


def _number(text: str | None) -> float | None:
    if not text or text == "none":
        return None
    return finite(parse_plain(text))
