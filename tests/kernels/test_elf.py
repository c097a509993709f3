"""Telling the architecture of a binary."""

import platform
import random
import sys
from pathlib import Path

import pytest

from moe_prof.kernels import build as kernel_build
from moe_prof.kernels.elf import code_segments, foreign_reason, is_cut_off, machine_of


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


@pytest.mark.parametrize("kept", [64, 1000, 0.5, 0.9])
def test_a_binary_that_was_cut_off_is_named(tmp_path, kept):
    """Loading one would end the process by SIGBUS."""
    whole = kernel_build.build().support.read_bytes()
    end = max(
        offset + length
        for offset, length in segments(whole)
    )  # fmt: skip
    path = tmp_path / "mine.so"
    path.write_bytes(whole[: kept if isinstance(kept, int) else int(kept * end)])
    assert foreign_reason(path) == f"{path} is cut off"


def test_damaged_headers_never_crash(tmp_path):
    """Any bytes behind the ELF magic give an answer."""
    start = kernel_build.build().support.read_bytes()[:4096]
    generator = random.Random(1)
    path = tmp_path / "mine.so"
    for _ in range(300):
        damaged = bytearray(start)
        for _ in range(8):
            damaged[generator.randrange(4, 64)] = generator.randrange(256)
        path.write_bytes(damaged)
        assert isinstance(foreign_reason(path), str | None)
        assert isinstance(is_cut_off(path), bool)


def segments(content):
    """(offset, size) of the segments of a 64-bit little-endian file."""
    table, entry, number = (
        int.from_bytes(content[at : at + size], "little")
        for at, size in ((32, 8), (54, 2), (56, 2))
    )
    for at in range(table, table + entry * number, entry):
        yield tuple(int.from_bytes(content[at + o : at + o + 8], "little") for o in (8, 32))


def test_executable_segments(tmp_path):
    """Those of the running interpreter hold code; another file has none."""
    found = code_segments(Path(sys.executable).resolve())
    assert found
    assert all(segment.size_bytes > 0 for segment in found)
    other = tmp_path / "other"
    other.write_bytes(b"no program at all")
    assert code_segments(other) == ()
