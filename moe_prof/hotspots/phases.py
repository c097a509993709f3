"""Which step of the forward a stack belongs to.

Where lines are known, the sources themselves say it: their phase timers mark where each step
begins, and the mark above a line of the same function holds for that line. Elsewhere the names of
functions that serve one step only decide. A step that neither tells stays unknown: the same int8
microkernel computes two of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from moe_prof.collectors.stacks import Frame, Stack
from moe_prof.kernels.build import SOURCE_DIR

PHASES = ("router", "quantize", "bucket", "gate_up", "activation", "down", "combine")

# (pattern in the name of a function of this project, phase), the first that matches
_NAMES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"dequantize"), "down"),
    (re.compile(r"swiglu|::activate\b|\bsilu"), "activation"),
    (re.compile(r"combine"), "combine"),
    (re.compile(r"rout(?:e|er|ing)|Rout(?:e|er)|score|sigmoid|find_above|find_candidates"
                r"|packed::\(anonymous namespace\)::choose\b|\btop_?k|softmax"), "router"),
    (re.compile(r"quantize|absmax"), "quantize"),
    (re.compile(r"[Bb]ucket|::gather\b"), "bucket"),
    (re.compile(r"gate_up"), "gate_up"),
    (re.compile(r"SingleToken::down\b"), "down"),
)  # fmt: skip
_OURS = re.compile(r"\bmoe(?:::|_)")
_PARAMETERS = re.compile(r"\(moe_|\(moe::(?!\(anon)")
_MARK = re.compile(r"enter\([^()]*,\s*MOE_PHASE_(?P<phase>\w+)\)")
_LEAVE = re.compile(r"\bleave\(|\bwait\(|barrier\(")
_SCOPE = re.compile(r"^\s*(?:namespace|class|struct|enum|union|extern)\b")
_STRING_OR_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'|//.*')


def phase_of(stack: Stack, *, callers: bool = True) -> str:
    """The phase of a stack's cost, "" when unknown; the innermost frame that tells decides.

    Args:
        callers: whether the stack's callers can be relied on; else its last function alone tells.
    """
    frames = stack.frames if callers else stack.frames[-1:]
    for frame in reversed(frames):
        found = _by_line(frame)
        if found:
            return found
    for frame in reversed(frames):
        found = by_name(frame.function)
        if found:
            return found
    return ""


@cache
def by_name(function: str) -> str:
    """The phase that a function of this project alone belongs to, "" for any other."""
    name = _without_parameters(function)
    if not _OURS.search(name):
        return ""
    return next((phase for pattern, phase in _NAMES if pattern.search(name)), "")


def _without_parameters(function: str) -> str:
    """The name without its argument list, whose types would mislead."""
    match = _PARAMETERS.search(function)
    return function[: match.start()] if match else function


def _by_line(frame: Frame) -> str:
    if frame.line is None or "/kernels/cpp/" not in frame.file:
        return ""
    name = frame.file.rpartition("/kernels/cpp/")[2]
    return _marks(name).get(frame.line, "")


@cache
def _marks(name: str) -> Mapping[int, str]:
    """Phase by line of one of this project's sources, empty when it is not there."""
    try:
        return marked_lines((SOURCE_DIR / "cpp" / Path(name)).read_text(encoding="utf-8"))
    except OSError:
        return {}


def marked_lines(source: str) -> dict[int, str]:
    """Phase by line number: from each mark to the next one or to the end of its function."""
    reader = _Marks()
    for number, line in enumerate(source.splitlines(), 1):
        reader.take(number, _STRING_OR_COMMENT.sub("", line))
    return reader.found


@dataclass
class _Marks:
    """Open braces, and the phase since the last mark; a function is the outermost code brace."""

    braces: list[bool] = field(default_factory=list)  # True for code, False for scopes of names
    scope_begun: bool = False
    phase: str = ""
    found: dict[int, str] = field(default_factory=dict)

    def take(self, number: int, line: str) -> None:
        if _SCOPE.match(line):
            self.scope_begun = True
        if mark := _MARK.search(line):
            self.phase = mark["phase"].lower()
        elif _LEAVE.search(line):
            self.phase = ""
        if self.phase:
            self.found[number] = self.phase
        for character in line:
            if character == "{":
                self.braces.append(not self.scope_begun)
                self.scope_begun = False
            elif character == "}" and self.braces:
                self.braces.pop()
                if True not in self.braces:
                    self.phase = ""
            elif character == ";":
                self.scope_begun = False
