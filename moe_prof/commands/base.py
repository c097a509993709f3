"""The protocol of a command: it computes a result, it prints nothing.

``cli.main`` alone parses the arguments, prints the result in the format asked for and turns errors
into an exit code.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from rich.console import RenderableType

from moe_prof.progress import Progress
from moe_prof.rows import Row

EXIT_ERROR = 1


@dataclass(frozen=True, slots=True)
class Result:
    """What a command hands to the printer.

    Attributes:
        rows: tidy rows, for ``json`` and ``csv``.
        body: for ``text``: anything rich can print within 100 columns.
        machine: facts of the machine that produced the rows.
        session: the folder that keeps them, None for commands that measure nothing.
        exit_code: 0, or a code that is an answer (4 regression, 5 too noisy, 6 workload failed).
        errors: lines for stderr that say why the exit code is not 0.
        remarks: lines for stderr that a reader of the result has to know.
        silent: another process of the same run prints the result.
    """

    rows: tuple[Row, ...]
    body: RenderableType
    machine: dict[str, object]
    session: Path | None = None
    exit_code: int = 0
    errors: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    silent: bool = False


def with_trouble(result: Result, trouble: str) -> Result:
    """The result with an error, and exit code 1 at least, where its session could not be kept."""
    if not trouble:
        return result
    return replace(
        result, exit_code=result.exit_code or EXIT_ERROR, errors=(*result.errors, trouble)
    )


class Command(Protocol):
    """One command; its class docstring is the help text, beginning with a verb phrase."""

    name: str

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's own arguments."""

    def run(self, args: argparse.Namespace, progress: Progress) -> Result:
        """Do the work; raises MoeProfError."""
