"""LLVM's names of processors, from what the CPU says of itself.

A virtual machine may report the family and model of another processor than the one it runs on: the
feature flags are then believed over the model. A name is only useful where LLVM has a scheduling
model of its own for it; early versions lend one from an older core, so that each name states the
first LLVM version with its own model, and an older relative follows as the second choice.

Source: LLVM sources, lib/TargetParser/Host.cpp (names by family and model), lib/Target/X86/X86.td
and lib/Target/AArch64/AArch64Processors.td (scheduling model by name); /proc/cpuinfo.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")


@dataclass(frozen=True, slots=True)
class CpuFacts:
    """What identifies a core.

    Attributes:
        machine: as uname gives it: x86_64, aarch64, riscv64.
        vendor: ``GenuineIntel``, ``AuthenticAMD``, or Arm's implementer (``0x41``).
        family / model: x86 numbers; for Arm ``model`` is the part number; 0 when unknown.
        flags: feature flags.
    """

    machine: str
    vendor: str
    family: int
    model: int
    flags: frozenset[str]


@dataclass(frozen=True, slots=True)
class LlvmName:
    """A processor name and the first LLVM version with a scheduling model made for it.

    ``since`` is None where every version so far lends the model of an older core.
    """

    name: str
    since: int | None


@dataclass(frozen=True, slots=True)
class LlvmChoice:
    """The name to pass with -mcpu, None when there is none, and what should be known about it."""

    name: str | None
    note: str


_ICELAKE = (LlvmName("icelake-server", 14), LlvmName("skylake-avx512", 6))
_ROCKETLAKE = (LlvmName("rocketlake", 14), *_ICELAKE)
_TIGERLAKE = (LlvmName("tigerlake", 14), *_ICELAKE)
_SAPPHIRE = (LlvmName("sapphirerapids", 17), *_ICELAKE)
_GRANITE = (LlvmName("graniterapids", None), *_SAPPHIRE)
_ALDER = (LlvmName("alderlake", 16), LlvmName("skylake", 6))
_SKX = (LlvmName("skylake-avx512", 6),)
_SKL = (LlvmName("skylake", 6), LlvmName("haswell", 5))
_ZEN2 = (LlvmName("znver2", 10), LlvmName("znver1", 5))
_ZEN3 = (LlvmName("znver3", 13), *_ZEN2)
_ZEN4 = (LlvmName("znver4", 17), *_ZEN3)
_ZEN5 = (LlvmName("znver5", None), *_ZEN4)

_INTEL_FAMILY_6: dict[int, tuple[LlvmName, ...]] = {
    **dict.fromkeys((60, 63, 69, 70), (LlvmName("haswell", 5),)),
    **dict.fromkeys((61, 71, 79, 86), (LlvmName("broadwell", 5),)),
    **dict.fromkeys((78, 94, 142, 158, 165, 166), _SKL),
    85: (LlvmName("cascadelake", 8), *_SKX),
    **dict.fromkeys((106, 108), _ICELAKE),
    **dict.fromkeys((125, 126), (LlvmName("icelake-client", 14), *_ICELAKE)),
    167: _ROCKETLAKE,
    **dict.fromkeys((140, 141), _TIGERLAKE),
    **dict.fromkeys((151, 154, 183, 186, 190, 191), _ALDER),
    **dict.fromkeys((143, 207), _SAPPHIRE),
    **dict.fromkeys((173, 174), _GRANITE),
}
_ARM_PARTS: dict[int, tuple[LlvmName, ...]] = {
    0xD03: (LlvmName("cortex-a53", 4),),
    0xD05: (LlvmName("cortex-a55", 12),),
    0xD08: (LlvmName("cortex-a72", 4),),
    0xD0B: (LlvmName("cortex-a76", 9), LlvmName("cortex-a57", 4)),
    0xD0C: (LlvmName("neoverse-n1", 16), LlvmName("cortex-a57", 4)),
    0xD40: (LlvmName("neoverse-v1", 17), LlvmName("cortex-a57", 4)),
    0xD49: (LlvmName("neoverse-n2", 15), LlvmName("cortex-a57", 4)),
    0xD4F: (LlvmName("neoverse-v2", 17), LlvmName("neoverse-n2", 15)),
}


def read_facts(cpuinfo: Path = CPUINFO) -> CpuFacts:
    """The first core of /proc/cpuinfo; what cannot be read is left empty."""
    try:
        text = cpuinfo.read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    return parse_cpuinfo(text, machine=platform.machine())


def parse_cpuinfo(text: str, *, machine: str) -> CpuFacts:
    """Facts from the text of /proc/cpuinfo."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        key, separator, value = line.partition(":")
        if separator:
            fields.setdefault(key.strip(), value.strip())

    def number(*keys: str) -> int:
        for key in keys:
            try:
                return int(fields[key], 0)
            except (KeyError, ValueError):
                continue
        return 0

    return CpuFacts(
        machine=machine,
        vendor=fields.get("vendor_id", fields.get("CPU implementer", "")),
        family=number("cpu family", "CPU architecture"),
        model=number("model", "CPU part"),
        flags=frozenset(fields.get("flags", fields.get("Features", "")).split()),
    )


def llvm_name(facts: CpuFacts, *, known: Iterable[str], version: int) -> LlvmChoice:
    """Choose the processor name for an installed LLVM.

    Args:
        known: names that ``-mcpu=help`` lists.
        version: its major version.
    """
    names = set(known)
    wanted, note = _wanted(facts)
    if not wanted:
        return LlvmChoice(
            None,
            f"no LLVM name is known for this CPU ({facts.machine} {facts.vendor or 'unknown'} "
            f"family {facts.family} model {facts.model}); pass one with --mcpu",
        )
    for place, candidate in enumerate(wanted):
        own_model = candidate.since is not None and version >= candidate.since
        if candidate.name in names and own_model:
            if place:
                lent = f"llvm {version} has no model of {wanted[0].name}, {candidate.name} is used"
                note = f"{note}; {lent}" if note else lent
            return LlvmChoice(candidate.name, note)
    return LlvmChoice(
        None,
        f"llvm {version} has no scheduling model of {wanted[0].name} or a relative; "
        "install a newer one (apt install llvm-19)",
    )


def _wanted(facts: CpuFacts) -> tuple[tuple[LlvmName, ...], str]:
    if facts.vendor == "GenuineIntel":
        return _intel(facts)
    if facts.vendor in {"AuthenticAMD", "HygonGenuine"}:
        return _amd(facts), ""
    if facts.vendor.lower() == "0x41":
        return _ARM_PARTS.get(facts.model, ()), ""
    if facts.machine.startswith("riscv"):
        return (LlvmName("spacemit-x60", 21),), ""
    return (), ""


def _intel(facts: CpuFacts) -> tuple[tuple[LlvmName, ...], str]:
    by_model = _INTEL_FAMILY_6.get(facts.model, ()) if facts.family == 6 else ()
    by_flags: tuple[LlvmName, ...] = ()
    if "amx_fp16" in facts.flags:
        by_flags = _GRANITE
    elif "amx_int8" in facts.flags:
        by_flags = _SAPPHIRE
    if by_flags and by_model not in {_SAPPHIRE, _GRANITE}:
        return by_flags, (
            f"family {facts.family} model {facts.model} contradicts the AMX flags (a virtual "
            f"machine masks it): taken for {by_flags[0].name}"
        )
    return by_model, ""


def _amd(facts: CpuFacts) -> tuple[LlvmName, ...]:
    """By family; Zen 3 and 4 share one, and only Zen 4 has AVX-512."""
    generations: Mapping[int, tuple[LlvmName, ...]] = {
        0x17: _ZEN2 if facts.model >= 0x30 else (LlvmName("znver1", 5),),
        0x18: (LlvmName("znver1", 5),),
        0x19: _ZEN4 if _is_zen4(facts) else _ZEN3,
        0x1A: _ZEN5,
    }
    return generations.get(facts.family, ())


def _is_zen4(facts: CpuFacts) -> bool:
    models = (range(0x10, 0x20), range(0x60, 0x80), range(0xA0, 0xB0))
    return "avx512f" in facts.flags or any(facts.model in part for part in models)
