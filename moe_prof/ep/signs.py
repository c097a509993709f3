"""Signs of life: one small file a rank, which tells the launcher who is there and how it ended.

``rank-R.json`` holds pid, host and what the rank does; in the end its outcome. It is replaced as a
whole, so that a reader never sees half of it.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

JOB, RESULTS = "job.json", "results.jsonl"
"""The launcher's request, and rank 0's answers, a line a case."""
EXIT_FILE = "exit-{}"
"""Of a rank: the code that it ended with, written by the shell above it."""
OK = 0


@dataclass(frozen=True, slots=True)
class Sign:
    """What a rank last wrote.

    Attributes:
        stage: what it does, e.g. ``fused, call 17``.
        status: None while it runs; 0, or the exit code of its error.
        text: the error's words.
        named: ranks that the error is about.
    """

    rank: int
    pid: int
    host: str
    stage: str
    status: int | None = None
    text: str = ""
    named: tuple[int, ...] = ()


class Writer:
    """Writes one rank's signs; a folder that cannot be written costs the signs, not the run."""

    def __init__(self, folder: Path, rank: int) -> None:
        self._path = folder / f"rank-{rank}.json"
        self._sign = Sign(rank, os.getpid(), socket.gethostname(), "starting")
        self._write()

    def stage(self, text: str) -> None:
        """The rank begins something else."""
        self._sign = Sign(self._sign.rank, self._sign.pid, self._sign.host, text)
        self._write()

    def end(self, status: int, text: str = "", named: Sequence[int] = ()) -> None:
        """The rank is about to leave."""
        was = self._sign
        self._sign = Sign(was.rank, was.pid, was.host, was.stage, status, text, tuple(named))
        self._write()

    def _write(self) -> None:
        temporary = self._path.with_suffix(".tmp")
        try:
            temporary.write_text(json.dumps(asdict(self._sign)), encoding="utf-8")
            temporary.replace(self._path)
        except OSError:
            return


def read(folder: Path, ranks: int) -> dict[int, Sign]:
    """The signs that there are, by rank."""
    found = {}
    for rank in range(ranks):
        try:
            data = json.loads((folder / f"rank-{rank}.json").read_text(encoding="utf-8"))
            found[rank] = Sign(**{**data, "named": tuple(data["named"])})
        except (OSError, ValueError, TypeError, KeyError):
            continue
    return found


def exit_codes(folder: Path, ranks: int) -> dict[int, int]:
    """Exit codes of the ranks that ended by themselves, by rank."""
    found = {}
    for rank in range(ranks):
        try:
            text = (folder / EXIT_FILE.format(rank)).read_text(encoding="utf-8").strip()
        except OSError:
            continue
        if text.isdecimal():
            found[rank] = int(text)
    return found
