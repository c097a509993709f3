"""Which builds of the cache are in use, and removing those that nobody has used for long.

Beside each build lies ``NAME.used``: its time is that of the last use, and every process that uses
the build holds a shared lock on it until it ends. A build is removed only by who gets that lock for
itself alone, and the lock of who makes builds (``NAME.lock``) too.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MAX_AGE_S = 30 * 24 * 3600.0
MAX_BYTES = 1 << 30

_NAME = re.compile(r"[a-z]+-[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class _Entry:
    folder: Path
    used_s: float
    size_bytes: int


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold a file's lock alone; without ``wait``, False where another process holds it."""
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True


def use(folder: Path) -> None:
    """Mark a build as used now and, until this process ends, as in use.

    A cache that cannot be written keeps no marks: nothing is removed from it either.
    """
    with contextlib.suppress(OSError):
        os.utime(_held(folder.with_name(f"{folder.name}.used")))


def prune(root: Path, *, max_age_s: float = MAX_AGE_S, max_bytes: int = MAX_BYTES) -> list[Path]:
    """Remove builds not used for ``max_age_s``, then the longest unused ones beyond ``max_bytes``.

    Returns:
        the folders that were removed.
    """
    entries = sorted(_entries(root), key=lambda entry: entry.used_s)
    total_bytes = sum(entry.size_bytes for entry in entries)
    oldest_s = time.time() - max_age_s
    removed = []
    for entry in entries:
        if entry.used_s >= oldest_s and total_bytes <= max_bytes:
            break
        if _removed(entry.folder):
            removed.append(entry.folder)
            total_bytes -= entry.size_bytes
    return removed


@functools.cache
def _held(path: Path) -> int:
    """The descriptor of a file whose lock this process shares until its end."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


def _entries(root: Path) -> Iterator[_Entry]:
    for folder in root.iterdir():
        if not _NAME.fullmatch(folder.name) or folder.is_symlink() or not folder.is_dir():
            continue
        mark = folder.with_name(f"{folder.name}.used")
        with contextlib.suppress(OSError):  # another process has just removed it
            used_s = (mark if mark.exists() else folder).stat().st_mtime
            files = [path for path in folder.rglob("*") if path.is_file()]
            yield _Entry(folder, used_s, sum(path.stat().st_size for path in files))


def _removed(folder: Path) -> bool:
    """Remove a build unless somebody makes or uses it."""
    lock, mark = (folder.with_name(f"{folder.name}.{kind}") for kind in ("lock", "used"))
    with locked(lock, wait=False) as unmade, locked(mark, wait=False) as unused:
        if not (unmade and unused):
            return False
        shutil.rmtree(folder, ignore_errors=True)
        folder.with_name(f"{folder.name}.log").unlink(missing_ok=True)
        return not folder.exists()
