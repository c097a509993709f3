"""The table of microarchitectures: how a core is recognised, and published figures of it.

A core is recognised by vendor, family and model. Hypervisors may show a made-up model, so the
feature flags are a second witness: a core cannot have an instruction that came later. Where the
flags contradict the model, or the model is not listed, the core is inferred from the flags and the
answer says so. What neither tells stays unknown.

Sources:

* models: the Linux kernel's ``arch/x86/include/asm/intel-family.h`` and
  ``arch/x86/kernel/cpu/amd.c``, ``arch/arm64/include/asm/cputype.h``; RISC-V: ``mvendorid`` and
  ``marchid`` as the boards report them;
* slots per cycle: the width of the narrowest stage between decoding and issue, as the top-down
  method counts it; Intel: Optimization Reference Manual, chapter 2; AMD: Software Optimization
  Guides (macro-ops dispatched per cycle); Arm: the PMU's slot count in the cores' manuals;
* misprediction penalty and latencies: named per row. Server latencies beyond L2 depend on the
  model and its mesh clock; they are given only where the maker or a named review published them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

INTEL = "GenuineIntel"
AMD = "AuthenticAMD"
ARM = "0x41"
SPACEMIT = "0x710"

_INTEL_MANUAL = "Intel Optimization Reference Manual (248966)"
_LLVM_PENALTY = "penalty: LLVM scheduling model"


@dataclass(frozen=True, slots=True)
class Microarchitecture:
    """One core design.

    Attributes:
        name: the project's name.
        compiler_name: what gcc, clang and llvm-mca call it (``-march``, ``-mcpu``).
        generation: order in time within one vendor.
        width: issue slots per cycle.
        mispredict_penalty_cycles / l2_latency_cycles / l3_latency_cycles / memory_latency_ns:
            published typical figures (load to use), None when there is none worth citing.
        source: where the figures are from.
    """

    name: str
    compiler_name: str
    generation: int
    width: int
    mispredict_penalty_cycles: float | None
    l2_latency_cycles: float | None
    l3_latency_cycles: float | None
    memory_latency_ns: float | None
    source: str


@dataclass(frozen=True, slots=True)
class Identification:
    """Which core it is (None: unknown) and how that is known."""

    core: Microarchitecture | None
    basis: str


_M = Microarchitecture

CORES: tuple[Microarchitecture, ...] = (
    _M("haswell", "haswell", 4, 4, 16, 12, None, None, f"{_INTEL_MANUAL}; {_LLVM_PENALTY}"),
    _M("broadwell", "broadwell", 5, 4, 16, 12, None, None, f"{_INTEL_MANUAL}; {_LLVM_PENALTY}"),
    _M("skylake", "skylake", 6, 4, 14, 12, None, None, f"{_INTEL_MANUAL}; {_LLVM_PENALTY}"),
    _M(
        "skylake-server", "skylake-avx512", 6, 4, 14, 14, None, None,
        f"{_INTEL_MANUAL}; {_LLVM_PENALTY}",
    ),
    _M(
        "cascadelake", "cascadelake", 7, 4, 14, 14, 46, None,
        f"{_INTEL_MANUAL}; {_LLVM_PENALTY}; L3: AnandTech, Rome review 2019 (Xeon 8280)",
    ),
    _M(
        "cooperlake", "cooperlake", 8, 4, 14, 14, None, None, f"{_INTEL_MANUAL}; {_LLVM_PENALTY}",
    ),
    _M(
        "icelake-client", "icelake-client", 9, 5, 14, 13, None, None,
        f"{_INTEL_MANUAL}; {_LLVM_PENALTY}",
    ),
    _M(
        "icelake-server", "icelake-server", 9, 5, 14, 14, None, None,
        f"{_INTEL_MANUAL}; {_LLVM_PENALTY}",
    ),
    _M("tigerlake", "tigerlake", 9, 5, 14, 14, None, None, f"{_INTEL_MANUAL}; {_LLVM_PENALTY}"),
    _M("rocketlake", "rocketlake", 9, 5, 14, 13, None, None, f"{_INTEL_MANUAL}; {_LLVM_PENALTY}"),
    _M("alderlake", "alderlake", 10, 6, 14, 15, None, None, f"{_INTEL_MANUAL}; {_LLVM_PENALTY}"),
    _M(
        "sapphirerapids", "sapphirerapids", 11, 6, 14, 14, None, None,
        f"{_INTEL_MANUAL}; {_LLVM_PENALTY}",
    ),
    _M(
        "emeraldrapids", "sapphirerapids", 11, 6, 14, 14, None, None,
        f"{_INTEL_MANUAL}; {_LLVM_PENALTY}; the core of sapphirerapids",
    ),
    _M(
        "graniterapids", "graniterapids", 12, 6, 14, 14, None, None,
        f"{_INTEL_MANUAL}; {_LLVM_PENALTY} of sapphirerapids, whose core it refines",
    ),
    _M("zen1", "znver1", 1, 6, 18, 12, None, None,
       "AMD guide 55723 (family 17h); penalty: Agner Fog, microarchitecture manual"),
    _M(
        "zen2", "znver2", 2, 6, 16, 12, 39, 122,
        "AMD guide 56305 (family 17h models 30h and later); memory: AnandTech, Rome review 2019",
    ),
    _M("zen3", "znver3", 3, 6, 13, 12, 46, None, "AMD guide 56665 (family 19h)"),
    _M("zen4", "znver4", 4, 6, 13, 14, 50, None, "AMD guide 57647 (Zen 4)"),
    _M("zen5", "znver5", 5, 8, 15, 14, None, None, "AMD guide 58455 (Zen 5)"),
    _M(
        "neoverse-n1", "neoverse-n1", 1, 4, 11, 11, None, None,
        f"Arm Neoverse N1 optimization guide (4 macro-ops decoded a cycle); {_LLVM_PENALTY}",
    ),
    _M("neoverse-v1", "neoverse-v1", 2, 8, 11, 10, None, None,
       f"Arm Neoverse V1 performance analysis guide (8 slots); {_LLVM_PENALTY}; L2: Arm, Hot "
       "Chips 2021"),
    _M("neoverse-n2", "neoverse-n2", 3, 5, 10, None, None, None,
       f"Arm Neoverse N2 optimization guide (5 macro-ops a cycle); {_LLVM_PENALTY}"),
    _M("neoverse-v2", "neoverse-v2", 4, 8, 10, 10, None, None,
       f"Arm Neoverse V2 performance analysis guide (8 slots); {_LLVM_PENALTY} (taken from N2); "
       "L2: Arm, Hot Chips 2023"),
    _M(
        "spacemit-x60", "spacemit-x60", 1, 2, 9, None, None, None,
        "LLVM scheduling model RISCVSchedSpacemitX60 (dual issue, in order, nine stages)",
    ),
)  # fmt: skip

BY_NAME: dict[str, Microarchitecture] = {core.name: core for core in CORES}

# Intel family 6 models. Cascade Lake and Cooper Lake share model 85 with Skylake; see _STEPPINGS.
_INTEL_MODELS: dict[int, str] = {
    **dict.fromkeys((0x3C, 0x3F, 0x45, 0x46), "haswell"),
    **dict.fromkeys((0x3D, 0x47, 0x4F, 0x56), "broadwell"),
    **dict.fromkeys((0x4E, 0x5E, 0x8E, 0x9E, 0xA5, 0xA6), "skylake"),
    0x55: "skylake-server",
    **dict.fromkeys((0x7D, 0x7E), "icelake-client"),
    **dict.fromkeys((0x6A, 0x6C), "icelake-server"),
    **dict.fromkeys((0x8C, 0x8D), "tigerlake"),
    0xA7: "rocketlake",
    **dict.fromkeys((0x97, 0x9A, 0xB7, 0xBA, 0xBF), "alderlake"),
    0x8F: "sapphirerapids",
    0xCF: "emeraldrapids",
    **dict.fromkeys((0xAD, 0xAE), "graniterapids"),
}
_CASCADELAKE_STEPPINGS = range(5, 8)
_COOPERLAKE_STEPPINGS = range(10, 12)

# (family, first model, last model, name)
_AMD_MODELS: tuple[tuple[int, int, int, str], ...] = (
    (0x17, 0x00, 0x2F, "zen1"),
    (0x17, 0x50, 0x5F, "zen1"),
    (0x17, 0x30, 0x4F, "zen2"),
    (0x17, 0x60, 0x7F, "zen2"),
    (0x17, 0x90, 0x91, "zen2"),
    (0x17, 0xA0, 0xAF, "zen2"),
    (0x19, 0x00, 0x0F, "zen3"),
    (0x19, 0x20, 0x5F, "zen3"),
    (0x19, 0x10, 0x1F, "zen4"),
    (0x19, 0x60, 0xAF, "zen4"),
    (0x1A, 0x00, 0x2F, "zen5"),
    (0x1A, 0x40, 0x4F, "zen5"),
    (0x1A, 0x60, 0x7F, "zen5"),
)

_ARM_PARTS: dict[int, str] = {
    0xD0C: "neoverse-n1",
    0xD40: "neoverse-v1",
    0xD49: "neoverse-n2",
    0xD4F: "neoverse-v2",
}

# Newest first: a core that shows all these flags is at least this one.
_FLAG_RULES: tuple[tuple[str, frozenset[str], str], ...] = (
    (INTEL, frozenset({"amx_fp16"}), "graniterapids"),
    (INTEL, frozenset({"amx_int8"}), "sapphirerapids"),
    (INTEL, frozenset({"avx512_fp16"}), "sapphirerapids"),
    (INTEL, frozenset({"avx_vnni", "avx2"}), "alderlake"),
    (INTEL, frozenset({"avx512_vbmi2"}), "icelake-server"),
    (INTEL, frozenset({"avx512_bf16"}), "cooperlake"),
    (INTEL, frozenset({"avx512_vnni"}), "cascadelake"),
    (INTEL, frozenset({"avx512f"}), "skylake-server"),
    (AMD, frozenset({"avx512f", "avx_vnni"}), "zen5"),
    (AMD, frozenset({"avx512f"}), "zen4"),
    (AMD, frozenset({"avx2", "vaes"}), "zen3"),
    (AMD, frozenset({"avx2", "clwb"}), "zen2"),
    (AMD, frozenset({"avx2", "sha_ni"}), "zen1"),
)
_GRANITERAPIDS_L1I_BYTES = 64 << 10  # Golden Cove has 32 KiB


def identify_x86(
    vendor: str,
    family: int | None,
    model: int | None,
    *,
    stepping: int | None,
    features: frozenset[str],
    l1i_bytes: int | None,
) -> Identification:
    """Name an x86 core from its numbers, checked against its feature flags."""
    listed = _listed_x86(vendor, family, model, stepping)
    inferred, flags = _inferred_x86(vendor, features, l1i_bytes)
    numbers = f"family {family} model {model}"
    if inferred is not None and (listed is None or inferred.generation > listed.generation):
        why = (
            f"{numbers} is not listed"
            if listed is None
            else f"{numbers} would be {listed.name}, which has no {flags[0]}"
        )
        return Identification(inferred, f"inferred from features ({', '.join(flags)}): {why}")
    if listed is not None:
        return Identification(listed, numbers)
    return Identification(None, f"unknown: {vendor or 'no vendor'} {numbers} is not listed")


def identify_arm(implementer: str, part: int | None) -> Identification:
    """Name an Arm core from ``CPU implementer`` and ``CPU part``."""
    numbers = f"implementer {implementer} part {'unknown' if part is None else hex(part)}"
    if implementer == ARM and part in _ARM_PARTS:
        return Identification(BY_NAME[_ARM_PARTS[part]], numbers)
    return Identification(None, f"unknown: {numbers} is not listed")


def identify_riscv(vendor_id: str, arch_id: str, model_name: str) -> Identification:
    """Name a RISC-V core from ``mvendorid`` and ``marchid``, or from the model's name."""
    if vendor_id == SPACEMIT and arch_id == "0x8000000058000001":
        return Identification(BY_NAME["spacemit-x60"], f"mvendorid {vendor_id} marchid {arch_id}")
    if "x60" in model_name.lower():
        return Identification(BY_NAME["spacemit-x60"], f"model name {model_name}")
    return Identification(
        None, f"unknown: mvendorid {vendor_id or '-'} marchid {arch_id or '-'} is not listed"
    )


def _listed_x86(
    vendor: str, family: int | None, model: int | None, stepping: int | None
) -> Microarchitecture | None:
    if family is None or model is None:
        return None
    if vendor == INTEL and family == 6 and model in _INTEL_MODELS:
        name = _INTEL_MODELS[model]
        if name == "skylake-server" and stepping in _CASCADELAKE_STEPPINGS:
            name = "cascadelake"
        elif name == "skylake-server" and stepping in _COOPERLAKE_STEPPINGS:
            name = "cooperlake"
        return BY_NAME[name]
    if vendor == AMD:
        for wanted, first, last, name in _AMD_MODELS:
            if family == wanted and first <= model <= last:
                return BY_NAME[name]
    return None


def _inferred_x86(
    vendor: str, features: frozenset[str], l1i_bytes: int | None
) -> tuple[Microarchitecture | None, tuple[str, ...]]:
    for wanted, flags, name in _FLAG_RULES:
        if vendor == wanted and flags <= features:
            if name == "sapphirerapids" and l1i_bytes == _GRANITERAPIDS_L1I_BYTES:
                return BY_NAME["graniterapids"], (*_ordered(flags), "64 KiB L1I")
            return BY_NAME[name], _ordered(flags)
    return None, ()


def _ordered(flags: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(flags, reverse=True))
