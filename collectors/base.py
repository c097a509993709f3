"""What a collector is: argv, run, parse, kept apart.

``argv`` builds a command line and runs nothing; ``run`` is the only side effect and keeps the raw
output; ``parse`` is pure, text in, dataclasses out, so that it can be repeated on any machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a tool can be used here; if not, why, and the command that would change it."""

    name: str
    usable: bool
    reason: str
    remedy: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class ToolRun:
    """One finished run of a tool.

    Attributes:
        argv: the exact command.
        returncode: of the tool (never a judgement of the workload's health), negative for a signal.
        stdout / stderr: captured text.
        outputs: raw files that the tool wrote, by role.
        elapsed_s: wall time of the whole process.
        env: variables set for the run on top of the inherited environment.
    """

    argv: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str
    elapsed_s: float
    outputs: Mapping[str, Path] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
