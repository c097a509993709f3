"""Building for another architecture, and running such programs here in an emulator.

A target has drivers only, linked statically, so that a board or an emulator needs nothing beside
them. Source of the emulator's options: qemu-riscv64 (QEMU 7.2 user mode) ``-cpu help`` and
target/riscv/cpu.c: ``v``, ``vlen`` and ``vext_spec`` are off or unset by default.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from moe_prof.errors import BuildError, UnavailableError, UsageError
from moe_prof.kernels.compiler import Compiler, ask_version

TargetName = Literal["riscv64"]
TARGETS: tuple[TargetName, ...] = get_args(TargetName)
VECTOR_BITS = (128, 256, 512, 1024)
DEFAULT_VECTOR_BITS = 256
"""That of the board whose matrix extension the path ``ime`` is for."""
REQUIRED_VECTOR_BITS = {"ime": DEFAULT_VECTOR_BITS}
"""Paths whose tiles fix the length of a vector register."""

_COMPILERS = (*(f"clang++-{version}" for version in range(22, 16, -1)), "clang++",
              "riscv64-linux-gnu-g++-14", "riscv64-linux-gnu-g++")  # fmt: skip
_INSTALL_HINT = (
    "install one (Debian/Ubuntu: apt install clang-19 g++-riscv64-linux-gnu), or set CXX_RISCV64"
)
_EMULATOR_HINT = "apt install qemu-user"


@dataclass(frozen=True, slots=True)
class Target:
    """An architecture that is not this machine's.

    Attributes:
        name: as given to ``--target``, and as ``platform.machine`` names it there.
        toolchain: CMake's file beside the sources.
    """

    name: TargetName
    toolchain: str

    def compiler(self) -> Compiler:
        """A compiler for the target: CXX_RISCV64, else the first of those known to have vectors.

        Raises:
            BuildError: CXX_RISCV64 is no command line, or the compiler cannot say its version.
            UnavailableError: there is none.
        """
        wish = os.environ.get("CXX_RISCV64", "").strip()
        for name in (wish,) if wish else _COMPILERS:
            try:
                argv = tuple(shlex.split(name))
            except ValueError as error:
                raise BuildError(f"CXX_RISCV64={wish}: {error}; {_INSTALL_HINT}") from error
            found = shutil.which(argv[0])
            if found is not None:
                return ask_version((found, *argv[1:]))
        tried = f"CXX_RISCV64={wish}" if wish else ", ".join(
            ("clang++-17 and later", *_COMPILERS[-3:])
        )  # fmt: skip
        raise UnavailableError(f"no compiler for {self.name} found ({tried}); {_INSTALL_HINT}")

    def emulator(self) -> Path | None:
        """The program that runs programs of the target here, None where it is not installed."""
        found = shutil.which(f"qemu-{self.name}") or shutil.which(f"qemu-{self.name}-static")
        return Path(found) if found else None

    def command(self, vector_bits: int = DEFAULT_VECTOR_BITS) -> tuple[str, ...]:
        """What to put before a program of the target so that it runs here.

        Raises:
            UnavailableError: there is no emulator.
            UsageError: no such length of vector registers.
        """
        if vector_bits not in VECTOR_BITS:
            known = ", ".join(map(str, VECTOR_BITS))
            raise UsageError(f"vector registers of {vector_bits} bits: the emulator has {known}")
        if platform.machine() == self.name:
            return ()
        emulator = self.emulator()
        if emulator is None:
            raise UnavailableError(
                f"programs for {self.name} do not run here: qemu-{self.name} is not installed "
                f"({_EMULATOR_HINT})"
            )
        # Elements behind a tail or a mask become ones: code that relies on them is found out.
        options = f"rv64,v=true,vlen={vector_bits},vext_spec=v1.0"
        return (str(emulator), "-cpu", f"{options},rvv_ta_all_1s=true,rvv_ma_all_1s=true")


def ime_emulator() -> Path | None:
    """What carries out vmadot under qemu-user: a part of the tests, not in an installed package."""
    file = Path(__file__).resolve().parent.parent / "tests/kernels/riscv/ime_emulator.cpp"
    return file if file.is_file() else None


_BY_NAME: dict[str, Target] = {"riscv64": Target("riscv64", "riscv64.cmake")}


def target(name: str) -> Target:
    """The target of that name.

    Raises:
        UsageError: there is none.
    """
    if name not in _BY_NAME:
        raise UsageError(f"unknown target {name!r}; known: {', '.join(TARGETS)}")
    return _BY_NAME[name]
