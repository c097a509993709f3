"""Reading callgrind.out and cachegrind.out: text in, costs by function and by instruction out.

Both tools write one family of formats. Its difficulties: names are written once as ``(7) name`` and
then as ``(7)``; positions may be relative to the line before (``+3``, ``-2``, ``*``); zeros at the
end of a cost line are left out; the line after ``calls=`` holds the callee's inclusive cost, which
is no cost of the caller itself; several threads or dumps may share a file; and a file that was cut
off looks like a valid one with smaller numbers, unless it is compared with its own totals.

Source: valgrind manual, "Callgrind Format Specification"; the summary line of cachegrind.out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from moe_prof.errors import InputError

UNKNOWN = "???"

_NAMED = re.compile(r"\((?P<id>\d+)\)(?: (?P<name>.*))?")
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|\d+")
_POSITION = re.compile(r"\*|[+-]?(?:0[xX][0-9a-fA-F]+|\d+)")
_SPEC = re.compile(r"(?P<key>c?(?:ob|fl|fi|fe|fn)|j(?:ob|fi|fl|fn))=(?P<value>.*)")
_HEADER = re.compile(r"(?P<key>[A-Za-z][A-Za-z0-9 ]*):(?P<value>.*)")
_NAMESPACE = {"ob": "object", "fl": "file", "fi": "file", "fe": "file", "fn": "function"}


@dataclass(frozen=True, slots=True)
class FunctionKey:
    """A function: where it is loaded from, the source file it starts in, and its name."""

    object: str
    file: str
    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """Calls from one function to another: how often, and inclusive cost per event."""

    caller: FunctionKey
    callee: FunctionKey
    count: int
    cost: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Site:
    """A place in a function: file and line of the source (that of inlined code, where it is), and
    the address in the object file, None without --dump-instr=yes."""

    function: FunctionKey
    file: str
    line: int | None
    address: int | None


@dataclass(frozen=True, slots=True)
class InstructionCost:
    """One instruction: the function it was executed in and its self cost per event."""

    function: FunctionKey
    cost: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CallgrindProfile:
    """What one file says, added up over its threads and parts.

    Attributes:
        events: names in the order of the file; every cost tuple follows it.
        totals: the file's own totals where it has them, else the sum of what could be read.
        body: the sum over all self costs that were read.
        summary: the header's summary line, empty when there is none.
        complete: the body adds up to the totals that the file states.
        incomplete_reason: why not, "" when complete.
        functions: self cost by function.
        instructions: self cost by (object, address); empty without --dump-instr=yes. Addresses are
            those of the object file, not of the process.
        calls: call edges with inclusive cost.
        sites: self cost by place, the finest that the file has.
        call_sites: inclusive cost of calls by the place of the call and the callee.
        header: other header lines by key (creator, cmd, pid; ``desc`` lines under their own key).
        parts: number of threads and dumps in the file.
    """

    events: tuple[str, ...]
    totals: Mapping[str, int]
    body: Mapping[str, int]
    summary: Mapping[str, int]
    complete: bool
    incomplete_reason: str
    functions: Mapping[FunctionKey, tuple[int, ...]]
    instructions: Mapping[tuple[str, int], InstructionCost]
    calls: tuple[Call, ...]
    header: Mapping[str, str]
    parts: int
    sites: Mapping[Site, tuple[int, ...]] = field(default_factory=dict)
    call_sites: Mapping[tuple[Site, FunctionKey], tuple[int, ...]] = field(default_factory=dict)

    def self_cost(self, event: str) -> dict[FunctionKey, int]:
        """Self cost of every function for one event, largest first."""
        index = self.events.index(event)
        ordered = sorted(self.functions.items(), key=lambda item: -item[1][index])
        return {key: cost[index] for key, cost in ordered}

    def inclusive_cost(self, event: str) -> dict[FunctionKey, int]:
        """Self cost plus that of callees; a function's calls of itself are not added twice.

        Mutual recursion is counted once per level, as the file itself does.
        """
        index = self.events.index(event)
        total = {key: cost[index] for key, cost in self.functions.items()}
        for call in self.calls:
            if call.caller != call.callee:
                total[call.caller] = total.get(call.caller, 0) + call.cost[index]
        return dict(sorted(total.items(), key=lambda item: -item[1]))


def parse(text: str, report: Callable[[int, str], None] | None = None) -> CallgrindProfile:
    """Read one file.

    Args:
        report: is told the number and the trouble of each line that breaks the format; all other
            lines are read. Without it such a line is an error.

    Raises:
        InputError: the text is not of this format, or a line breaks it.
    """
    reader = _Reader()
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        try:
            reader.take(line.rstrip("\r"))
        except _MalformedError as error:
            if number == len(lines):  # no line end: the file was cut in the middle of this line
                reader.cut_off = True
                break
            if report is not None:
                report(number, str(error))
                continue
            raise InputError(
                f"callgrind output, line {number}: {error}; the file is damaged or of another kind"
            ) from error
    return reader.finish()


class _MalformedError(Exception):
    """A line that the format does not allow."""


@dataclass(slots=True)
class _Reader:
    """The state between lines: current names, last positions, sums so far."""

    events: tuple[str, ...] = ()
    position_names: tuple[str, ...] = ("line",)
    positions: list[int] = field(default_factory=lambda: [0])
    names: dict[str, dict[int, str]] = field(
        default_factory=lambda: {"object": {}, "file": {}, "function": {}}
    )
    current: dict[str, str] = field(
        default_factory=lambda: {"object": "", "file": UNKNOWN, "function": UNKNOWN}
    )
    start_file: str = UNKNOWN
    callee: dict[str, str] = field(default_factory=dict)
    pending_calls: int | None = None
    functions: dict[FunctionKey, list[int]] = field(default_factory=dict)
    instructions: dict[tuple[str, int], tuple[FunctionKey, list[int]]] = field(default_factory=dict)
    calls: dict[tuple[FunctionKey, FunctionKey], tuple[list[int], list[int]]] = field(
        default_factory=dict
    )
    sites: dict[Site, list[int]] = field(default_factory=dict)
    call_sites: dict[tuple[Site, FunctionKey], list[int]] = field(default_factory=dict)
    header: dict[str, str] = field(default_factory=dict)
    summaries: list[list[int]] = field(default_factory=list)
    totals: list[list[int]] = field(default_factory=list)
    seen_cost: bool = False
    closing_summary: bool = False
    parts: int = 0
    cut_off: bool = False

    def take(self, line: str) -> None:
        if not line.strip() or line.startswith("#"):
            return
        first = line[0]
        if first.isdigit() or first in "+-*":
            self._cost_line(line)
            return
        if match := _SPEC.fullmatch(line):
            self._name_line(match["key"], match["value"])
        elif line.startswith("calls="):
            self._calls_line(line.removeprefix("calls="))
        elif line.startswith(("jump=", "jcnd=")):
            return
        elif match := _HEADER.fullmatch(line):
            self._header_line(match["key"], match["value"].strip())
        else:
            raise _MalformedError(f"{line[:60]!r} is neither a cost, a name nor a header")

    def _header_line(self, key: str, value: str) -> None:
        if key == "events":
            self._events_line(value)
        elif key == "positions":
            self.position_names = tuple(value.split())
            self.positions = [0] * len(self.position_names)
        elif key == "summary":
            self.closing_summary = self.seen_cost
            self.summaries.append(self._costs(value.split()))
        elif key == "totals":
            self.totals.append(self._costs(value.split()))
        elif key == "desc":
            name, _, text = value.partition(":")
            self.header[name.strip()] = text.strip()
        else:
            self.header.setdefault(key, value)

    def _events_line(self, value: str) -> None:
        events = tuple(value.split())
        if not events:
            raise _MalformedError("the events line names no event")
        if self.events and events != self.events:
            raise _MalformedError(f"events change from {self.events} to {events} within one file")
        self.events = events
        self.parts += 1
        self.positions = [0] * len(self.position_names)

    def _name_line(self, key: str, value: str) -> None:
        if key.startswith("j"):
            self._resolve(_NAMESPACE[key[1:]], value)
        elif key.startswith("c"):
            space = _NAMESPACE[key[1:]]
            self.callee[space] = self._resolve(space, value)
        else:
            space = _NAMESPACE[key]
            self.current[space] = self._resolve(space, value)
            if space == "function":  # fi= and fe= name inlined code inside, not another function
                self.start_file = self.current["file"]

    def _resolve(self, space: str, value: str) -> str:
        match = _NAMED.fullmatch(value)
        if match is None:
            return value
        number, name = int(match["id"]), match["name"]
        known = self.names[space]
        if name is not None:
            known[number] = name
        elif number not in known:
            raise _MalformedError(f"{space} ({number}) is used before it is named")
        return known[number]

    def _calls_line(self, value: str) -> None:
        words = value.split()
        if not words or not _NUMBER.fullmatch(words[0]) or "function" not in self.callee:
            raise _MalformedError(f"calls={value!r} has no count or no callee")
        self.pending_calls = _number(words[0])

    def _cost_line(self, line: str) -> None:
        if not self.events:
            raise _MalformedError("costs before the events are named")
        words = line.split()
        count = len(self.position_names)
        if len(words) < count:
            raise _MalformedError(f"{line!r} has fewer than {count} positions")
        for index, word in enumerate(words[:count]):
            self.positions[index] = self._position(index, word)
        cost = self._costs(words[count:])
        if self.pending_calls is not None:
            self._finish_call(self.pending_calls, cost)
            return
        if len(words) == count:
            return  # the source position of a jump: no cost
        self.seen_cost = True
        key = self._caller()
        _add(self.functions.setdefault(key, [0] * len(self.events)), cost)
        _add(self.sites.setdefault(self._site(key), [0] * len(self.events)), cost)
        if "instr" in self.position_names:
            address = self.positions[self.position_names.index("instr")]
            place = (self.current["object"], address)
            entry = self.instructions.setdefault(place, (key, [0] * len(self.events)))
            _add(entry[1], cost)

    def _position(self, index: int, word: str) -> int:
        if not _POSITION.fullmatch(word):
            raise _MalformedError(f"{word!r} is not a position")
        if word == "*":
            return self.positions[index]
        if word[0] in "+-":
            step = _number(word[1:])
            return self.positions[index] + (step if word[0] == "+" else -step)
        return _number(word)

    def _finish_call(self, count: int, cost: list[int]) -> None:
        caller = self._caller()
        names = {**self.current, **self.callee}
        callee = FunctionKey(names["object"], names["file"], names["function"])
        counter, sums = self.calls.setdefault((caller, callee), ([0], [0] * len(self.events)))
        counter[0] += count
        _add(sums, cost)
        place = (self._site(caller), callee)
        _add(self.call_sites.setdefault(place, [0] * len(self.events)), cost)
        self.callee = {}
        self.pending_calls = None

    def _costs(self, words: list[str]) -> list[int]:
        if len(words) > len(self.events):
            raise _MalformedError(f"{len(words)} costs for {len(self.events)} events")
        if not all(word == "." or _NUMBER.fullmatch(word) for word in words):
            raise _MalformedError(f"{' '.join(words)[:60]!r} is not a list of costs")
        values = [0 if word == "." else _number(word) for word in words]
        return values + [0] * (len(self.events) - len(values))

    def _site(self, function: FunctionKey) -> Site:
        found = dict(zip(self.position_names, self.positions, strict=True))
        return Site(function, self.current["file"], found.get("line"), found.get("instr"))

    def _caller(self) -> FunctionKey:
        return FunctionKey(self.current["object"], self.start_file, self.current["function"])

    def finish(self) -> CallgrindProfile:
        if not self.events:
            raise InputError(
                "this is no callgrind or cachegrind output: it has no 'events:' line; "
                "give the file that --callgrind-out-file or --cachegrind-out-file named"
            )
        body = _sum(self.functions.values(), len(self.events))
        summary = _sum(self.summaries, len(self.events))
        stated = self._stated_totals(summary)
        reason = self._incomplete_reason(stated, body)
        return CallgrindProfile(
            events=self.events,
            totals=self._named(stated if stated is not None else body),
            body=self._named(body),
            summary=self._named(summary) if self.summaries else {},
            complete=not reason,
            incomplete_reason=reason,
            functions={key: tuple(cost) for key, cost in self.functions.items()},
            instructions={
                place: InstructionCost(key, tuple(cost))
                for place, (key, cost) in self.instructions.items()
            },
            calls=tuple(
                Call(caller, callee, counter[0], tuple(cost))
                for (caller, callee), (counter, cost) in self.calls.items()
            ),
            header=self.header,
            parts=self.parts,
            sites={site: tuple(cost) for site, cost in self.sites.items()},
            call_sites={place: tuple(cost) for place, cost in self.call_sites.items()},
        )

    def _named(self, cost: list[int]) -> dict[str, int]:
        return dict(zip(self.events, cost, strict=True))

    def _stated_totals(self, summary: list[int]) -> list[int] | None:
        """Totals as the file gives them: ``totals:`` lines, or cachegrind's closing summary."""
        if self.totals and len(self.totals) == self.parts:
            return _sum(self.totals, len(self.events))
        if self.closing_summary or (self.summaries and any(summary)):
            return summary
        return None

    def _incomplete_reason(self, stated: list[int] | None, body: list[int]) -> str:
        if self.cut_off:
            return "the file ends in the middle of a line"
        if stated is None:
            return "the file ends without its totals: it was cut off"
        if stated != body:
            return (
                f"the lines add up to {body[0]} {self.events[0]}, the file states {stated[0]}: "
                "it was cut off or shortened"
            )
        return ""


def _number(word: str) -> int:
    return int(word, 16) if word[:2] in {"0x", "0X"} else int(word)


def _add(into: list[int], cost: list[int]) -> None:
    for index, value in enumerate(cost):
        into[index] += value


def _sum(costs: Iterable[list[int]], width: int) -> list[int]:
    total = [0] * width
    for cost in costs:
        _add(total, cost)
    return total
