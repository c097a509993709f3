"""Instruction-set paths on recorded machines, the probes replaced by invented answers."""

from __future__ import annotations

import dataclasses

import pytest

from moe_prof.checks import isa_paths
from moe_prof.kernels.features import ISA_PATHS
from moe_prof.kernels.table import VARIANTS
from moe_prof.measure.ceilings import Rate
from tests.moe_prof.checks.contexts import BUILD, context

UNUSED = "the instructions run here; no built-in variant uses them yet"
USED = "used by packed, dispatched"
AVX512 = "avx512f, avx512bw, avx512cd, avx512dq, avx512vl, avx512_vnni"
PERMISSION = "arch_prctl(ARCH_REQ_XCOMP_PERM, 18): Permission denied"
BUILT_WITH_TILES = dataclasses.replace(
    BUILD, isas=("native", "amx_int8", "avx_vnni", "avx2", "ime", "rvv")
)
BY_NAME = {path.name: path for path in isa_paths.PATHS}


def answer_with(monkeypatch, rate: Rate) -> None:
    """Every probe gives this answer."""

    class Library:
        """Stands for the support library."""

        def __init__(self, path):
            del path

        def rate(self, *args, **kwargs):
            """The invented answer."""
            del args, kwargs
            return rate

    monkeypatch.setattr(isa_paths, "ProbeLibrary", Library)


@pytest.fixture
def willing_probes(monkeypatch):
    """Every probe runs."""
    answer_with(monkeypatch, Rate(1.0, ""))


@pytest.mark.parametrize(
    ("tree", "name", "usable", "reason"),
    [
        ("amx-vm", "amx_int8", True, USED),
        ("amx-vm", "avx_vnni", True, USED),
        ("amx-vm", "rvv", False, "needs riscv64, this is x86_64"),
        ("zen3-vm", "avx_vnni", False, "this CPU does not show avx_vnni"),
        ("zen3-vm", "amx_int8", False, f"this CPU does not show {AVX512}, amx_tile, amx_int8"),
        ("neoverse-v1", "avx2", False, "needs x86_64, this is aarch64"),
        ("neoverse-v1", "neon_dot", True, UNUSED),
        ("spacemit-k1", "rvv", True, "used by rvv, rvv-dispatched"),
        ("spacemit-k1", "ime", True, "used by ime"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("willing_probes")
def test_paths_on_recorded_machines(tree, name, usable, reason, machine_tree):
    """CPU, features and core decide; the reason names what is missing."""
    found = isa_paths.judge(BY_NAME[name], context(machine_tree(tree), build=BUILT_WITH_TILES))
    assert (found.usable, found.reason) == (usable, reason)


@pytest.mark.usefixtures("willing_probes")
def test_path_with_variants_names_them(machine_tree):
    """A built path tells which variants use it."""
    found = isa_paths.judge(BY_NAME["avx2"], context(machine_tree("zen3-vm")))
    users = ", ".join(spec.name for spec in VARIANTS if "avx2" in spec.isas)
    assert (found.usable, found.reason) == (True, f"used by {users}")


def test_tiles_that_the_system_refuses(machine_tree, monkeypatch):
    """The flag is there, the permission is not: the system's own words and what is needed."""
    answer_with(monkeypatch, Rate(None, PERMISSION))
    made = context(machine_tree("amx-vm"), build=BUILT_WITH_TILES)
    found = isa_paths.judge(BY_NAME["amx_int8"], made)
    assert (found.usable, found.reason) == (False, PERMISSION)
    assert "5.16" in found.remedy


def test_tiles_that_were_refused_when_the_kernels_were_built(machine_tree):
    """The driver's own words from the build, with the same remedy."""
    said = f"this CPU lacks tiles, which the system refuses ({PERMISSION})"
    built = dataclasses.replace(BUILD, unusable={"amx_int8": said})
    found = isa_paths.judge(BY_NAME["amx_int8"], context(machine_tree("amx-vm"), build=built))
    assert (found.usable, found.reason) == (False, said)
    assert "5.16" in found.remedy


def test_path_that_was_not_built(machine_tree):
    """The build's own reason is passed on."""
    built = dataclasses.replace(BUILD, isas=("portable",), unusable={"native": "SIGILL here"})
    found = isa_paths.judge(BY_NAME["native"], context(machine_tree("amx-vm"), build=built))
    assert (found.usable, found.reason) == (False, "SIGILL here")


def test_without_a_build_no_built_path_is_usable(machine_tree):
    """Kernels that do not compile cannot run on any path."""
    found = isa_paths.judge(BY_NAME["portable"], context(machine_tree("amx-vm"), build=None))
    assert (found.usable, found.reason) == (False, "the C++ kernels do not build")


@pytest.mark.usefixtures("willing_probes")
def test_masked_features_in_a_vm_have_a_remedy(machine_tree):
    """A hypervisor may hide what the host has."""
    found = isa_paths.judge(BY_NAME["avx512_vnni"], context(machine_tree("zen3-vm")))
    assert "-cpu host" in found.remedy


def test_every_path_of_the_kernels_is_checked():
    """A path added to the build must have a row here."""
    assert {path.name for path in ISA_PATHS} <= set(BY_NAME)
