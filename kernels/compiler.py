"""Finding the tools of the build: a C++ compiler, cmake and ninja."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from moe_prof.errors import BuildError, NoCompilerError

CANDIDATES = ("c++", "g++", "clang++")
_TWINS = {"gcc": "g++", "clang": "clang++", "cc": "c++"}
_C_COMPILER = re.compile(
    r"(?P<before>(?:.*/)?(?:[\w.]+-)*)(?P<name>gcc|clang|cc)(?P<after>(?:-\d+(?:\.\d+)*)?)"
)
INSTALL_HINT = (
    "install one (Debian/Ubuntu: apt install g++) or the one from PyPI "
    "(pip install -e '.[compiler]'), or set CXX"
)


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C++ compiler.

    Attributes:
        argv: how it is called; more than one word for a compiler inside another program.
        version: the first line it says about itself, part of the build's key.
        is_zig: the compiler of the ziglang package, which has no OpenMP and wants its own flags.
        flags: further flags, after those of the build.
    """

    argv: tuple[str, ...]
    version: str
    is_zig: bool
    flags: tuple[str, ...] = ()


def find_compiler() -> Compiler:
    """The compiler of CXX, else the first of c++, g++, clang++ on PATH, else ziglang's.

    Raises:
        NoCompilerError: there is none.
        BuildError: it cannot even say its version.
    """
    wish = os.environ.get("CXX", "").strip()
    if wish:
        return named_compiler(wish, f"CXX={wish}")
    for name in CANDIDATES:
        found = shutil.which(name)
        if found is not None:
            return ask_version((found,))
    if find_spec("ziglang") is not None:
        return ask_version((sys.executable, "-m", "ziglang", "c++"))
    raise NoCompilerError(f"no C++ compiler found ({', '.join(CANDIDATES)}); {INSTALL_HINT}")


def named_compiler(command: str, origin: str) -> Compiler:
    """The compiler that a command line calls, of one word or several.

    A C compiler (gcc, clang-19) stands for the C++ compiler beside it, since it would not link.

    Args:
        origin: who named it, for the error.

    Raises:
        NoCompilerError: there is no such program.
        BuildError: it cannot even say its version.
    """
    try:
        argv = tuple(shlex.split(command))
    except ValueError as error:
        raise BuildError(f"{origin}: {error}; {INSTALL_HINT}") from error
    if not argv or shutil.which(argv[0]) is None:
        raise NoCompilerError(f"{origin}: no such program; {INSTALL_HINT}")
    found = _C_COMPILER.fullmatch(argv[0])
    if found is not None:
        twin = f"{found['before']}{_TWINS[found['name']]}{found['after']}"
        if shutil.which(twin) is None:
            raise NoCompilerError(
                f"{origin}: this is a C compiler, and its C++ compiler {twin} is not there; "
                f"{INSTALL_HINT}"
            )
        argv = (twin, *argv[1:])
    return ask_version(argv)


def find_cmake() -> Path:
    """The cmake of the PyPI package, else of PATH.

    Raises:
        BuildError: there is none.
    """
    return _find_tool("cmake")


def find_ninja() -> Path:
    """The ninja of the PyPI package, else of PATH.

    Raises:
        BuildError: there is none.
    """
    return _find_tool("ninja")


def ask_version(argv: tuple[str, ...]) -> Compiler:
    """The compiler that is called so.

    Raises:
        BuildError: it cannot be run.
    """
    try:
        done = subprocess.run(
            [*argv, "--version"], capture_output=True, text=True, errors="replace", timeout=60,
            check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"the compiler {shlex.join(argv)} cannot be run: {error}") from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()[:1] or ["nothing"]
        raise BuildError(
            f"the compiler {shlex.join(argv)} failed to tell its version "
            f"(exit {done.returncode}): {said[0]}"
        )
    lines = done.stdout.strip().splitlines()
    return Compiler(argv, lines[0] if lines else "unknown", is_zig="ziglang" in argv)


def _find_tool(name: str) -> Path:
    """A tool that PyPI packages ship: inside the package, among its scripts, or on PATH."""
    spec = find_spec(name)
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    places = [Path(folder) / "data" / "bin" / name for folder in folders]
    places.append(Path(sysconfig.get_path("scripts")) / name)
    for place in places:
        if os.access(place, os.X_OK) and place.is_file():
            return place
    found = shutil.which(name)
    if found is None:
        raise BuildError(f"{name} not found; run: {sys.executable} -m pip install {name}")
    return Path(found)
