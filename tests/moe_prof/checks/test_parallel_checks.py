"""Checks of MPI: what is there, and the lines that install what is missing."""

from __future__ import annotations

import pytest

from moe_prof.checks import parallel
from moe_prof.ep import mpi
from tests.moe_prof.checks.contexts import context


@pytest.fixture
def made(machine_tree, monkeypatch, tmp_path):
    """A context in whose Python nothing of MPI is, unless a test changes it."""
    monkeypatch.setattr(mpi.sys, "prefix", str(tmp_path))
    monkeypatch.setattr(mpi, "why_no_mpi4py", lambda: "")
    return lambda **changes: context(machine_tree("amx-vm"), **changes)


def test_mpirun_on_the_path_is_usable(made):
    """A system's or a cluster's own MPI serves."""
    found = parallel.mpi_ranks(made(which=lambda name: f"/opt/mpi/bin/{name}"))
    assert found.usable
    assert "/opt/mpi/bin/mpirun" in found.reason


def test_without_mpirun_both_ways_to_install_are_named(made):
    """The line for pip, and the system's package."""
    found = parallel.mpi_ranks(made())
    assert not found.usable
    assert "pip install 'mpi4py>=4' mpich" in found.remedy
    assert "mpich" in found.remedy.partition("or ")[2]


def test_without_mpi4py_the_reason_is_that(made, monkeypatch):
    """It is looked at first."""
    monkeypatch.setattr(mpi, "why_no_mpi4py", lambda: "mpi4py is not installed in this Python")
    found = parallel.mpi_ranks(made(which=lambda name: f"/bin/{name}"))
    assert not found.usable
    assert "mpi4py is not installed in this Python: ep runs one rank only" in found.reason
