"""Which architecture an ELF file is for, and whether it is whole, before it is loaded or run.

A foreign binary is named and never run; loading one that was cut off would kill the process.

Source: the ELF specification: the file header (e_ident, e_machine at offset 18) and the program
headers (p_offset and p_filesz tell where a segment's bytes lie).
"""

from __future__ import annotations

import platform
import struct
import sys
from dataclasses import dataclass
from pathlib import Path

_MACHINES = {3: "i686", 22: "s390x", 21: "ppc64", 40: "arm", 62: "x86_64", 183: "aarch64",
             243: "riscv", 258: "loongarch64"}  # fmt: skip
_HEADER_BYTES = 64
_CLASS_64 = 2
_LOADED, _EXECUTED = 1, 1
"""PT_LOAD and PF_X."""
_LAYOUTS = {1: ("I", 28, 42, 4, 16, 32), 2: ("Q", 32, 54, 8, 32, 56)}
"""By class (32 or 64 bits): format of an offset; where in the file header the place of the program
headers and their size and number stand; where in a program header the segment's offset and size
stand, and how long one is at least."""


def machine_of(path: Path) -> str | None:
    """The architecture's name (as ``platform.machine`` gives it), None when it is no ELF file.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        header = file.read(20)
    if len(header) < 20 or header[:4] != b"\x7fELF":
        return None
    order = "little" if header[5] == 1 else "big"
    code = int.from_bytes(header[18:20], "little" if order == "little" else "big")
    name = _MACHINES.get(code, f"ELF machine {code}")
    if name == "riscv":
        return "riscv64" if header[4] == 2 else "riscv32"
    if name == "ppc64" and order == "little":
        return "ppc64le"
    return name


def foreign_reason(path: Path, machine: str | None = None) -> str | None:
    """Why ``path`` is nothing for ``machine`` (this one), None when it is whole and for it.

    Raises:
        OSError: the file cannot be read.
    """
    found = machine_of(path)
    here = machine or platform.machine()
    if found is None:
        return f"{path} is not an ELF file"
    if found != here and sys.platform == "linux":
        return f"{path} is built for {found}, {'not for' if machine else 'this machine is'} {here}"
    return f"{path} is cut off" if is_cut_off(path) else None


def is_cut_off(path: Path) -> bool:
    """Whether an ELF file ends before its segments do.

    Raises:
        OSError: the file cannot be read.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        header = file.read(_HEADER_BYTES)
        layout = _LAYOUTS.get(header[4]) if len(header) == _HEADER_BYTES else None
        if layout is None:
            return True
        order = "<" if header[5] == 1 else ">"
        word, place_at, count_at, offset_at, length_at, least = layout
        (table,) = struct.unpack_from(order + word, header, place_at)
        entry, number = struct.unpack_from(order + "HH", header, count_at)
        if table + entry * number > size or (number and entry < least):
            return True
        file.seek(table)
        entries = file.read(entry * number)
    ends = (
        struct.unpack_from(order + word, entries, at + offset_at)[0]
        + struct.unpack_from(order + word, entries, at + length_at)[0]
        for at in range(0, entry * number, entry or 1)
    )
    return any(end > size for end in ends)


@dataclass(frozen=True, slots=True)
class CodeSegment:
    """A part of a 64-bit ELF file that is executed: where it lies in the file and in memory."""

    offset: int
    address: int
    size_bytes: int


def code_segments(path: Path) -> tuple[CodeSegment, ...]:
    """The executable segments of a 64-bit ELF file; none of another file.

    Raises:
        OSError: the file cannot be read.
    """
    if machine_of(path) is None or is_cut_off(path):
        return ()
    with path.open("rb") as file:
        header = file.read(_HEADER_BYTES)
        if header[4] != _CLASS_64:
            return ()
        order = "<" if header[5] == 1 else ">"
        (table,) = struct.unpack_from(order + "Q", header, 32)
        entry, number = struct.unpack_from(order + "HH", header, 54)
        file.seek(table)
        entries = file.read(entry * number)
    found = []
    for at in range(0, entry * number, entry or 1):
        kind, flags, offset, address, _, size = struct.unpack_from(order + "IIQQQQ", entries, at)
        if kind == _LOADED and flags & _EXECUTED:
            found.append(CodeSegment(offset, address, size))
    return tuple(found)
