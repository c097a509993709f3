"""What a check is: a small function from facts to one finding, listed in a table.

Checks read files and ask programs for their version; they change nothing. A remedy is a command for
the user to run, or what to ask an administrator for.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from moe_prof.collectors.base import Availability
from moe_prof.collectors.perf_facts import PerfFacts
from moe_prof.kernels.build import Build
from moe_prof.machine import Machine

Group = Literal["build", "ISA paths", "collectors", "parallel", "machine"]
GROUPS: tuple[Group, ...] = ("build", "ISA paths", "collectors", "parallel", "machine")

_ASK_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class Context:
    """What checks look at.

    Attributes:
        machine: facts of the machine.
        build: the finished release build, None when it failed.
        build_error: why it failed, "" otherwise.
        cache_root: the folder of all builds.
        which: finds a program on the path.
        privileged: whether the process runs as root.
        perf: what perf can do here.
        load: runnable processes of the whole machine (one-minute average), None when unknown.
    """

    machine: Machine
    build: Build | None
    build_error: str
    cache_root: Path
    perf: PerfFacts
    which: Callable[[str], str | None] = shutil.which
    privileged: bool = field(default_factory=lambda: os.geteuid() == 0)
    load: float | None = None

    def sudo(self, command: str) -> str:
        """The command as this user must type it."""
        return command if self.privileged else f"sudo {command}"


@dataclass(frozen=True, slots=True)
class Check:
    """One row of the doctor's table.

    Attributes:
        name: what is checked; the finding's name.
        purpose: one line for ``list``.
        judge: makes the finding.
        used_by: the commands that use a collector; a collector without one is not told of. None for
            checks of anything else.
    """

    group: Group
    name: str
    purpose: str
    judge: Callable[[Context], Availability]
    used_by: tuple[str, ...] | None = None


def usable(reason: str, *, remedy: str = "", version: str = "") -> Availability:
    """A good finding; the name is filled in from the table."""
    return Availability("", True, reason, remedy, version)


def unusable(reason: str, remedy: str = "", *, version: str = "") -> Availability:
    """A bad finding with what would change it."""
    return Availability("", False, reason, remedy, version)


def ask(program: str, *arguments: str, env: Mapping[str, str] | None = None) -> str | None:
    """The first line that a program prints, None when it does not run or fails."""
    try:
        answer = subprocess.run(
            [program, *arguments], capture_output=True, text=True, errors="replace", check=False,
            timeout=_ASK_TIMEOUT_S, env={**os.environ, "LC_ALL": "C", **(env or {})},
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = (answer.stdout or answer.stderr).strip().splitlines()
    return lines[0] if answer.returncode == 0 and lines else None
