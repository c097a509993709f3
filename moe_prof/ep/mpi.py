"""Finding MPI: the library through mpi4py, and ``mpirun``. Nothing is imported or run before asked.

One process needs none of it. PyPI has wheels of mpi4py (any MPI of the machine) and of MPICH with
its ``mpirun``, so that one line installs both into the environment of this Python; an MPI of the
system or of a cluster's modules serves as well.

Sources: mpi4py's documentation (``mpi4py.rc``, MPI of other vendors by its ABI); the variables that
the process managers of MPICH (Hydra), Open MPI (PRRTE) and Slurm (PMI) give to each rank.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import importlib.util
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moe_prof.errors import UnavailableError

INSTALL = "pip install 'mpi4py>=4' mpich"
"""As the extra ``ep`` does."""
LAUNCHERS = ("mpirun", "mpiexec")

_RANK_VARIABLES = (
    ("PMI_RANK", "PMI_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMIX_RANK", "SLURM_STEP_NUM_TASKS"),
)
_OWN_PREFIXES = ("PMI_", "PMIX_", "OMPI_", "PRTE_", "HYDI_", "MPI_LOCAL")


@dataclass(frozen=True, slots=True)
class Launched:
    """What a process manager told this process: its rank and their number."""

    rank: int
    size: int


def launched(environment: Mapping[str, str] | None = None) -> Launched | None:
    """The place that ``mpirun`` gave to this process; None for a process started without it."""
    known = os.environ if environment is None else environment
    for rank_name, size_name in _RANK_VARIABLES:
        rank, size = known.get(rank_name, ""), known.get(size_name, "")
        if rank.isdecimal() and size.isdecimal() and int(rank) < int(size):
            return Launched(int(rank), int(size))
    return None


def own_environment(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment without an outer process manager's variables, for starting ranks from it."""
    known = os.environ if environment is None else environment
    return {k: v for k, v in known.items() if not k.startswith(_OWN_PREFIXES)}


def end_all_at_exit(code: int) -> None:
    """When this process ends, let MPICH's mpirun end the other ranks and return this code.

    By itself it would return the number of the signal by which it kills the others. Source: the
    PMI-1 wire protocol, ``cmd=abort``, as MPI_Abort sends it. Other process managers return the
    code of the first rank that fails.
    """
    descriptor = os.environ.get("PMI_FD", "")
    if descriptor.isdecimal():
        atexit.register(_write, int(descriptor), f"cmd=abort exitcode={code}\n".encode())


def _write(descriptor: int, words: bytes) -> None:
    with contextlib.suppress(OSError):  # mpirun is gone
        os.write(descriptor, words)


def why_no_mpi4py() -> str:
    """Why mpi4py cannot be imported, "" where it is installed."""
    if importlib.util.find_spec("mpi4py") is None:
        return "mpi4py is not installed in this Python"
    return ""


def load() -> Any:  # noqa: ANN401  (a module without types where it is not installed)
    """The module ``mpi4py.MPI``, with MPI started; nothing ends MPI by itself afterwards.

    Raises:
        UnavailableError: mpi4py or the MPI library is missing.
    """
    reason = why_no_mpi4py()
    if reason:
        raise UnavailableError(f"several ranks need MPI, and {reason}; install it: {INSTALL}")
    settings: Any = importlib.import_module("mpi4py")
    settings.rc.thread_level = "serialized"
    settings.rc.finalize = False  # a rank that is gone would make it wait for ever
    try:
        return importlib.import_module("mpi4py.MPI")
    except (ImportError, RuntimeError, OSError) as error:
        words = " ".join(str(error).split())[:200]
        raise UnavailableError(
            f"mpi4py finds no MPI library ({words}); install one: {INSTALL}"
        ) from error


def find_mpirun(which: Callable[[str], str | None] = shutil.which) -> Path | None:
    """``mpirun`` beside this Python (the wheel's), else on the path; None where there is none.

    The one beside is of the library that mpi4py loads first, from the same environment.
    """
    for name in LAUNCHERS:
        beside = Path(sys.prefix) / "bin" / name
        if os.access(beside, os.X_OK):
            return beside
    for name in LAUNCHERS:
        found = which(name)
        if found is not None:
            return Path(found)
    return None


def require_mpirun() -> Path:
    """Raises UnavailableError where mpi4py or ``mpirun`` is missing, with what installs it."""
    reason = why_no_mpi4py()
    found = find_mpirun()
    if found is None and not reason:
        reason = "there is no mpirun, neither beside this Python nor on the PATH"
    if reason or found is None:
        raise UnavailableError(f"several ranks need MPI, and {reason}; install it: {INSTALL}")
    return found
