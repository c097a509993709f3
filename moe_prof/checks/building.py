"""Checks of what turns the sources into kernels: compiler, cmake, ninja, numba, the build cache."""

from __future__ import annotations

import os
import platform
import re
from importlib.util import find_spec
from pathlib import Path

from moe_prof.checks.base import Check, Context, unusable, usable
from moe_prof.checks.packages import install_line
from moe_prof.collectors.base import Availability
from moe_prof.errors import BuildError
from moe_prof.kernels.compiler import find_cmake, find_compiler, find_ninja
from moe_prof.kernels.elf import machine_of

# Oldest compilers whose C++17 library is complete enough.
_OLDEST = {"gcc": 9, "clang": 10}
_VERSION = re.compile(r"(?<![\w.])(\d+)\.\d+(\.\d+)?(?![\w.])")


def compiler(context: Context) -> Availability:
    """The C++ compiler that the build would call."""
    distribution = context.machine.system.distribution
    install = context.sudo(install_line("compiler", distribution))
    remedy = f"{install}; or, without rights: pip install -e '.[compiler]'"
    try:
        found = find_compiler()
    except BuildError as error:
        reason = str(error).split(";", maxsplit=1)[0]
        return unusable(reason, remedy)
    kind = "clang" if "clang" in found.version or found.is_zig else "gcc"
    match = _VERSION.search(found.version)
    if match is not None and int(match[1]) < _OLDEST[kind]:
        return unusable(
            f"{found.version} is too old: {kind} {_OLDEST[kind]} or later is needed",
            f"{remedy}; or set CXX",
        )
    return usable(f"{' '.join(found.argv)}: {found.version}")


def cmake_and_ninja(_: Context) -> Availability:
    """Both come with the package; a broken environment may lack them."""
    try:
        return usable(f"{find_cmake()}, {find_ninja()}")
    except BuildError as error:
        reason, _mark, remedy = str(error).partition("; run: ")
        return unusable(reason, remedy)


def kernels(context: Context) -> Availability:
    """Whether the C++ kernels build and run."""
    if context.build is None:
        reason, _, log = context.build_error.rpartition(" (log: ")
        return unusable(
            reason or context.build_error,
            f"read the log: {log.rstrip(')')}" if reason else "see the compiler's row",
        )
    threads = "OpenMP threads" if context.build.openmp else "no OpenMP: one thread only"
    return usable(f"built, {threads}, paths {', '.join(context.build.isas)}")


def numba(_: Context) -> Availability:
    """Whether the Python variants can be compiled."""
    if find_spec("numba") is None:
        return unusable("numba is not installed: no numba variants", "pip install numba")
    return usable("the numba variants can run")


def build_cache(context: Context) -> Availability:
    """Where builds are kept, whether that can be written, whether some are of another machine."""
    foreign = _foreign_builds(context.cache_root)
    if not _can_be_written(context.cache_root):
        return unusable(
            f"{context.cache_root} cannot be written",
            "export MOE_PROF_CACHE=FOLDER, one that can be written",
        )
    if not foreign:
        return usable(str(context.cache_root))
    names = ", ".join(sorted(set(foreign.values())))
    folders = " ".join(str(folder) for folder in foreign)
    return unusable(
        f"{len(foreign)} build(s) for {names} in the cache, on this {platform.machine()} machine; "
        "they are never run",
        f"rm -r {folders}",
    )


def _can_be_written(folder: Path) -> bool:
    """Whether files can be made in the folder, or the folder itself where it is missing."""
    for place in (folder, *folder.parents):
        if os.path.lexists(place):
            return place.is_dir() and os.access(place, os.W_OK | os.X_OK)
    return False


def _foreign_builds(root: Path) -> dict[Path, str]:
    """Builds whose library is for another architecture, with its name."""
    found = {}
    for library in sorted(root.glob("*/libmoe_support.so")):
        try:
            machine = machine_of(library)
        except OSError:
            continue
        if machine is not None and machine != platform.machine():
            found[library.parent] = machine
    return found


CHECKS: tuple[Check, ...] = (
    Check("build", "compiler", "compiles the C++ kernels on first use", compiler),
    Check("build", "cmake, ninja", "run the compiler", cmake_and_ninja),
    Check("build", "C++ kernels", "the variants, one library per ISA path", kernels),
    Check("build", "numba", "compiles the Python variants", numba),
    Check("build", "build cache", "keeps builds by sources, compiler and CPU", build_cache),
)
