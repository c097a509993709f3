"""Whole libraries of paths that few CPUs have, built to run on one with AVX-512-VNNI.

amx_int8: over a model of the tiles (tests/emulation/amx_shim.h), all else as it is; avx_vnni: its
sources with the products in AVX-512's encoding (evex_vnni.h).
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from moe_prof import kernels
from moe_prof.kernels.build import SOURCE_DIR
from moe_prof.kernels.compiler import find_compiler
from moe_prof.kernels.features import read_cpu, supported
from tests.kernels.isa_kernels import PACKED, PATHS

NEEDS = "avx512_vnni"
CPP = SOURCE_DIR / "cpp"
EMULATION = Path(__file__).parent.parent / "emulation"
MODELS = {
    "amx_int8": ('-DMOE_AMX_SHIM="amx_shim.h"', f"-I{EMULATION}"),
    "avx_vnni": ("-include", f"{EMULATION / 'evex_vnni.h'}"),
}
_FLAGS = (
    "-std=c++17", "-O1", "-ffp-contract=off", "-fPIC", "-shared", "-pthread",
    "-Wno-unknown-pragmas", "-DMOE_CHECK_MICROKERNELS", f"-I{CPP}", f"-I{SOURCE_DIR / 'include'}",
)  # fmt: skip
_PLAN = ("plan", "parallel", "cpus", "same_memory", "wait_policy", "thread_pool", "variants/packed",
         "variants/dispatched")  # fmt: skip


def absence() -> str:
    """Why the models cannot run here, "" when they can."""
    return "" if NEEDS in supported(read_cpu()) else f"this CPU has no {NEEDS} path"


def build(isa: str, folder: Path) -> Path:
    """The library of a path, over its model."""
    sources = [*(CPP / f"{name}.cpp" for name in _PLAN), *sorted(PACKED.glob("*.cpp"))]
    return compiled(isa, sources, folder / f"libmoe_{isa}_model.so")


def compiled(isa: str, sources: Sequence[Path], out: Path) -> Path:
    """A library of these sources with a path's microkernels, over its model."""
    path = next(path for path in PATHS if path.isa == isa)
    native = next(path for path in PATHS if path.isa == NEEDS)
    sources = [*sources, *path.sources(), *path.tables()]
    name = f'-DMOE_ISA_NAME="{isa}"'
    argv = [*find_compiler().argv, *_FLAGS, *native.flags, name, *MODELS[isa], "-o", str(out)]
    subprocess.run([*argv, *map(str, sources)], check=True, capture_output=True)
    return out


def prepare(library: Path, variant: str, w, **options):
    """A plan of such a library."""
    return kernels.variant(f"{library}:{variant}").prepare(w, **options)
