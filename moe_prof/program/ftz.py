"""A second run with denormal numbers flushed to zero: what they cost, by difference.

A small library that sets flush-to-zero and denormals-are-zero is loaded before the program;
threads inherit the setting. Works for dynamically linked programs on x86.

Source: Intel 64 and IA-32 Architectures Software Developer's Manual, MXCSR; ld.so(8), LD_PRELOAD.
"""

from __future__ import annotations

import os
from pathlib import Path

from moe_prof.collectors.toolrun import run_tool
from moe_prof.errors import BuildError, ToolError, UnavailableError
from moe_prof.kernels.compiler import find_compiler

SOURCE = """\
#include <xmmintrin.h>
__attribute__((constructor)) static void flush_denormals(void) {
    _mm_setcsr(_mm_getcsr() | 0x8040);
}
"""
BUILD_S = 60.0


def flushing(folder: Path) -> dict[str, str]:
    """Variables under which a program flushes denormals.

    Raises:
        UnavailableError: the library cannot be built.
    """
    source, library = folder / "flush.cpp", folder / "flush.so"
    try:
        source.write_text(SOURCE, encoding="ascii")
        compiler = find_compiler().argv
        line = (*compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(source))
        run = run_tool(line, folder=folder, name="flush-build", timeout_s=BUILD_S)
    except (OSError, BuildError, ToolError) as error:
        raise UnavailableError(f"denormals cannot be flushed: {error}") from error
    if run.returncode:
        raise UnavailableError("denormals cannot be flushed: the compiler refused the library")
    loaded = os.environ.get("LD_PRELOAD", "")
    return {"LD_PRELOAD": f"{library} {loaded}".strip()}
