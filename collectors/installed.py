"""Whether a tool is installed and starts: what it says of its version."""

from __future__ import annotations

import shutil
import subprocess

from moe_prof.collectors.base import Availability

TIMEOUT_S = 20.0


def version_line(name: str, program: str, install: str) -> str | Availability:
    """The first line of ``PROGRAM --version``, or why the tool cannot be used.

    Args:
        name: of the collector, for the Availability.
        install: the command that installs the program.
    """
    path = shutil.which(program)
    if path is None:
        return Availability(name, False, f"{program} is not installed", install)
    try:
        answer = subprocess.run(
            [path, "--version"], capture_output=True, text=True, errors="replace",
            stdin=subprocess.DEVNULL, timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return Availability(name, False, f"{program} does not start: {error}", install)
    if answer.returncode:
        words = (answer.stderr or answer.stdout).strip().splitlines() or ["no message"]
        return Availability(name, False, f"{program} does not start: {words[0]}", install)
    return answer.stdout.strip().partition("\n")[0]
