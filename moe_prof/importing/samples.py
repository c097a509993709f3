"""Sampled stacks, from ``perf script`` and in the folded form, summed up while they are read.

Only sums by event, thread and function are kept, so that memory is bounded by the number of
functions, not of samples; beyond a limit the rarest share one row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from moe_prof.collectors.perf_reading import Warnings
from moe_prof.collectors.perf_script import ScriptSample, read_samples
from moe_prof.collectors.stacks import read_folded
from moe_prof.errors import InputError
from moe_prof.importing.base import Found, Kind, Labels, Part, RowMaker
from moe_prof.rows import Row

PERF_SCRIPT = "perf_script"
FOLDED = "folded"
MAX_KEYS = 200_000
SHOWN = 5000  # functions that get rows of their own, the heaviest first
_UNKNOWN = "[unknown]"
_PROBE_LINES = 400
_CLOCKS = ("cpu-clock", "task-clock")
_SAMPLE = re.compile(
    r"\S.*?\s+(?:\d+/\s*)?\d+\s+(?:\[\d+\]\s+)?(?:\S+\s+)?\d+\.\d{3,9}:\s+(?:\d+\s+)?"
    r"\S+:(?=\s|$)"
)
_TIME = re.compile(r"\d\.\d{3,9}:\s")  # a cheap look before the dear one
_STACK = re.compile(r"[^\s;].*\s[0-9]+(?:\.[0-9]+)?$")

_Function = tuple[str, str]  # name, module


@dataclass(slots=True)
class _Sums:
    """Sums of one event."""

    samples: int = 0
    weight: float = 0.0
    own: dict[_Function, float] = field(default_factory=dict)
    total: dict[_Function, float] = field(default_factory=dict)
    threads: dict[str, list[float]] = field(default_factory=dict)

    def add(self, functions: Iterable[_Function], weight: float, thread: str) -> None:
        """One stack, innermost function first."""
        self.samples += 1
        self.weight += weight
        stack = list(functions)
        for key in set(stack):
            self._add(self.total, key, weight)
        if stack:
            self._add(self.own, stack[0], weight)
        if thread:
            entry = self.threads.setdefault(
                thread if len(self.threads) < MAX_KEYS else "other threads", [0.0, 0.0]
            )
            entry[0] += weight
            entry[1] += 1

    @staticmethod
    def _add(sums: dict[_Function, float], key: _Function, weight: float) -> None:
        if key not in sums and len(sums) >= MAX_KEYS:
            key = ("other functions", "")
        sums[key] = sums.get(key, 0.0) + weight


def stream_script(lines: Iterable[str], labels: Labels) -> Found:
    """``perf script``, line by line; raises InputError."""
    remarks = Warnings()
    events: dict[str, _Sums] = {}
    for sample in read_samples(lines, remarks.add):
        weight = float(sample.period) if sample.period is not None else 1.0
        functions = [(frame.symbol or _UNKNOWN, frame.dso or "") for frame in sample.frames]
        events.setdefault(sample.event, _Sums()).add(functions, weight, _thread(sample))
    if not events:
        raise InputError("perf script: no sample could be read")
    maker = RowMaker(labels, PERF_SCRIPT)
    rows = [maker.row("samples", sum(sums.samples for sums in events.values()), "1", "all events")]
    for event, sums in events.items():
        rows.append(maker.row("samples", sums.samples, "1", event))
        rows += _event_rows(event, sums, maker)
    return Found(tuple(rows), remarks.result())


def stream_folded(lines: Iterable[str], labels: Labels) -> Found:
    """Folded stacks, line by line; raises InputError."""
    remarks = Warnings()
    sums = _Sums()
    for stack in read_folded(lines, remarks.add):
        names = [(frame.function, frame.module) for frame in reversed(stack.frames)]
        sums.add(names, stack.weight, "")
    if not sums.samples:
        raise InputError("folded stacks: not one line ends in a weight")
    maker = RowMaker(labels, FOLDED)
    rows = [
        maker.row("stacks", sums.samples, "1", "lines of the file"),
        *_event_rows("samples", sums, maker),
    ]
    return Found(tuple(rows), remarks.result())


def _event_rows(event: str, sums: _Sums, maker: RowMaker) -> Iterator[Row]:
    """The event's sum, by thread and by function."""
    clock = re.split(r"[:/]", event)[0] in _CLOCKS
    scale, unit = (1e-9, "s") if clock else (1.0, "1")
    yield maker.row(event, sums.weight * scale, unit, f"sum over {sums.samples} samples")
    for thread, (weight, _) in sums.threads.items():
        yield maker.row(event, weight * scale, unit, "sum of a thread", thread=thread)
    ordered = sorted(sums.total, key=lambda key: (-sums.own.get(key, 0.0), -sums.total[key]))
    for key in ordered[:SHOWN]:
        source = _named(key)
        yield maker.row(f"{event} self", sums.own.get(key, 0.0) * scale, unit, source,
                       scope="function")  # fmt: skip
        yield maker.row(f"{event} total", sums.total[key] * scale, unit, source, scope="function")
    rest = ordered[SHOWN:]
    if rest:
        own = sum(sums.own.get(key, 0.0) for key in rest)
        source = f"{len(rest)} further functions together"
        yield maker.row(f"{event} self", own * scale, unit, source, scope="function")


def _named(key: _Function) -> str:
    name, module = key
    return f"{name} [{module}]" if module else name


def _thread(sample: ScriptSample) -> str:
    return f"{sample.comm}-{sample.tid}"


def _is_folded(part: Part) -> bool:
    lines = [line for _, line in part.filled if not line.startswith("#")][:_PROBE_LINES]
    good = sum(bool(_STACK.match(line)) for line in lines)
    return any(";" in line for line in lines) and good > 0.4 * len(lines)


def _has_samples(part: Part) -> bool:
    found = read_samples(part.lines[:_PROBE_LINES], lambda line, text: None)
    return any(sample.frames or sample.time_s is not None for sample in found)


SCRIPT_KIND = Kind(
    name=PERF_SCRIPT,
    title="perf script",
    read=lambda part, labels: stream_script(part.lines, labels),
    starts=lambda line: _TIME.search(line) and _SAMPLE.match(line),
    fits=_has_samples,
    stream=stream_script,
)
FOLDED_KIND = Kind(
    name=FOLDED,
    title="folded stacks",
    read=lambda part, labels: stream_folded(part.lines, labels),
    fits=_is_folded,
    stream=stream_folded,
)
