"""Checks of what several ranks need: mpi4py, an MPI library, mpirun."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from moe_prof.checks.base import Check, Context, unusable, usable
from moe_prof.checks.packages import install_line
from moe_prof.collectors.base import Availability
from moe_prof.ep import mpi


def mpi_ranks(context: Context) -> Availability:
    """MPI for ``ep --ranks``: from PyPI, or a system's or a cluster's own."""
    system = context.sudo(install_line("mpi", context.machine.system.distribution))
    remedy = f"{mpi.INSTALL}, or {system} beside pip install mpi4py"
    reason = mpi.why_no_mpi4py()
    found = mpi.find_mpirun(context.which)
    if reason:
        return unusable(f"{reason}: ep runs one rank only", remedy)
    if found is None:
        return unusable("mpi4py without mpirun: ep cannot start several ranks", remedy)
    known = [f"{name} {_version(name)}" for name in ("mpi4py", "mpich") if _version(name)]
    return usable(f"{found} starts ranks: {', '.join(known)}")


def _version(package: str) -> str:
    """Of an installed package, "" for none."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


CHECKS: tuple[Check, ...] = (
    Check("parallel", "MPI", "ranks of the expert-parallel operator", mpi_ranks),
)
