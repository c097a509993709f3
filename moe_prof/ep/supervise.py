"""Under ``mpirun``, each rank is a child of a process that outlives it and can say how it died.

``mpirun`` tells only the number of a process that died, and kills the other ranks at once. So the
process that it started runs the same command line in a child, which is the rank (as a wrapper
script around a rank does: the child inherits what leads to the process manager), and waits. A child
that a signal ended is told of by rank, in one line, with exit code 6.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence

from moe_prof.ep.mpi import Launched, end_all_at_exit
from moe_prof.errors import ToolError, WorkloadError
from moe_prof.parent_death import die_with_parent

CHILD_VARIABLE = "MOE_PROF_EP_RANK_OF"
"""Set in the child: the number of the process that waits for it."""


def is_child() -> bool:
    """Whether this process is a rank; from now on it ends with the process that waits for it."""
    parent = os.environ.get(CHILD_VARIABLE, "")
    if not parent.isdecimal():
        return False
    die_with_parent(int(parent))
    return True


def run_child(words: Sequence[str], place: Launched) -> int:
    """Run ``moe-prof WORDS`` as the rank; returns its exit code.

    Raises:
        WorkloadError: a signal ended it.
        ToolError: it cannot be started.
    """
    environment = {**os.environ, CHILD_VARIABLE: str(os.getpid())}
    try:
        child = subprocess.Popen(
            [sys.executable, "-m", "moe_prof", *words], env=environment, close_fds=False
        )
    except OSError as error:
        raise ToolError(f"rank {place.rank} cannot be started: {error.strerror}") from error
    with child:
        try:
            code = child.wait()
        except BaseException:  # Ctrl-C
            child.kill()
            raise
    if code < 0:
        name = signal.strsignal(-code) or "unknown"
        end_all_at_exit(WorkloadError.exit_code)
        raise WorkloadError(
            f"rank {place.rank} of {place.size} died: {name} (signal {-code}); mpirun ends the "
            "other ranks"
        )
    return code
