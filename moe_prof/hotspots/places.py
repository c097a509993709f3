"""Source positions on stacks, and the source text of a line.

perf names the function of an address; addr2line adds the line, and the functions that were inlined
there. The lines of headers with the compiler's intrinsics are passed over: the line that called the
intrinsic is the one to read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from moe_prof.collectors.stacks import Frame, Profile, Stack, mapped
from moe_prof.collectors.symbols import Location, locate
from moe_prof.kernels.build import SOURCE_DIR

_KERNELS = "/kernels/"
_LONGEST_SOURCE_BYTES = 16 << 20


def with_places(profile: Profile, folder: Path, *, return_addresses: bool) -> Profile:
    """The profile with lines and inlined functions on its frames, as far as addr2line finds them.

    Args:
        return_addresses: callers' addresses are those behind their calls, as frame pointers give
            them; dwarf unwinding has already moved them into the call.
    """
    wanted: dict[str, set[int]] = {}
    for stack in profile.stacks:
        for frame, address in _addresses(stack, return_addresses=return_addresses):
            wanted.setdefault(frame.module, set()).add(address)
    found = locate(wanted, folder)

    def change(stack: Stack) -> Stack:
        frames: list[Frame] = []
        for frame, address in _addresses(stack, return_addresses=return_addresses):
            frames += _expanded(frame, found, address)
        return replace(stack, frames=tuple(frames))

    return mapped(profile, change)


def leaf_place(stack: Stack) -> tuple[str, int | None]:
    """File and line of a stack's cost, outside the compiler's own headers; "" if not known."""
    for frame in reversed(stack.frames):
        if frame.file and not is_compiler_header(frame.file):
            return frame.file, frame.line
        if not frame.inlined:
            break
    return "", None


def leaf_function(stack: Stack) -> Frame | None:
    """The function whose code the cost is in; inlined ones have no code of their own."""
    return next((frame for frame in reversed(stack.frames) if not frame.inlined), None)


def is_compiler_header(file: str) -> bool:
    """Whether a file belongs to the compiler's intrinsics."""
    return "/include/" in file and ("/gcc/" in file or "/clang/" in file)


def source_text(file: str, line: int | None) -> str:
    """The line's text, "" when the source is not here."""
    if not file or line is None:
        return ""
    lines = _source(file)
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""


def file_name(file: str) -> str:
    """A source's name without its folder."""
    return file.rsplit("/", 1)[-1]


@cache
def _source(file: str) -> tuple[str, ...]:
    """A source's lines; the kernels' own are found again when they were built elsewhere."""
    candidates = [Path(file)]
    if _KERNELS in file:
        candidates.append(SOURCE_DIR / file.rpartition(_KERNELS)[2])
    for path in candidates:
        try:
            if path.is_file() and path.stat().st_size <= _LONGEST_SOURCE_BYTES:
                return tuple(path.read_text(encoding="utf-8", errors="replace").splitlines())
        except OSError:
            continue
    return ()


def _addresses(stack: Stack, *, return_addresses: bool) -> list[tuple[Frame, int]]:
    last = len(stack.frames) - 1
    return [
        (frame, (frame.address or 0) - int(return_addresses and index != last))
        for index, frame in enumerate(stack.frames)
    ]


def _expanded(
    frame: Frame, found: Mapping[tuple[str, int], tuple[Location, ...]], address: int
) -> list[Frame]:
    """The frame's own line, then what is inlined there, outermost first."""
    locations = found.get((frame.module, address), ())
    if not locations:
        return [frame]
    *inlined, own = locations
    outer = replace(frame, file=own.file, line=own.line)
    inner = [
        Frame(place.function, frame.module, place.file, place.line, frame.address, inlined=True)
        for place in reversed(inlined)
    ]
    return [outer, *inner]
