"""Names and addresses of code in object files: from a place in the file to a function.

Source: nm(1) of binutils.
"""

from __future__ import annotations

import shutil
import subprocess
from bisect import bisect_right
from dataclasses import dataclass, field
from pathlib import Path

from moe_prof.kernels.elf import CodeSegment, code_segments

UNKNOWN = "[unknown]"
LONGEST_S = 20.0


@dataclass
class Symbols:
    """Looks files up, each once."""

    segments: dict[str, tuple[CodeSegment, ...]] = field(default_factory=dict)
    functions: dict[str, tuple[list[int], list[str]]] = field(default_factory=dict)

    def address(self, path: str, offset: int) -> int:
        """The address that an object file itself gives to the byte at an offset."""
        if path not in self.segments:
            try:
                self.segments[path] = code_segments(Path(path))
            except OSError:
                self.segments[path] = ()
        for segment in self.segments[path]:
            if 0 <= offset - segment.offset < segment.size_bytes:
                return segment.address + offset - segment.offset
        return offset

    def name(self, path: str, address: int) -> str:
        """The function at an address of a file, ``[unknown]`` where no symbol tells."""
        if path not in self.functions:
            self.functions[path] = _functions(path)
        starts, names = self.functions[path]
        at = bisect_right(starts, address) - 1
        return names[at] if at >= 0 else UNKNOWN


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
