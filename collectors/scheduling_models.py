"""Which of LLVM's scheduling models stands for a core in the LLVM version that is installed.

A processor name is useful only where LLVM has a scheduling model made for it. Early versions
accept a name and lend it the model of an older core (LLVM 14 runs sapphirerapids with Skylake's
tables), so each name states the first version with its own, and its relatives follow as further
choices.

Source: LLVM sources, lib/Target/X86/X86.td, lib/Target/AArch64/AArch64Processors.td and
lib/Target/RISCV/RISCVProcessors.td: the scheduling model of each processor, release by release.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

X86_ARCHITECTURES = ("x86_64", "amd64", "i686")

# First LLVM version with a scheduling model made for the name; None: lent in every version so far
_OWN_SINCE: dict[str, int | None] = {
    "haswell": 5,
    "broadwell": 6,
    "skylake": 6,
    "skylake-avx512": 6,
    "cascadelake": 8,
    "cooperlake": 9,
    "icelake-client": 14,
    "icelake-server": 14,
    "tigerlake": 14,
    "rocketlake": 14,
    "alderlake": 16,
    "sapphirerapids": 17,
    "graniterapids": None,
    "znver1": 5,
    "znver2": 10,
    "znver3": 13,
    "znver4": 17,
    "znver5": None,
    "cortex-a57": 4,
    "neoverse-n1": 16,
    "neoverse-n2": 15,
    "neoverse-v1": 17,
    "neoverse-v2": 17,
    "spacemit-x60": 21,
}

# Nearest relatives, best first; none where an older core would mislead more than it tells
_RELATIVES: dict[str, tuple[str, ...]] = {
    "skylake-avx512": ("skylake",),
    "cascadelake": ("skylake-avx512",),
    "cooperlake": ("cascadelake", "skylake-avx512"),
    "icelake-client": ("icelake-server", "skylake-avx512"),
    "icelake-server": ("skylake-avx512",),
    "tigerlake": ("icelake-client", "skylake-avx512"),
    "rocketlake": ("icelake-client", "skylake-avx512"),
    "alderlake": ("icelake-client", "skylake"),
    "sapphirerapids": ("icelake-server", "skylake-avx512"),
    "graniterapids": ("sapphirerapids", "icelake-server", "skylake-avx512"),
    "znver2": ("znver1",),
    "znver3": ("znver2",),
    "znver4": ("znver3", "znver2"),
    "znver5": ("znver4", "znver3"),
    "neoverse-n1": ("cortex-a57",),
    "neoverse-n2": ("neoverse-n1", "cortex-a57"),
    "neoverse-v1": ("neoverse-n2",),
    "neoverse-v2": ("neoverse-v1", "neoverse-n2"),
}


@dataclass(frozen=True, slots=True)
class Target:
    """The core that simulated code runs on.

    Attributes:
        architecture: as uname gives it: ``x86_64``, ``aarch64``, ``riscv64``.
        compiler_name: what compilers call the core, None when it is unknown.
    """

    architecture: str
    compiler_name: str | None

    @property
    def is_x86(self) -> bool:
        """Whether code is disassembled in AT&T syntax."""
        return self.architecture.lower() in X86_ARCHITECTURES


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The name to pass with -mcpu, None when there is none, and what should be known about it."""

    name: str | None
    note: str


def choose(target: Target, *, known: Iterable[str], version: int) -> ModelChoice:
    """Choose the scheduling model of an installed LLVM.

    Args:
        known: names that ``-mcpu=help`` lists.
        version: its major version.
    """
    wanted = target.compiler_name
    if wanted is None:
        return ModelChoice(None, "the core is unknown, so no scheduling model can be chosen")
    names = set(known)
    for name in (wanted, *_RELATIVES.get(wanted, ())):
        since = _OWN_SINCE.get(name)
        if since is None or version < since or name not in names:
            continue
        if name == wanted:
            return ModelChoice(name, "")
        return ModelChoice(name, f"llvm {version} has no model of {wanted}, {name} stands in")
    return ModelChoice(None, f"llvm {version} has no scheduling model of {wanted} or a relative")
