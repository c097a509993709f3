"""Reading the output of ``perf script``: text in, samples out, one at a time.

A sample is a header line (command, pid/tid, cpu, time, period, event) and, with call stacks, one
line a frame, innermost first, up to a blank line. Which fields a header has depends on how was
recorded and on ``-F``; commands may hold blanks and look like anything. Memory is bounded: nothing
is kept but the sample at hand.

Source: perf-script(1); ``tools/perf/builtin-script.c`` and ``util/evsel_fprintf.c``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

Report = Callable[[int, str], None]
"""Is told the number of a line, counted from 1, and what is wrong with it."""

_SHOWN = 60
_HEADER_MOST = 1000  # characters; longer lines are symbols of C++ or no text at all
_EVENT = r"(?P<event>(?=\S*[A-Za-z])\S+?):(?=\s|$)(?P<rest>.*)"
_WHO = r"(?P<comm>\S.*?)\s+(?:(?P<pid>-?\d+)/\s*)?(?P<tid>-?\d+)\s+(?:\[(?P<cpu>\d+)\]\s+)?"
_FLAGS = r"(?:(?=\S*[.A-Za-z])[.\w]{2,8}\s+)?"
_TIMED = re.compile(rf"{_WHO}{_FLAGS}(?P<time>\d+\.\d+):\s+(?:(?P<period>\d+)\s+)?{_EVENT}")
_TIME = re.compile(r"\d\.\d+:\s")  # a cheap look before the dear one
_TIMELESS = re.compile(rf"{_WHO}(?:(?P<period>\d+)\s+)?{_EVENT}")
_RECORD = re.compile(r"PERF_RECORD_\w+")
_FRAME = re.compile(r"\s*(?P<ip>[0-9a-fA-F]+)(?:\s+(?P<rest>\S.*?))?\s*")
_OFFSET = re.compile(r"(?P<name>.*)\+0x(?P<offset>[0-9a-fA-F]+)")
_INLINED = "(inlined)"
_SRCLINE = re.compile(r"(?P<file>\S.*):(?P<line>\d+)")


@dataclass(frozen=True, slots=True)
class ScriptFrame:
    """One line of a call stack.

    Attributes:
        symbol: the function; None when perf could not resolve it.
        offset: of the instruction from the symbol's begin, None when not printed.
        dso: the file it is loaded from; None when not printed or unknown.
        address: as printed: within the dso's file with ``-F ...symoff`` and without ``--verbose``.
        inlined: perf found it by line information inside the next frame.
    """

    symbol: str | None
    offset: int | None
    dso: str | None
    address: int
    inlined: bool = False


@dataclass(frozen=True, slots=True)
class ScriptSample:
    """One sample; a field that was not printed is None.

    ``frames`` run from the innermost one outwards. ``period`` is the event count that the sample
    stands for, in the event's own unit (nanoseconds for cpu-clock and task-clock).
    """

    event: str
    comm: str
    pid: int | None
    tid: int
    cpu: int | None
    time_s: float | None
    period: int | None
    frames: tuple[ScriptFrame, ...]
    line: int


def read_samples(lines: Iterable[str], report: Report) -> Iterator[ScriptSample]:
    """The samples of a script, streamed.

    Args:
        lines: with or without their line ends.
        report: is told of every line that is neither a sample, a frame, a comment nor a record
            of another kind; the samples around it are read all the same.
    """
    reader = _Reader(report)
    number, raw = 0, ""
    for number, raw in enumerate(lines, 1):
        yield from reader.take(number, raw.rstrip("\r\n"))
    yield from reader.finish(number, raw)


@dataclass(frozen=True, slots=True)
class _Head:
    """The fields of a header line; ``complete`` when the frame stands on the same line."""

    event: str
    comm: str
    pid: int | None
    tid: int
    cpu: int | None
    time_s: float | None
    period: int | None
    frames: tuple[ScriptFrame, ...]
    complete: bool
    line: int

    def sample(self, frames: list[ScriptFrame]) -> ScriptSample:
        return ScriptSample(
            self.event, self.comm, self.pid, self.tid, self.cpu, self.time_s, self.period,
            tuple(frames), self.line,
        )  # fmt: skip


class _Reader:
    """The sample at hand."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._begun: _Head | None = None
        self._frames: list[ScriptFrame] = []

    def take(self, number: int, line: str) -> Iterator[ScriptSample]:
        if not line or line.isspace():
            yield from self._end()
        elif line[0] == "\t" or (self._begun is not None and line[0] == " "):
            if not self._take_frame(number, line):
                yield from self._take_head(number, line)
        elif line[0] != "#":
            yield from self._take_head(number, line)

    def finish(self, number: int, raw: str) -> Iterator[ScriptSample]:
        """The last sample; ``raw`` is the last line, whose end may be missing."""
        if self._frames and raw[-1:] not in {"\n", "\r", ")"} and _is_cut(self._frames):
            self._complain(number, "the file ends in the middle of a line", raw)
            self._frames.pop()
        yield from self._end()

    def _take_frame(self, number: int, line: str) -> bool:
        found = _frame(line)
        if found is None:  # with -F +srcline, each frame is followed by its source line
            return bool(self._frames) and _SRCLINE.fullmatch(line.strip()) is not None
        if self._begun is None:
            self._complain(number, "a frame outside any sample", line)
        else:
            self._frames.append(found)
        return True

    def _take_head(self, number: int, line: str) -> Iterator[ScriptSample]:
        if _RECORD.search(line, 0, _HEADER_MOST):
            return
        found = _head(line, number)
        if found is None:
            self._complain(number, "neither a sample nor a frame", line)
            return
        yield from self._end()
        self._begun, self._frames = found, list(found.frames)
        if found.complete:
            yield from self._end()

    def _end(self) -> Iterator[ScriptSample]:
        if self._begun is not None:
            yield self._begun.sample(self._frames)
        self._begun, self._frames = None, []

    def _complain(self, number: int, trouble: str, line: str) -> None:
        self._report(number, f"{trouble}: {line.strip()[:_SHOWN]!r}")


def _head(line: str, number: int) -> _Head | None:
    words = line.strip()
    if len(words) > _HEADER_MOST:
        return None
    match = _TIMED.fullmatch(words)
    timed = match is not None
    match = match or _TIMELESS.fullmatch(words)
    if match is None:
        return None
    rest = match["rest"].strip()
    frame = _frame(rest) if rest else None
    return _Head(
        event=match["event"],
        comm=match["comm"],
        pid=_int(match["pid"]),
        tid=int(match["tid"]),
        cpu=_int(match["cpu"]),
        time_s=float(match["time"]) if timed else None,
        period=_int(match["period"]),
        frames=(frame,) if frame is not None else (),
        complete=frame is not None,
        line=number,
    )


def _int(text: str | None) -> int | None:
    return None if text is None else int(text)


@lru_cache(maxsize=1 << 16)
def _frame(line: str) -> ScriptFrame | None:
    """An address, then a symbol or a file; a header's command may be such a number, too."""
    match = _FRAME.fullmatch(line)
    if match is None:
        return None
    if len(line) <= _HEADER_MOST and _TIME.search(line) and _TIMED.fullmatch(line.strip()):
        return None
    rest, dso, inlined = match["rest"] or "", None, False
    if rest.endswith(_INLINED):
        rest, inlined = rest.removesuffix(_INLINED).rstrip(), True
    elif rest.endswith(")"):
        rest, dso = _split_dso(rest)
    symbol, offset = rest.strip(), None
    if found := _OFFSET.fullmatch(symbol):
        symbol, offset = found["name"], int(found["offset"], 16)
    return ScriptFrame(
        symbol=None if symbol in {"", "[unknown]"} else symbol,
        offset=offset,
        dso=None if dso in {None, "", "[unknown]"} else dso,
        address=int(match["ip"], 16),
        inlined=inlined,
    )


def _split_dso(text: str) -> tuple[str, str]:
    """The file in the last parentheses, which may hold parentheses itself: ``(lib (deleted))``."""
    last = text.rfind("(")
    if last >= 0 and text.find(")", last) == len(text) - 1 and not text.endswith("))"):
        return text[:last].rstrip(), text[last + 1 : -1]
    depth = 0
    for index in range(len(text) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(text[index], 0)
        if depth == 0:
            return text[:index].rstrip(), text[index + 1 : -1]
    return text, ""


def _is_cut(frames: list[ScriptFrame]) -> bool:
    last = frames[-1]
    return last.dso is None and not last.inlined and any(f.dso is not None for f in frames[:-1])
