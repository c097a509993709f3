"""Checks of the instruction-set paths: does the CPU have it, does the system allow it, is it built.

Where the support library has a probe for a path, the probe is run for an instant: only that tells
whether tiles may be used and whether a hypervisor hides what it advertises.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from moe_prof.checks.base import Check, Context, unusable, usable
from moe_prof.collectors.base import Availability
from moe_prof.errors import BuildError
from moe_prof.kernels.features import BY_NAME as BUILT_PATHS
from moe_prof.kernels.table import VARIANTS
from moe_prof.measure.ceilings import ProbeLibrary

_PROBE_BATCH_S = 1e-4
_TILES_REMEDY = "needs Linux 5.16 or later, in a container also a profile that allows arch_prctl"


@dataclass(frozen=True, slots=True)
class PathFacts:
    """What one path needs.

    Attributes:
        name: as given to ``--isa``.
        idea: one line for ``list``.
        architecture: "" for every one.
        features: flags of /proc/cpuinfo.
        probe: of the support library, "" when there is none.
        core: the only core that has it, "" for every one.
    """

    name: str
    idea: str
    architecture: str
    features: tuple[str, ...]
    probe: str = ""
    core: str = ""


PATHS: tuple[PathFacts, ...] = (
    PathFacts("portable", BUILT_PATHS["portable"].idea, "", (), "int8_portable"),
    PathFacts("native", BUILT_PATHS["native"].idea, "", ()),
    PathFacts(
        "avx2", BUILT_PATHS["avx2"].idea, "x86_64", BUILT_PATHS["avx2"].features, "int8_avx2_words",
    ),
    PathFacts(
        "avx_vnni", BUILT_PATHS["avx_vnni"].idea, "x86_64", BUILT_PATHS["avx_vnni"].features,
        "int8_avx_vnni",
    ),
    PathFacts(
        "avx512_vnni", BUILT_PATHS["avx512_vnni"].idea, "x86_64",
        BUILT_PATHS["avx512_vnni"].features, "int8_avx512_vnni",
    ),
    PathFacts(
        "amx_int8", BUILT_PATHS["amx_int8"].idea, "x86_64", BUILT_PATHS["amx_int8"].features,
        "int8_amx_int8",
    ),
    PathFacts("neon_dot", "128-bit int8 dot products", "aarch64", ("asimddp",), "int8_neon_dot"),
    PathFacts("rvv", BUILT_PATHS["rvv"].idea, "riscv64", BUILT_PATHS["rvv"].features),
    PathFacts(
        "ime", BUILT_PATHS["ime"].idea, "riscv64", BUILT_PATHS["ime"].features, core="spacemit-x60"
    ),
)  # fmt: skip


def judge(path: PathFacts, context: Context) -> Availability:
    """Whether the path can run here; the reason says what stands in the way."""
    machine = context.machine
    if path.architecture not in ("", machine.architecture):
        return unusable(f"needs {path.architecture}, this is {machine.architecture}")
    lacking = [flag for flag in path.features if flag not in machine.features]
    if lacking:
        return unusable(f"this CPU does not show {', '.join(lacking)}", _lacking_remedy(context))
    core = machine.microarchitecture
    if path.core and (core is None or core.name != path.core):
        return unusable(f"only {path.core} has it")
    refusal = _refusal(path, context)
    if refusal is not None:
        return refusal
    users = [spec.name for spec in VARIANTS if path.name in spec.isas]
    if users:
        return usable(f"used by {', '.join(users)}")
    return usable("the instructions run here; no built-in variant uses them yet")


def _refusal(path: PathFacts, context: Context) -> Availability | None:
    """Why a path whose features are shown still does not run."""
    if context.build is None:
        return None if path.name not in BUILT_PATHS else unusable("the C++ kernels do not build")
    if path.name in BUILT_PATHS and path.name not in context.build.isas:
        reason = context.build.unusable.get(path.name, "not part of this build")
        return unusable(reason, _build_remedy(reason))
    if not path.probe:
        return None
    try:
        library = ProbeLibrary(context.build.support)
    except BuildError as error:
        return unusable(str(error))
    rate = library.rate(path.probe, (-1,), set_bytes=0, batch_s=_PROBE_BATCH_S, batches=1)
    if rate.value is not None:
        return None
    remedy = _lacking_remedy(context)
    if path.name == "amx_int8":
        remedy = _TILES_REMEDY
    return unusable(rate.reason, remedy)


def _build_remedy(reason: str) -> str:
    """What helps where the build could not use a path."""
    if "arch_prctl" in reason:
        return _TILES_REMEDY
    return "use a newer compiler (set CXX)" if "flags" in reason else ""


def _lacking_remedy(context: Context) -> str:
    if context.machine.limits.hypervisor:
        return "if the host has it: a virtual machine that shows the host's features (-cpu host)"
    return ""


CHECKS: tuple[Check, ...] = tuple(
    Check("ISA paths", path.name, path.idea, partial(judge, path)) for path in PATHS
)
