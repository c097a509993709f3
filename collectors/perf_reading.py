"""What a ``perf stat`` output says, whatever form it was printed in: readings and run totals.

Names, marks and figures are perf's own. A reading that could not be had has ``value`` None and a
status that says why; nothing is rescaled, clipped or summed here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from moe_prof.rows import Status

Form = Literal["text", "csv", "json"]

MAX_LINE_WARNINGS = 20

_SLASHED = re.compile(r"(?P<pmu>[A-Za-z_][\w.-]*)/(?P<inner>[^/]*)/(?P<mods>\w*)")
_BRACKETED = re.compile(r"(?P<name>.*?)\s*[\[(](?P<pmu>[A-Za-z_]\w*)[\])]")
_PLAIN_NAME = re.compile(r"(?P<name>[^\s:]+)(?::(?P<mods>[ukhHGpPSDWebI]+))?")
_ALIASES = {
    "cpu-cycles": "cycles", "cpu_cycles": "cycles", "branch-instructions": "branches",
    "branch_instructions": "branches", "inst_retired.any": "instructions", "cs": "context-switches",
    "faults": "page-faults", "migrations": "cpu-migrations",
}  # fmt: skip
_CLOCKS = ("task-clock", "cpu-clock")
_NANOSECONDS = ("duration_time", "user_time", "system_time")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One printed row: a count, perf's own metric beside it, or a metric alone.

    Attributes:
        event: the name as printed (``cpu_core/cycles/u``, ``task-clock:u``), "" for a metric alone.
        pmu: the unit that counted (``cpu_core``), None where perf does not name one.
        value: the count in ``unit``; None when missing.
        unit: as printed (``msec``, ``MiB``), "" for a plain count.
        time_s: end of the interval since the start, for interval output.
        cpu: number of one CPU, where readings are not aggregated.
        scope: what was aggregated, as printed: ``CPU3``, ``S0``, ``S0-D0-C1``, ``N0``; else "".
        cpus: number of CPUs (or counters) aggregated, where perf prints it.
        thread: ``comm-tid`` for per-thread output.
        cgroup: the control group, where one was asked for.
        runtime_ns: time during which the counter ran; None where not printed.
        running_pct: share of the enabled time; None for missing values, whatever perf printed.
        stddev_pct: perf's ``+-``: standard error of the mean over repetitions, in percent.
        status: of the count, or of the metric for a metric alone.
        metric_value / metric_unit: perf's derived metric and its text (``%  tma_retiring``).
        group: the metric group's name above a metric (``TopdownL1``).
        summary: True for the totals that ``--summary`` repeats after the intervals.
        block: index of the perf run inside the file.
        line: line number in the file, from 1.
    """

    event: str
    pmu: str | None = None
    value: float | None = None
    unit: str = ""
    time_s: float | None = None
    cpu: str | None = None
    scope: str = ""
    cpus: int | None = None
    thread: str | None = None
    cgroup: str | None = None
    runtime_ns: int | None = None
    running_pct: float | None = None
    stddev_pct: float | None = None
    status: Status = "ok"
    metric_value: float | None = None
    metric_unit: str = ""
    group: str = ""
    summary: bool = False
    block: int = 0
    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Totals of one perf run: the command as perf quotes it, repetitions and the footer's times."""

    command: str = ""
    runs: int | None = None
    elapsed_s: float | None = None
    elapsed_error_s: float | None = None
    user_s: float | None = None
    sys_s: float | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """A whole output. ``warnings`` has one line per damaged place, naming the line."""

    form: Form
    readings: tuple[Reading, ...]
    blocks: tuple[Block, ...]
    warnings: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """The first run's command as perf quotes it, or ""."""
        return next((block.command for block in self.blocks if block.command), "")

    @property
    def elapsed_s(self) -> float | None:
        """Wall time of the first run that states it."""
        return _first(block.elapsed_s for block in self.blocks)

    @property
    def user_s(self) -> float | None:
        """User time of the first run that states it."""
        return _first(block.user_s for block in self.blocks)

    @property
    def sys_s(self) -> float | None:
        """System time of the first run that states it."""
        return _first(block.sys_s for block in self.blocks)

    @property
    def counts(self) -> tuple[Reading, ...]:
        """Readings of events, without metrics that stand alone."""
        return tuple(reading for reading in self.readings if reading.event)


@dataclass(frozen=True, slots=True)
class EventName:
    """An event's name taken apart: PMU, lower-case base name, modifiers (``u``, ``k``)."""

    pmu: str | None
    base: str
    modifiers: str


class Warnings:
    """Collects one line per damaged place and counts the rest beyond a limit."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._more = 0

    def add(self, line: int, text: str) -> None:
        """Note ``text`` about line number ``line``."""
        if len(self._lines) < MAX_LINE_WARNINGS:
            self._lines.append(f"line {line}: {text}")
        else:
            self._more += 1

    def result(self) -> tuple[str, ...]:
        """All lines, the last one saying how many more there were."""
        rest = (f"{self._more} further lines could not be read",) if self._more else ()
        return (*self._lines, *rest)


@lru_cache(maxsize=1024)
def take_apart(event: str) -> EventName:
    """PMU, base name and modifiers of a printed event name.

    ``cpu_core/cycles/u`` gives (cpu_core, cycles, u); ``cycles:u`` gives (None, cycles, u);
    ``cycles [cpu_atom]`` gives (cpu_atom, cycles, ""); aliases become one name.
    """
    name = event.strip()
    pmu: str | None = None
    bracketed = _BRACKETED.fullmatch(name)
    if bracketed:
        name, pmu = bracketed["name"], bracketed["pmu"]
    slashed = _SLASHED.fullmatch(name)
    if slashed:
        base, modifiers, pmu = slashed["inner"], slashed["mods"], slashed["pmu"]
    else:
        plain = _PLAIN_NAME.fullmatch(name)
        base, modifiers = (plain["name"], plain["mods"] or "") if plain else (name, "")
    base = base.lower()
    return EventName(pmu, _ALIASES.get(base, base), modifiers)


def clock_unit(event: str, unit: str, printed: str) -> str:
    """The unit of a clock event for which perf prints none.

    Old versions print milliseconds with decimals, some new ones whole nanoseconds.
    """
    base = take_apart(event).base
    if unit or base not in (*_CLOCKS, *_NANOSECONDS):
        return unit
    whole = re.sub(r"[.,]0+$", "", printed)
    decimals = re.search(r"[.,](?:[0-9]{1,2}|[0-9]{4,})$", whole)
    return "msec" if decimals and base in _CLOCKS else "ns"


def count_status(value: float | None, running_pct: float | None) -> Status:
    """Status of a count that perf printed as a number."""
    if value is None or math.isnan(value) or value < 0:
        return "out_of_bounds"
    if running_pct is not None and running_pct > 100:
        return "out_of_bounds"
    if running_pct is not None and running_pct < 100:
        return "multiplexed"
    return "ok"


def finite(value: float) -> float | None:
    """The value, or None where perf printed nan or an infinity."""
    return value if math.isfinite(value) else None


def clean(text: str) -> str:
    """The text without byte-order mark, carriage returns and colour codes."""
    unified = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", unified)


def _first(values: Iterable[float | None]) -> float | None:
    return next((value for value in values if value is not None), None)
