"""Reading gprof's text: the flat profile and the call graph, in seconds.

Its difficulties: names hold blanks, commas and angle brackets; the unit of time per call is chosen
per file and stands in the header; functions without call counts have blank columns; mutual
recursion is shown as a cycle of its own beside its members; calls are ``600``, ``600/1200`` or
``600+600000``; and where no sample was taken, all percentages are undefined while the calls count.

Source: GNU gprof manual, "Interpreting gprof's Output"; binutils ``gprof/hist.c``, ``cg_print.c``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from moe_prof.errors import InputError

_SHOWN = 60
_NUMBER = r"-?[0-9]+[.,][0-9]+|-?nan"
_UNITS = {"ps": 1e-12, "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "Ks": 1e3, "Ms": 1e6,
          "Gs": 1e9, "Ts": 1e12}  # fmt: skip

_SAMPLE = re.compile(
    r"Each sample counts as (?P<value>[0-9]+(?:[.,][0-9]+)?(?:e-?[0-9]+)?) (?P<unit>.*?)\.?"
)
_FLAT_HEADER = re.compile(r"time\s+(?P<unit>\S+)\s+\S+\s+calls\s+(?:(?P<per>\w+)/call\s+)?.*name")
_FLAT = re.compile(
    rf"\s*(?P<percent>{_NUMBER})\s+(?P<sum>{_NUMBER})\s+(?P<self>{_NUMBER})\s+"
    rf"(?:(?P<calls>[0-9]{{1,18}})\s+(?P<own>{_NUMBER})\s+(?P<total>{_NUMBER})\s+)?(?P<name>\S.*)"
)
_GRAPH_HEADER = re.compile(r"index\s+%\s*time\s+self\s+children\s+called\s+name")
_COUNT = r"[0-9]{1,18}"
_CALLS = rf"{_COUNT}(?:[+/]{_COUNT})?"
_NAMED = r"(?P<name>.*?)(?:\s+<cycle (?P<cycle>[0-9]{1,9})>)?\s+\[(?P<index>[0-9]{1,9})\]"
_PRIMARY = re.compile(
    rf"\[\d+\]\s+(?P<percent>{_NUMBER})\s+(?P<self>{_NUMBER})\s+(?P<children>{_NUMBER})\s+"
    rf"(?:(?P<calls>{_CALLS})\s+)?{_NAMED}"
)
_ARC = re.compile(
    rf"\s+(?:(?P<self>{_NUMBER})\s+(?P<children>{_NUMBER})\s+)?(?P<calls>{_CALLS})\s+{_NAMED}"
)
_WHOLE = re.compile(r"<cycle (?P<cycle>[0-9]{1,9}) as a whole>")
_IN_CYCLE = re.compile(r"(?P<name>.*\S)\s+<cycle (?P<cycle>[0-9]{1,9})>")
_SPONTANEOUS = "<spontaneous>"


@dataclass(frozen=True, slots=True)
class FlatRow:
    """One line of the flat profile; what gprof leaves blank or cannot know is None.

    ``percent`` is gprof's own figure, which may exceed 100; it is None when no time accumulated.
    """

    name: str
    self_s: float
    percent: float | None
    calls: int | None
    self_per_call_s: float | None
    total_per_call_s: float | None
    cycle: int | None = None


@dataclass(frozen=True, slots=True)
class Arc:
    """A line of an entry about a caller or a callee.

    Attributes:
        self_s / children_s: time propagated along the arc; None for calls within a cycle.
        calls: as gprof prints them: ``600/1200``, ``600``; "" for a spontaneous caller.
    """

    name: str
    index: int | None
    self_s: float | None
    children_s: float | None
    calls: str
    cycle: int | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the call graph, of a function or of a cycle as a whole.

    ``calls`` is as printed, ``600+600000`` with recursive calls behind the plus; "" if none.
    """

    index: int
    name: str
    percent: float | None
    self_s: float
    children_s: float
    calls: str
    cycle: int | None
    whole_cycle: bool
    callers: tuple[Arc, ...]
    callees: tuple[Arc, ...]


@dataclass(frozen=True, slots=True)
class GprofProfile:
    """What one output says.

    Attributes:
        sample_s: seconds a sample stands for, None if it does not say.
        accumulated: whether there was any sample; without, times are 0 and shares undefined.
        total_s: time of all functions together; the rounded times of single ones may exceed it.
        notes: lines that could not be read, with their numbers.
    """

    sample_s: float | None
    accumulated: bool
    total_s: float
    flat: tuple[FlatRow, ...]
    graph: tuple[Entry, ...]
    notes: tuple[str, ...] = ()


def parse(text: str) -> GprofProfile:
    """Read one output of gprof, whole or only one of its two parts.

    Raises:
        InputError: there is neither a flat profile nor a call graph.
    """
    reader = _Reader()
    for number, line in enumerate(text.splitlines(), 1):
        reader.take(number, line.rstrip())
    return reader.finish()


@dataclass(slots=True)
class _Reader:
    """State between lines: which part this is, the entry at hand."""

    part: str = ""
    sample_s: float | None = None
    accumulated: bool = True
    total_s: float = 0.0
    per_call_s: float = 1.0
    seen: bool = False
    flat: list[FlatRow] = field(default_factory=list)
    graph: list[Entry] = field(default_factory=list)
    arcs: list[Arc] = field(default_factory=list)
    entry: Entry | None = None
    notes: list[str] = field(default_factory=list)

    def take(self, number: int, line: str) -> None:
        words = line.strip()
        if match := _SAMPLE.fullmatch(words):
            self._sample(match)
        elif words.startswith("no time accumulated"):
            self.accumulated = False
        elif match := _FLAT_HEADER.fullmatch(words):
            self.part, self.seen = "flat", True
            self.per_call_s = _UNITS.get(match["per"] or "s", 1.0)
        elif _GRAPH_HEADER.fullmatch(words):
            self.part, self.seen = "graph", True
        elif "no time propagated" in words:
            self.accumulated = False
        elif self.part == "flat":
            self._flat(number, line)
        elif self.part == "graph":
            self._graph(number, line)

    def _sample(self, match: re.Match[str]) -> None:
        unit = match["unit"]
        if unit.startswith("second"):
            self.sample_s = _float(match["value"])

    def _flat(self, number: int, line: str) -> None:
        if not line.strip():
            return
        if line.lstrip(" \t").startswith(("%", "\f", "Call graph", "granularity:")):  # below it
            self.part = ""
            return
        match = _FLAT.fullmatch(line)
        if match is None:
            self._damage(number, line)
            return
        name, cycle = _split_cycle(match["name"].strip())
        self.total_s = max(self.total_s, _float(match["sum"]) or 0.0)
        self.flat.append(
            FlatRow(
                name=name,
                self_s=_float(match["self"]) or 0.0,
                percent=_float(match["percent"]) if self.accumulated else None,
                calls=int(match["calls"]) if match["calls"] else None,
                self_per_call_s=self._per_call(match["own"]),
                total_per_call_s=self._per_call(match["total"]),
                cycle=cycle,
            )
        )

    def _per_call(self, text: str | None) -> float | None:
        value = _float(text)
        return None if value is None or not self.accumulated else value * self.per_call_s

    def _graph(self, number: int, line: str) -> None:
        words = line.strip()
        if not words:
            return
        if set(words) == {"-"}:
            self._close()
        elif match := _PRIMARY.fullmatch(words):
            self._open(match)
        elif words == _SPONTANEOUS:
            self.arcs.append(Arc(_SPONTANEOUS, None, None, None, ""))
        elif match := _ARC.fullmatch(line):
            self.arcs.append(
                Arc(
                    name=match["name"],
                    index=int(match["index"]),
                    self_s=_float(match["self"]),
                    children_s=_float(match["children"]),
                    calls=match["calls"],
                    cycle=_int(match["cycle"]),
                )
            )
        elif line.startswith(" This table describes") or words.startswith(("Index by", "\f")):
            self._close()
            self.part = ""
        else:
            self._damage(number, line)

    def _open(self, match: re.Match[str]) -> None:
        whole = _WHOLE.fullmatch(match["name"])
        self.entry = Entry(
            index=int(match["index"]),
            name=match["name"],
            percent=_float(match["percent"]) if self.accumulated else None,
            self_s=_float(match["self"]) or 0.0,
            children_s=_float(match["children"]) or 0.0,
            calls=match["calls"] or "",
            cycle=int(whole["cycle"]) if whole else _int(match["cycle"]),
            whole_cycle=whole is not None,
            callers=tuple(self.arcs),
            callees=(),
        )
        self.arcs = []

    def _close(self) -> None:
        if self.entry is not None:
            self.graph.append(replace(self.entry, callees=tuple(self.arcs)))
        self.entry, self.arcs = None, []

    def _damage(self, number: int, line: str) -> None:
        self.notes.append(f"line {number}: {line.strip()[:_SHOWN]!r} cannot be read")

    def finish(self) -> GprofProfile:
        self._close()
        if not self.seen:
            raise InputError(
                "this is no output of gprof: it has neither a flat profile nor a call graph; "
                "give what 'gprof PROGRAM gmon.out' prints"
            )
        of_graph = sum(entry.self_s for entry in self.graph if not entry.whole_cycle)
        return GprofProfile(
            self.sample_s,
            self.accumulated,
            self.total_s if self.flat else of_graph,
            tuple(self.flat),
            tuple(self.graph),
            tuple(self.notes),
        )


def function_times(profile: GprofProfile) -> Iterable[tuple[str, float, float | None]]:
    """Name, self and total seconds of each function; total is None where the graph lacks it.

    Members of a cycle share the cycle's total, which is that of each of them.
    """
    cycles = {
        entry.cycle: entry.self_s + entry.children_s for entry in profile.graph if entry.whole_cycle
    }
    totals: dict[str, float] = {}
    for entry in profile.graph:
        if not entry.whole_cycle:
            own = cycles.get(entry.cycle) if entry.cycle is not None else None
            totals[entry.name] = entry.self_s + entry.children_s if own is None else own
    if profile.flat:
        return [(row.name, row.self_s, totals.get(row.name)) for row in profile.flat]
    return [
        (entry.name, entry.self_s, totals[entry.name])
        for entry in profile.graph
        if not entry.whole_cycle
    ]


def _split_cycle(name: str) -> tuple[str, int | None]:
    match = _IN_CYCLE.fullmatch(name)
    return (match["name"], int(match["cycle"])) if match else (name, None)


def _int(text: str | None) -> int | None:
    return None if text is None else int(text)


def _float(text: str | None) -> float | None:
    if text is None or text.endswith("nan"):
        return None
    return float(text.replace(",", "."))
