"""One line of ``perf stat``'s text form in pieces: place, count, event, metrics, marks at its end.

[time] [scope [cpus] | comm-tid] count [unit] event [cgroup] [# metric ...] [( +- x% )] [(y%)]
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from moe_prof.collectors.perf_numbers import COUNT_PATTERN, parse_plain
from moe_prof.collectors.perf_reading import finite
from moe_prof.collectors.perf_scope import SCOPE_PATTERN, TIME_PATTERN, Place
from moe_prof.collectors.perf_units import is_unit

COUNT = re.compile(
    rf"\s*(?P<value><not counted>|<not supported>|-?nan|-?inf|{COUNT_PATTERN})\s+(?=\S)"
)
LONE_COUNT = re.compile(rf"\s*(?P<value><not counted>|<not supported>|{COUNT_PATTERN})")
GROUP = re.compile(r"\s*(?P<group>[A-Za-z]\w*)(?:\s+\((?P<pmu>\w+)\))?\s*$")

_TIME = re.compile(rf"\s*(?P<time>{TIME_PATTERN})(?=\s)")
_SCOPE = re.compile(rf"\s*(?P<scope>{SCOPE_PATTERN})(?:\s+(?P<cpus>[0-9]+)(?=\s{{2,}}))?(?=\s)")
_THREAD = re.compile(
    rf"\s*(?P<thread>\S(?:.*?\S)?-[0-9]+)\s+(?=(?:<not (?:counted|supported)>|{COUNT_PATTERN})\s)"
)
_RUNNING = re.compile(r"\s*[(\[]\s*(?P<pct>[0-9]+[.,]?[0-9]*)\s?%\s*[)\]]\s*$")
_NOISE = re.compile(r"\s*\(\s*\+-\s*(?P<pct>[0-9.,]+|-?nan|inf)\s?%\s*\)\s*$")
_METRIC = re.compile(r"\s*(?P<value>[+-]?(?:[0-9]+(?:[.,][0-9]+)?|nan|inf))(?P<text>(?:\s|%).*)?$")
_EVENT = re.compile(
    r"(?P<event>[A-Za-z_@%$][^\s#/]*/[^/#]*/\w*|[A-Za-z_@%$][^\s#]*)"
    r"(?P<tag>\s+[(\[][\w.]+[)\]])?(?:\s+(?P<cgroup>[^\s#()\[\]]+))?\s*"
)
_LONE_MARKS = re.compile(
    r"\s*(?:\(\s*\+-\s*[0-9.,]+\s?%\s*\)\s*)?(?:[(\[]\s*[0-9]+[.,]?[0-9]*\s?%\s*[)\]]\s*)?"
)
_CUT_METRIC = re.compile(r"#\s+[0-9]+[.,][0-9]+\s*$")
_OLD_UNIT = re.compile(r"\s*\((?P<unit>msec|nsec|usec)\)")


@dataclass(frozen=True, slots=True)
class Named:
    """The part of a line after the count: unit, event and control group."""

    unit: str
    event: str
    cgroup: str | None


@dataclass(frozen=True, slots=True)
class Marks:
    """What perf adds at the end of a line: share of time counted, ``+-`` over repetitions."""

    running_pct: float | None
    stddev_pct: float | None


def unwrapped(lines: Sequence[str]) -> list[str]:
    """The lines with what a narrow terminal or a mail put on a line of its own.

    Marks, the rest of a metric and the end of the footer go back to the line before, which must
    lack them; the joined line becomes empty, so that numbers stay true.
    """
    result = list(lines)
    last: int | None = None
    for number, line in enumerate(result):
        if not line.strip():
            continue
        if last is not None and _belongs_before(line, result[last]):
            gap = " " if line.strip().startswith("elapsed") else "  "
            result[last] = f"{result[last].rstrip()}{gap}{line.strip()}"
            result[number] = ""
        else:
            last = number
    return result


def _belongs_before(line: str, before: str) -> bool:
    if _LONE_MARKS.fullmatch(line):
        return "#" in before or COUNT.match(before) is not None
    if _CUT_METRIC.search(before):
        return line.lstrip()[:1].isalpha() or line.lstrip()[:1] == "%"
    return before.endswith("seconds time") and line.strip().startswith("elapsed")


def read_place(line: str) -> tuple[Place, int]:
    """Interval time and scope at the start of the line, and where the rest begins."""
    position, time_s = 0, None
    time = _TIME.match(line)
    if time:
        time_s, position = parse_plain(time["time"]), time.end()
    scope = _SCOPE.match(line, position)
    if scope:
        place = Place(time_s, scope["scope"])
        if scope["cpus"] and COUNT.match(line, scope.end()):
            return replace(place, cpus=int(scope["cpus"])), scope.end()
        return place, scope.end("scope")
    if not COUNT.match(line, position) and not line[position:].lstrip().startswith("#"):
        thread = _THREAD.match(line, position)
        if thread:
            return Place(time_s, thread=thread["thread"]), thread.end("thread")
    return Place(time_s), position


def read_name(text: str) -> Named | None:
    """Unit, event and control group; None if the text is no event's name."""
    unit, text = _take_unit(text)
    match = _EVENT.fullmatch(text)
    if not match:
        return None
    tag = match["tag"] or ""
    old = _OLD_UNIT.fullmatch(tag)
    if old:
        return Named(old["unit"], match["event"], match["cgroup"])
    return Named(unit, match["event"] + re.sub(r"\s+", " ", tag), match["cgroup"])


def read_metric(part: str) -> tuple[float | None, str] | None:
    """``  0.994 CPUs utilized`` as (0.994, CPUs utilized); nan gives None as the value."""
    match = _METRIC.fullmatch(part.rstrip())
    if not match:
        return None
    return finite(parse_plain(match["value"])), (match["text"] or "").strip()


def strip_marks(body: str) -> tuple[str, Marks]:
    """The body without ``( +- x% )`` and ``(y%)`` at its end, and what they say."""
    running_pct: float | None = None
    stddev_pct: float | None = None
    while True:
        running, noise = _RUNNING.search(body), _NOISE.search(body)
        if noise and stddev_pct is None:
            stddev_pct = finite(parse_plain(noise["pct"]))
            body = body[: noise.start()]
        elif running and running_pct is None:
            running_pct = parse_plain(running["pct"])
            body = body[: running.start()]
        else:
            return body, Marks(running_pct, stddev_pct)


def _take_unit(text: str) -> tuple[str, str]:
    first, _, rest = text.strip().partition(" ")
    if is_unit(first) and rest.strip():
        return first, rest.strip()
    return "", text.strip()
