"""What the tests of RISC-V need: a cross compiler, an emulator and what is built once with them."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path

import pytest

from moe_prof.errors import BuildError, UnavailableError
from moe_prof.kernels import build as kernel_build
from moe_prof.kernels.build import SOURCE_DIR, Build
from moe_prof.kernels.target import VECTOR_BITS, ime_emulator, target

RISCV64 = target("riscv64")
CPP = SOURCE_DIR / "cpp"
FLAGS = ("--target=riscv64-linux-gnu", "-std=c++17", "-O1", "-g0", "-ffp-contract=off", "-Wall",
         "-Wextra", "-Werror", f"-I{CPP}", f"-I{SOURCE_DIR / 'include'}")  # fmt: skip


def clang() -> tuple[str, ...]:
    """The cross compiler; skips where it or the emulator is missing or has no vectors."""
    if RISCV64.emulator() is None:
        pytest.skip("qemu-riscv64 is not installed (apt install qemu-user)")
    try:
        compiler = RISCV64.compiler()
    except (BuildError, UnavailableError) as error:
        pytest.skip(str(error))
    if "clang" not in compiler.version:
        pytest.skip(f"{compiler.version}: these tests want clang 17 or later")
    return compiler.argv


@functools.cache
def built() -> Build:
    """The drivers for riscv64; skips where they cannot be built or have no vectors."""
    clang()
    try:
        found = kernel_build.build("release", target="riscv64")
    except BuildError as error:
        pytest.skip(f"the cross build fails here: {error}")
    if "rvv" not in found.isas:
        pytest.skip(f"no RISC-V vectors in the cross build: {found.unusable.get('rvv')}")
    return found


def compile_microkernels(out: Path) -> Path:
    """A program of the matrix extension's and the vectors' kernels and their checks."""
    here = Path(__file__).parent / "riscv"
    rvv = [file for file in sorted((CPP / "packed/rvv").glob("*.cpp")) if "table" not in file.name]
    kernels = [here / "microkernels.cpp", *sorted((CPP / "packed/ime").glob("*.cpp")), *rvv]
    emulator = ime_emulator()
    assert emulator is not None
    for arch, sources in (("rv64gcv", kernels), ("rv64gc", [emulator])):
        argv = [*clang(), *FLAGS, f"-march={arch}", "-c", *map(str, sources)]
        done = subprocess.run(argv, cwd=out, capture_output=True, text=True, check=False)
        if done.returncode != 0 and "'cmath' file not found" in done.stderr:
            pytest.skip("the C++ library of riscv64 is not installed (g++-riscv64-linux-gnu)")
        assert done.returncode == 0, done.stderr
    program = out / "microkernels"
    objects = map(str, sorted(out.glob("*.o")))
    argv = [*clang(), "--target=riscv64-linux-gnu", "-static", "-o", str(program), *objects]
    subprocess.run(argv, check=True, capture_output=True)
    return program


def run(program: Path, *args: object, vector_bits: int = 256, **environment: str):
    """The finished run of a program for riscv64 in the emulator."""
    assert vector_bits in VECTOR_BITS
    argv = [*RISCV64.command(vector_bits), str(program), *map(str, args)]
    settings = [item for pair in environment.items() for item in ("-E", "=".join(pair))]
    argv[1:1] = settings
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)
