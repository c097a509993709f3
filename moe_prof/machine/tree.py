"""Reading a tree of system files (/proc, /sys, /etc); what is missing or unreadable is None.

The root can be any folder, so that tests read recorded trees of other machines.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Tree:
    """System files below ``root``."""

    root: Path

    def text(self, path: str) -> str | None:
        """The file's text without surrounding white space; None when it cannot be read."""
        try:
            return (self.root / path).read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return None

    def integer(self, path: str) -> int | None:
        """The file's whole number; None when it cannot be read or holds something else."""
        try:
            return int(self.text(path) or "", 10)
        except ValueError:
            return None

    def names(self, path: str) -> tuple[str, ...]:
        """Sorted names in a folder; empty when it cannot be read."""
        try:
            return tuple(sorted(entry.name for entry in (self.root / path).iterdir()))
        except OSError:
            return ()

    def exists(self, path: str) -> bool:
        """Whether the path is there."""
        return (self.root / path).exists()

    def fields(self, path: str, separator: str = ":") -> dict[str, str]:
        """``key<separator>value`` lines; of a repeated key the first value counts."""
        found: dict[str, str] = {}
        for line in (self.text(path) or "").splitlines():
            key, mark, value = line.partition(separator)
            if mark:
                found.setdefault(key.strip(), value.strip())
        return found


def cpu_list(text: str) -> tuple[int, ...]:
    """The numbers in a kernel list such as ``0-3,8``; empty for malformed text."""
    cpus: list[int] = []
    for part in text.replace(" ", "").split(","):
        first, dash, last = part.partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            return ()
        cpus.extend(range(int(first), int(last or first) + 1))
    return tuple(cpus)
