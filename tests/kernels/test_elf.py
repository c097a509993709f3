"""Telling the architecture of a binary."""

import platform
import sys
from pathlib import Path

import pytest

from moe_prof.kernels.elf import foreign_reason, machine_of


def header(*, machine, bits=64, order="little"):
    """The first 20 bytes of an ELF file."""
    ident = b"\x7fELF" + bytes([2 if bits == 64 else 1, 1 if order == "little" else 2]) + bytes(10)
    return ident + (3).to_bytes(2, order) + machine.to_bytes(2, order)


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (header(machine=62), "x86_64"),
        (header(machine=183), "aarch64"),
        (header(machine=243), "riscv64"),
        (header(machine=243, bits=32), "riscv32"),
        (header(machine=21), "ppc64le"),
        (header(machine=21, order="big"), "ppc64"),
        (header(machine=9999), "ELF machine 9999"),
        (b"#!/bin/sh\nexit 0\n12345", None),
        (b"\x7fELF", None),
    ],
)
def test_machine_is_read_from_the_header(tmp_path, content, name):
    """Class, byte order and machine number give the architecture's name."""
    path = tmp_path / "file"
    path.write_bytes(content)
    assert machine_of(path) == name


def test_this_interpreter_is_not_foreign():
    """A binary that runs here is accepted."""
    assert foreign_reason(Path(sys.executable).resolve()) is None


def test_foreign_binary_is_named(tmp_path):
    """A binary of another architecture is described with both names."""
    path = tmp_path / "mine.so"
    path.write_bytes(header(machine=258))
    expected = f"{path} is built for loongarch64, this machine is {platform.machine()}"
    assert foreign_reason(path) == expected
