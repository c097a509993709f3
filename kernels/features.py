"""Instruction-set paths, the CPU features each needs, and what this CPU has.

Source: the ``flags`` line of /proc/cpuinfo on x86 (``Features`` on Arm, ``isa`` on RISC-V), which
names only what the kernel lets programs use. The list for ``avx2`` is the x86-64-v3 level of the
x86-64 psABI, the level its compiler flag stands for.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass
from pathlib import Path

from moe_prof.errors import UsageError

CPUINFO = Path("/proc/cpuinfo")
_FEATURE_KEYS = ("flags", "Features", "isa")
_MODEL_KEYS = ("model name", "uarch", "CPU part", "cpu")


@dataclass(frozen=True, slots=True)
class IsaPath:
    """One way the C++ kernels are compiled.

    Attributes:
        name: as given to ``--isa`` and MOE_PROF_ISA, and reported by ``plan.info.isa``.
        machine: the only architecture that has it (as ``platform.machine``), "" for every one.
        features: flags that the CPU must report.
        idea: one line for ``list`` and ``doctor``.
    """

    name: str
    machine: str
    features: tuple[str, ...]
    idea: str


ISA_PATHS: tuple[IsaPath, ...] = (
    IsaPath("native", "", (), "the compiler's flags for exactly this CPU"),
    IsaPath(
        "amx_int8", "x86_64",
        ("avx2", "fma", "f16c", "bmi1", "bmi2", "abm", "movbe", "avx512f", "avx512bw", "avx512cd",
         "avx512dq", "avx512vl", "avx512_vnni", "amx_tile", "amx_int8"),
        "int8 tiles of 16 x 64 for several rows, else as avx512_vnni",
    ),
    IsaPath(
        "avx512_vnni", "x86_64",
        ("avx2", "fma", "f16c", "bmi1", "bmi2", "abm", "movbe", "avx512f", "avx512bw", "avx512cd",
         "avx512dq", "avx512vl", "avx512_vnni"),
        "512-bit vectors of x86-64-v4 with VNNI's int8 dot products",
    ),
    IsaPath(
        "avx_vnni", "x86_64",
        ("avx2", "fma", "f16c", "bmi1", "bmi2", "abm", "movbe", "avx_vnni"),
        "256-bit vectors of x86-64-v3 with VNNI's int8 dot products",
    ),
    IsaPath(
        "avx2", "x86_64", ("avx2", "fma", "f16c", "bmi1", "bmi2", "abm", "movbe"),
        "256-bit vectors of x86-64-v3",
    ),
    IsaPath(
        "ime", "riscv64", ("v",), "SpacemiT's matrix extension beside 256-bit RISC-V vectors"
    ),
    IsaPath("rvv", "riscv64", ("v",), "RISC-V vectors 1.0 of any length from 128 bits"),
    IsaPath("portable", "", (), "the architecture's baseline, runs everywhere"),
)  # fmt: skip

BY_NAME: dict[str, IsaPath] = {path.name: path for path in ISA_PATHS}


@dataclass(frozen=True, slots=True)
class CpuFeatures:
    """What a CPU reports: architecture, model name and feature flags."""

    machine: str
    model: str
    flags: frozenset[str]


def parse_cpuinfo(text: str, machine: str) -> CpuFeatures:
    """Features of the first CPU in the text of /proc/cpuinfo."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        key, _, value = line.partition(":")
        fields.setdefault(key.strip(), value.strip())
    model = next((fields[key] for key in _MODEL_KEYS if fields.get(key)), "")
    flags = set(" ".join(fields.get(key, "") for key in _FEATURE_KEYS).split())
    if fields.get("isa", "").startswith("rv"):  # rv64imafdcv_zba: letters, then names
        letters, *names = fields["isa"].split("_")
        flags |= {*letters[4:], *names}
    return CpuFeatures(machine, model, frozenset(flags))


def read_cpu() -> CpuFeatures:
    """Features of this machine's first CPU; no flags where /proc/cpuinfo cannot be read."""
    try:
        text = CPUINFO.read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    return parse_cpuinfo(text, platform.machine())


def isa_path(name: str) -> IsaPath:
    """The path of that name.

    Raises:
        UsageError: there is none.
    """
    if not isinstance(name, str) or name not in BY_NAME:
        raise UsageError(f"unknown ISA path {name!r}; known paths: {', '.join(BY_NAME)}")
    return BY_NAME[name]


def missing(path: IsaPath, cpu: CpuFeatures) -> tuple[str, ...]:
    """What the CPU lacks for a path; empty when the path can run."""
    if path.machine and path.machine != cpu.machine:
        return (f"a {path.machine} CPU",)
    return tuple(feature for feature in path.features if feature not in cpu.flags)


def supported(cpu: CpuFeatures) -> tuple[str, ...]:
    """Names of the paths that the CPU can run, best first."""
    return tuple(path.name for path in ISA_PATHS if not missing(path, cpu))


def check_supported(name: str, cpu: CpuFeatures) -> None:
    """Refuse a path that the CPU cannot run.

    Raises:
        UsageError: the path is unknown, or the CPU lacks features (named).
    """
    lacking = missing(isa_path(name), cpu)
    if lacking:
        raise UsageError(
            f"ISA path {name!r} cannot run here: this CPU lacks {', '.join(lacking)}; "
            f"paths that run here: {', '.join(supported(cpu))}"
        )
