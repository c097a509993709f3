"""One file from its name to rows: open, recognise, read, in memory or line by line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from moe_prof.errors import InputError, UnavailableError
from moe_prof.importing import complaints
from moe_prof.importing.base import Found, Kind, Labels
from moe_prof.importing.kinds import KINDS
from moe_prof.importing.recognise import find_parts, read_text
from moe_prof.importing.source import LARGE_BYTES, Source, line_stream, read_lines
from moe_prof.rows import Row


@dataclass(frozen=True, slots=True)
class Imported:
    """One file's content.

    Attributes:
        name: as the user gave it.
        titles: of the kinds that were found in it.
        rows: all rows.
        remarks: about damaged places and what else a reader must know.
        subjects: what was measured, as the tools name it.
    """

    name: str
    titles: tuple[str, ...]
    rows: tuple[Row, ...]
    remarks: tuple[str, ...]
    subjects: tuple[str, ...]


def load(source: Source, labels: Labels, step: Callable[[float], None]) -> Imported:
    """Everything that known tools say in a file.

    Args:
        step: is told which share of a large file has been read.

    Raises:
        InputError: in one line that names the file: nothing known was found in it, or nothing
            could be read.
        UnavailableError: a tool says in it why it could not measure.
    """
    remarks: list[str] = []
    try:
        found = _read(source, labels, step, remarks)
    except (InputError, UnavailableError) as error:
        text = str(error)
        if text.startswith(source.name):
            raise
        raise type(error)(f"{source.name}: {text}") from error
    rows = tuple(row for _, one in found for row in one.rows)
    remarks += [remark for _, one in found for remark in one.remarks]
    return Imported(
        source.name,
        tuple(dict.fromkeys(kind.title for kind, _ in found)),
        rows,
        tuple(remarks),
        tuple(dict.fromkeys(one.subject for _, one in found if one.subject)),
    )


def known_titles() -> str:
    """The tools whose outputs can be read, for messages and help."""
    return ", ".join(dict.fromkeys(kind.title.partition(",")[0] for kind in KINDS))


def _read(
    source: Source, labels: Labels, step: Callable[[float], None], remarks: list[str]
) -> list[tuple[Kind, Found]]:
    if source.is_larger_than(LARGE_BYTES):
        kind = _streamed_kind(source)
        if kind is not None and kind.stream is not None:
            with line_stream(source, step, remarks) as lines:
                return [(kind, kind.stream(lines, labels))]
    step(0.0)
    lines_read, damage = read_lines(source)
    remarks += damage
    found = read_text(lines_read, KINDS, labels)
    if found:
        return found
    complaint = complaints.find(lines_read)
    if complaint is not None:
        raise complaint
    first = next((line.strip() for line in lines_read if line.strip()), "")
    raise InputError(
        f"no known tool's output was found in it (it begins {first[:40]!r}); known are: "
        f"{known_titles()}"
    )


def _streamed_kind(source: Source) -> Kind | None:
    """The kind of the file's begin, if it is one that can be read line by line."""
    head = source.head.decode(source.encoding, errors="replace")
    lines = tuple(line.rstrip("\r") for line in head.split("\n")[:-1])
    parts = find_parts(lines, KINDS)
    return next((kind for kind, _ in parts if kind.stream is not None), None)
