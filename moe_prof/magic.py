"""``%moe_prof`` for IPython and Jupyter: a command line whose value is the session it wrote.

``%load_ext moe_prof`` adds it; ``run = %moe_prof topdown S3`` prints what the command prints and
gives what :func:`moe_prof.load` gives. Source: IPython's documentation of custom magics.
"""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from moe_prof.errors import InputError
from moe_prof.session import load

if TYPE_CHECKING:
    from moe_prof.session import SavedSession

NAME = "moe_prof"
_SESSION = "session: "


def register(shell: Any) -> None:  # noqa: ANN401  (IPython is no dependency)
    """Add the magic to a shell."""
    shell.register_magic_function(run, magic_kind="line", magic_name=NAME)


def run(line: str) -> SavedSession | None:
    """Run one command line in a process of its own, as a terminal would.

    Args:
        line: the words after ``moe-prof``; quotes as in a shell.

    Returns:
        The session that the command wrote; None where it wrote none.

    An interrupt reaches the command, which ends with what it has.
    """
    try:
        words = shlex.split(line)
    except ValueError as error:
        sys.stderr.write(f"%{NAME}: {error}: {line}\n")
        return None
    command = [sys.executable, "-m", "moe_prof", *words]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        out, err = _communicate(child)
    sys.stdout.write(out)
    told = [each for each in err.splitlines() if not each.startswith(_SESSION)]
    if told:
        sys.stderr.write("\n".join(told) + "\n")
    folders = [each.removeprefix(_SESSION) for each in err.splitlines() if each not in told]
    if not folders:
        return None
    try:
        return load(folders[-1])
    except InputError as error:
        sys.stderr.write(f"%{NAME}: {error}\n")
        return None


def _communicate(child: subprocess.Popen[str]) -> tuple[str, str]:
    try:
        return child.communicate()
    except KeyboardInterrupt:
        child.send_signal(signal.SIGINT)
        return child.communicate()
