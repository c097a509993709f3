"""Checks of the build: compiler, kernels, the cache."""

from __future__ import annotations

import platform
import struct

import pytest

from moe_prof.checks import building
from moe_prof.errors import BuildError
from moe_prof.kernels.compiler import Compiler
from tests.moe_prof.checks.contexts import context

AARCH64, X86_64 = 183, 62


def elf(machine):
    """The first bytes of a 64-bit little-endian ELF file."""
    return b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HH", 3, machine)


def found_compiler(monkeypatch, version):
    """The compiler says this of itself."""
    monkeypatch.setattr(
        building, "find_compiler", lambda: Compiler(("/usr/bin/c++",), version, False)
    )


@pytest.mark.parametrize(
    ("version", "usable"),
    [
        ("c++ (Debian 12.2.0-14+deb12u1) 12.2.0", True),
        ("g++ (GCC) 8.5.0 20210514 (Red Hat 8.5.0-4)", False),
        ("Ubuntu clang version 14.0.0-1ubuntu1.1", True),
        ("clang version 9.0.1", False),
        ("a compiler of unknown version", True),
    ],
)
def test_compiler_versions(version, usable, machine_tree, monkeypatch):
    """Too old ones are named; an unreadable version is left to the build."""
    found_compiler(monkeypatch, version)
    assert building.compiler(context(machine_tree("amx-vm"))).usable == usable


def test_no_compiler_gives_the_distributions_line(machine_tree, monkeypatch):
    """With rights by the package manager, without by pip."""

    def none():
        raise BuildError("no C++ compiler found (c++, g++, clang++); install one")

    monkeypatch.setattr(building, "find_compiler", none)
    found = building.compiler(context(machine_tree("neoverse-v1")))
    assert (found.usable, found.reason, found.remedy) == (
        False,
        "no C++ compiler found (c++, g++, clang++)",
        "sudo dnf install gcc-c++; or, without rights: pip install -e '.[compiler]'",
    )


def test_failed_build_points_to_its_log(machine_tree):
    """The compiler's words and where the rest is."""
    made = context(
        machine_tree("amx-vm"),
        build=None,
        build_error="the C++ kernels did not build: x.cpp:1: error: no (log: /c/a.log)",
    )
    found = building.kernels(made)
    assert (found.usable, found.reason, found.remedy) == (
        False,
        "the C++ kernels did not build: x.cpp:1: error: no",
        "read the log: /c/a.log",
    )


def test_foreign_build_in_the_cache_is_named(machine_tree, tmp_path):
    """A cache shared between machines: the other architecture's build is told, with its removal."""
    other = AARCH64 if platform.machine() != "aarch64" else X86_64
    folder = tmp_path / "cache" / "release-1234"
    folder.mkdir(parents=True)
    (folder / "libmoe_support.so").write_bytes(elf(other))
    found = building.build_cache(context(machine_tree("amx-vm"), cache_root=tmp_path / "cache"))
    assert (found.usable, found.remedy) == (False, f"rm -r {folder}")


def test_empty_cache_is_fine(machine_tree):
    """Nothing was built yet."""
    assert building.build_cache(context(machine_tree("amx-vm"))).usable


def test_a_cache_that_cannot_be_written_is_named(machine_tree, tmp_path):
    """A path below a file; the fix is another folder."""
    (tmp_path / "file").touch()
    found = building.build_cache(
        context(machine_tree("amx-vm"), cache_root=tmp_path / "file" / "cache")
    )
    assert (found.usable, found.reason) == (False, f"{tmp_path}/file/cache cannot be written")
    assert "MOE_PROF_CACHE" in found.remedy


def test_a_cache_that_is_not_there_yet_is_fine(machine_tree, tmp_path):
    """It is made with the first build."""
    found = building.build_cache(context(machine_tree("amx-vm"), cache_root=tmp_path / "a" / "b"))
    assert (found.usable, found.reason) == (True, f"{tmp_path}/a/b")
