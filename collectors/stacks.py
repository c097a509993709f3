"""Profiles as weighted call stacks: the common form of what samplers and call graphs say.

A stack runs from the outermost frame to the innermost one, where the cost arose. The folded form
(``outer;inner weight``, one stack a line) is the one that flame graph tools read and write.

Source: the folded format of the FlameGraph scripts (stackcollapse-perf.pl, flamegraph.pl).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from moe_prof.errors import InputError
from moe_prof.rows import Provenance, Row, Scope

UNKNOWN = "[unknown]"
_THREAD = "thread "
_DAMAGE_SHOWN = 60
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


@dataclass(frozen=True, slots=True)
class Frame:
    """One function on a stack.

    Attributes:
        function: its name, demangled where possible; ``[unknown]`` when unresolved.
        module: the file it is loaded from, "" when not known.
        file / line: source position of the cost or of the call, "" and None when not known.
        address: of the instruction within the module's file, None when not known.
        inlined: the function has no frame of its own, its caller's code contains it.
    """

    function: str
    module: str = ""
    file: str = ""
    line: int | None = None
    address: int | None = None
    inlined: bool = False

    @property
    def module_name(self) -> str:
        """The module without its folder."""
        return self.module.rsplit("/", 1)[-1]


@dataclass(frozen=True, slots=True)
class Stack:
    """Cost that arose at the last frame, called by those before it.

    Attributes:
        frames: outermost first; may be empty where a sampler saw none.
        weight: in the profile's unit.
        samples: how many samples make up the weight, 0 where there are none (call graphs).
        thread: label of the thread, "" when not known.
        phase: the forward's step, "" when not known.
        waiting: the thread waited for others here instead of working.
    """

    frames: tuple[Frame, ...]
    weight: float
    samples: int = 1
    thread: str = ""
    phase: str = ""
    waiting: bool = False


@dataclass(frozen=True, slots=True)
class Profile:
    """A whole profile.

    Attributes:
        collector: who made it.
        event: what was sampled or counted, in the tool's own words.
        unit: of the weights: ``s``, ``instructions``, ``samples``...
        scope: what was counted: ``roi`` is the forward loop only.
        notes: remarks for the reader: what limits the figures, damaged lines.
        rows: further figures that the tool gives, without scenario and variant.
    """

    collector: str
    event: str
    unit: str
    stacks: tuple[Stack, ...]
    provenance: Provenance = "measured"
    scope: Scope = "roi"
    notes: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()

    @property
    def total(self) -> float:
        """The sum of all weights."""
        return math.fsum(stack.weight for stack in self.stacks)

    @property
    def samples(self) -> int:
        """The number of samples."""
        return sum(stack.samples for stack in self.stacks)

    @property
    def has_callers(self) -> bool:
        """Whether stacks go beyond the function at hand; without, totals are not known."""
        return any(sum(not f.inlined for f in stack.frames) > 1 for stack in self.stacks)

    @property
    def threads(self) -> tuple[str, ...]:
        """Labels of the threads, numbers by value; empty when no thread is known."""
        labels = {stack.thread for stack in self.stacks if stack.thread}
        return tuple(sorted(labels, key=lambda label: (not label.isdecimal(), len(label), label)))


def merged(stacks: Iterable[Stack]) -> tuple[Stack, ...]:
    """Equal stacks of a thread and phase added up, in the order of their first appearance."""
    sums: dict[Stack, list[float]] = {}
    for stack in stacks:
        entry = sums.setdefault(replace(stack, weight=0.0, samples=0), [0.0, 0])
        entry[0] += stack.weight
        entry[1] += stack.samples
    return tuple(
        replace(stack, weight=weight, samples=int(samples))
        for stack, (weight, samples) in sums.items()
    )


def mapped(profile: Profile, change: Callable[[Stack], Stack]) -> Profile:
    """The profile with every stack changed, equal ones then added up."""
    return replace(profile, stacks=merged(change(stack) for stack in profile.stacks))


def integer_weights(weights: Sequence[float]) -> list[int]:
    """Whole numbers close to the weights, whose sum is the rounded sum of the weights.

    Viewers read whole numbers; rounding each one by itself would lose small ones together.
    """
    done = 0
    exact = 0.0
    result = []
    for weight in weights:
        exact += weight
        result.append(round(exact) - done)
        done += result[-1]
    return result


def write_folded(profile: Profile, *, scale: float = 1.0) -> str:
    """The folded form; a thread is the outermost frame, names keep no semicolon.

    Args:
        scale: factor before rounding to whole numbers, such as 1e6 for seconds.
    """
    sums: dict[str, float] = {}
    for stack in profile.stacks:
        sums[_folded_names(stack)] = sums.get(_folded_names(stack), 0.0) + stack.weight * scale
    weights = integer_weights(list(sums.values()))
    return "".join(
        f"{names} {weight}\n" for names, weight in zip(sums, weights, strict=True) if weight
    )


def read_folded(lines: Iterable[str], report: Callable[[int, str], None]) -> Iterator[Stack]:
    """Stacks of a folded file, line by line; only the last blank separates names and weight.

    Args:
        report: is told the number and the trouble of each line that cannot be read.
    """
    for number, raw in enumerate(lines, 1):
        line = raw.rstrip("\r\n")
        if not line.strip() or line.startswith("#"):
            continue
        names, blank, text = line.rstrip().rpartition(" ")
        if not blank or not _NUMBER.fullmatch(text):
            report(number, f"{line[:_DAMAGE_SHOWN]!r} does not end in a weight")
            continue
        yield Stack(_frames(names.rstrip()), float(text), samples=0)


def parse_folded(text: str) -> Profile:
    """A whole folded file; the thread of files that were written here is found again.

    Raises:
        InputError: not one line can be read.
    """
    notes: list[str] = []
    found = read_folded(
        text.splitlines(), lambda number, trouble: notes.append(f"line {number}: {trouble}")
    )
    stacks = merged(_with_thread(stack) for stack in found)
    if not stacks:
        why = notes[0] if notes else "it is empty"
        raise InputError(f"this is no folded profile ({why}); each line must be 'outer;inner 12'")
    return Profile("folded", "", "samples", stacks, scope="process", notes=tuple(notes))


def by_function(stacks: Iterable[Stack]) -> Mapping[tuple[str, str], tuple[float, float]]:
    """Self and total weight by (function, module); a recursive function is counted once a stack."""
    sums: dict[tuple[str, str], list[float]] = {}
    for stack in stacks:
        for key in {(frame.function, frame.module) for frame in stack.frames}:
            sums.setdefault(key, [0.0, 0.0])[1] += stack.weight
        if stack.frames:
            leaf = stack.frames[-1]
            sums[leaf.function, leaf.module][0] += stack.weight
    return {key: (own, total) for key, (own, total) in sums.items()}


def _folded_names(stack: Stack) -> str:
    names = [_folded_name(frame.function) for frame in stack.frames] or [UNKNOWN]
    if stack.thread:
        names.insert(0, _THREAD + _folded_name(stack.thread))
    return ";".join(names)


def _folded_name(name: str) -> str:
    return " ".join(name.replace(";", ":").split()) or UNKNOWN


@lru_cache(maxsize=4096)
def _frames(names: str) -> tuple[Frame, ...]:
    return tuple(Frame(name or UNKNOWN) for name in names.split(";"))


def _with_thread(stack: Stack) -> Stack:
    first = stack.frames[0].function
    if not first.startswith(_THREAD):
        return stack
    return replace(stack, frames=stack.frames[1:], thread=first.removeprefix(_THREAD))
