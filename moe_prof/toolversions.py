"""Versions of the programs and packages that can have a part in a measurement.

A session keeps them, so that its raw outputs can be read again when tools have changed.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version

from moe_prof.errors import BuildError
from moe_prof.kernels.build import Kind, sources_digest
from moe_prof.kernels.compiler import find_compiler

BUILD_TOOL, SOURCES_TOOL = "build", "kernel sources"
"""Names of what was built: its kind, and a digest of the C++ sources."""
PROGRAMS = ("perf", "valgrind", "llvm-mca", "objdump", "gprof", "vtune")
PACKAGES = ("numpy", "numba", "pyperf", "cmake", "ninja")
TIMEOUT_S = 10.0

_NUMBER = re.compile(r"\d+\.\d+")


def read(build: Kind | None = None) -> dict[str, str]:
    """Version by name; what is not installed or does not tell its version is left out.

    Args:
        build: the build that is timed: its kind and a digest of its sources are versions too.
    """
    found: dict[str, str] = {}
    if build is not None:
        found[BUILD_TOOL] = build
        with contextlib.suppress(BuildError):
            found[SOURCES_TOOL] = sources_digest()
    with contextlib.suppress(BuildError):
        found["c++"] = find_compiler().version
    for name in PROGRAMS:
        path = shutil.which(name)
        text = _said(path) if path else ""
        if text:
            found[name] = text
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _said(path: str) -> str:
    """The first line with a number that a program says about its version."""
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, text=True, errors="replace",
            timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = (line.strip() for line in done.stdout.splitlines())
    return next((line for line in lines if _NUMBER.search(line)), "")
