"""Starting real ranks in tests: skipped where there is no MPI, and never without a limit."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from moe_prof.ep import mpi

ROOT = Path(__file__).resolve().parents[3]
LIMIT_S = 240


def _why_not():
    reason = mpi.why_no_mpi4py()
    return reason or ("" if mpi.find_mpirun() else "there is no mpirun")


needs_mpi = pytest.mark.skipif(bool(_why_not()), reason=f"several ranks need MPI: {_why_not()}")


@dataclass(frozen=True)
class Ended:
    """How a process ended and what it wrote."""

    code: int
    out: str
    err: str


def python(*words, env=None):
    """Run ``python WORDS`` from the repository's root."""
    return run([sys.executable, *map(str, words)], env)


def mpirun(count, *words, env=None):
    """Run ``mpirun -n COUNT python WORDS``."""
    found = mpi.find_mpirun()
    more = ["--oversubscribe", "--allow-run-as-root"] if _is_open_mpi(found) else []
    return run([str(found), *more, "-n", str(count), sys.executable, *map(str, words)], env)


def run(argv, env=None):
    """Run a command line with a hard limit."""
    done = subprocess.run(
        argv, cwd=ROOT, env={**os.environ, **(env or {})}, capture_output=True, text=True,
        stdin=subprocess.DEVNULL, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    return Ended(done.returncode, done.stdout, done.stderr)


def _is_open_mpi(found):
    from moe_prof.ep.launch import is_open_mpi  # noqa: PLC0415

    return is_open_mpi(found)
