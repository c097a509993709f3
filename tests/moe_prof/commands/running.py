"""Running a command line in this process, and reading what it printed."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from moe_prof import cli
from moe_prof.errors import BuildError
from moe_prof.kernels.compiler import find_compiler
from tests.moe_prof.schema import document

# Names that other programs look for in rows, by the project's contract
CONTRACT_METRICS = (
    "Retiring", "Bad_Speculation", "Frontend_Bound", "Backend_Bound", "Backend_Bound.Memory_Bound",
    "Backend_Bound.Core_Bound", "IPC", "time", "speedup", "spin_fraction", "instructions",
    "instructions_per_mac", "roofline_fraction", "rel_rmse", "verdict",
)  # fmt: skip
TREE = CONTRACT_METRICS[:6]


@dataclass(frozen=True)
class Ran:
    """One finished command line."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """The JSON document, checked against its schema."""
        return document.parse(self.out)

    @property
    def rows(self) -> dict[tuple[str, str], dict[str, Any]]:
        """Summary rows of whole variants by (variant, metric); the last one counts."""
        return {
            (row["variant"], row["metric"]): row
            for row in self.document["rows"]
            if row["repeat"] is None and row["phase"] is None and row["thread"] is None
        }

    @property
    def complaints(self) -> list[str]:
        """The error lines, without progress."""
        return [line for line in self.err.splitlines() if line.startswith("moe-prof: ")]


def main(*argv: str | Path) -> Ran:
    """Run ``moe-prof ARGV``; outside of capsys, so that it serves fixtures of any scope."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.main([str(word) for word in argv])
    return Ran(code, out.getvalue(), err.getvalue())


def hide_programs(patch: pytest.MonkeyPatch, folder: Path, names: Sequence[str]) -> str:
    """Set a PATH with links to all programs of this one but those whose names begin so.

    The compiler stays the same, by its own path, so that nothing is built again.
    """
    with contextlib.suppress(BuildError):
        patch.setenv("CXX", shlex.join(find_compiler().argv))
    folder.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            for program in Path(place or ".").iterdir():
                link = folder / program.name
                if not program.name.startswith(tuple(names)) and not link.is_symlink():
                    link.symlink_to(program.absolute())
    patch.setenv("PATH", str(folder))
    return str(folder)
