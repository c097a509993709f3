"""Which tools wrote a text: a file is cut where another tool's output begins.

A line that only one tool prints begins its part, which goes on to the next such line of another
tool; what stands before the first one is the program's own. Lines of scattered kinds are taken out
first, wherever they stand. A text without any such line is asked from each kind in turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from moe_prof.errors import InputError
from moe_prof.importing.base import Found, Kind, Labels, Part, clean_line

# quoted mail, mpirun --tag-output, srun --label
_MARGINS = (
    re.compile(r">(?: |$)"), re.compile(r"\[\d+,\d+\]<std(?:out|err)>: ?"),
    re.compile(r"\s?\d+:(?: |$)"),
)  # fmt: skip
UNEXPECTED = "damaged in a way that was not foreseen; please report it with the file"
_MARGIN_LINES = 5000


def read_text(
    lines: Sequence[str], kinds: Sequence[Kind], labels: Labels
) -> list[tuple[Kind, Found]]:
    """Everything that known tools say in a text, in the order of the kinds; empty if there is none.

    Raises:
        InputError: what was found could not be read.
    """
    cleaned = _without_margin(tuple(clean_line(line).rstrip() for line in lines))
    parts = find_parts(cleaned, kinds)
    found: list[tuple[Kind, Found]] = []
    failures: list[tuple[Kind, InputError]] = []
    for kind, part in parts:
        try:
            found.append((kind, kind.read(part, labels)))
        except InputError as error:
            failures.append((kind, error))
        except (ArithmeticError, LookupError, RecursionError, ValueError) as error:
            failures.append((kind, InputError(f"{UNEXPECTED} ({type(error).__name__}: {error})")))
    if failures and not found:
        raise failures[0][1]
    found += [
        (kind, Found((), (f"the part of {kind.title} cannot be read: {failure}",)))
        for kind, failure in failures
    ]
    return found


def _without_margin(lines: tuple[str, ...]) -> tuple[str, ...]:
    """The lines without what stands before each of them: a quote's mark, a number, blanks."""
    filled = [line for line in lines[:_MARGIN_LINES] if line.strip()]
    for margin in _MARGINS:
        if len(filled) > 1 and all(margin.match(line) for line in filled):
            lines = tuple(margin.sub("", line, count=1) for line in lines)
            filled = [margin.sub("", line, count=1) for line in filled]
    blanks = min((len(line) - len(line.lstrip(" ")) for line in filled), default=0)
    return tuple(line[blanks:] for line in lines) if blanks else lines


def find_parts(lines: tuple[str, ...], kinds: Sequence[Kind]) -> list[tuple[Kind, Part]]:
    """Each tool's part of the text; a tool that comes several times has one part."""
    everything = Part(lines)
    for kind in kinds:
        if kind.whole and kind.whole(everything):
            return [(kind, everything)]
    parts: list[tuple[Kind, Part]] = []
    rest = list(lines)
    for kind in (kind for kind in kinds if kind.scattered and kind.starts):
        own = [n for n, line in enumerate(rest) if line and kind.starts(line)]  # type: ignore[misc]
        if own:
            parts.append((kind, _part(len(rest), rest, own)))
            for n in own:
                rest[n] = ""
    sections = _sections(rest, [kind for kind in kinds if kind.starts and not kind.scattered])
    for kind in kinds:
        own = [n for start, end, owner in sections if owner is kind for n in range(start, end)]
        if own:
            parts.append((kind, _part(len(rest), rest, own)))
    if not sections and (whole := Part(tuple(rest))).text.strip():
        fitting = next((kind for kind in kinds if kind.fits and kind.fits(whole)), None)
        if fitting:
            parts.append((fitting, whole))
    return sorted(parts, key=lambda pair: kinds.index(pair[0]))


def _sections(lines: Sequence[str], kinds: Sequence[Kind]) -> list[tuple[int, int, Kind]]:
    """(first line, line after the last, kind) of every stretch of one tool."""
    starts: list[tuple[int, Kind]] = []
    for n, line in enumerate(lines):
        if not line or (len(line) > 1 and line.isspace()):
            continue
        kind = next((kind for kind in kinds if kind.starts(line)), None)  # type: ignore[misc]
        if kind is not None and (not starts or starts[-1][1] is not kind):
            starts.append((n, kind))
    ends = [n for n, _ in starts[1:]] + [len(lines)]
    return [(start, end, kind) for (start, kind), end in zip(starts, ends, strict=False)]


def _part(length: int, lines: Sequence[str], own: Iterable[int]) -> Part:
    kept = [""] * length
    for n in own:
        kept[n] = lines[n]
    return Part(tuple(kept))
