"""Names and addresses of code in object files: from a place in the file to a function.

Source: the ELF specification, program headers of type PT_LOAD; nm(1) of binutils.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from bisect import bisect_right
from dataclasses import dataclass, field
from pathlib import Path

UNKNOWN = "[unknown]"
LONGEST_S = 20.0
_LOAD = 1
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")


@dataclass
class Symbols:
    """Looks files up, each once."""

    segments: dict[str, list[tuple[int, int, int]]] = field(default_factory=dict)
    functions: dict[str, tuple[list[int], list[str]]] = field(default_factory=dict)

    def address(self, path: str, offset: int) -> int:
        """The address that an object file itself gives to the byte at an offset."""
        if path not in self.segments:
            self.segments[path] = _segments(Path(path))
        for start, size, address in self.segments[path]:
            if start <= offset < start + size:
                return address + offset - start
        return offset

    def name(self, path: str, address: int) -> str:
        """The function at an address of a file, ``[unknown]`` where no symbol tells."""
        if path not in self.functions:
            self.functions[path] = _functions(path)
        starts, names = self.functions[path]
        at = bisect_right(starts, address) - 1
        return names[at] if at >= 0 else UNKNOWN


def _segments(path: Path) -> list[tuple[int, int, int]]:
    """(offset, size, address) of what a 64-bit file loads; none where it is no such file."""
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER.size)
            if len(header) < _HEADER.size or header[:6] != b"\x7fELF\x02\x01":
                return []
            parts = _HEADER.unpack(header)
            file.seek(parts[5])
            table = file.read(parts[9] * parts[10])
    except OSError:
        return []
    found = []
    for at in range(0, len(table) - _SEGMENT.size + 1, parts[9]):
        kind, _, offset, address, _, size, _, _ = _SEGMENT.unpack_from(table, at)
        if kind == _LOAD:
            found.append((offset, size, address))
    return found


def _functions(path: str) -> tuple[list[int], list[str]]:
    """Starts and names of the functions in a file, by address."""
    if shutil.which("nm") is None or not path.startswith("/"):
        return [], []
    found: dict[int, str] = {}
    for extra in ((), ("--dynamic",)):
        command = ("nm", "--numeric-sort", "--demangle", "--defined-only", *extra, path)
        try:
            run = subprocess.run(
                command, capture_output=True, text=True, errors="replace", check=False,
                timeout=LONGEST_S, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired):
            continue
        for line in run.stdout.splitlines():
            words = line.split(maxsplit=2)
            if len(words) == 3 and words[1] in "tTwWiI":
                found.setdefault(int(words[0], 16), words[2].split("@@")[0])
    starts = sorted(found)
    return starts, [found[start] for start in starts]
