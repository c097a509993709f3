"""The operating system's side: clock control, kernel settings that profilers depend on, memory."""

from __future__ import annotations

import re
from dataclasses import dataclass

from moe_prof.machine.cpu import CPU_FOLDER
from moe_prof.machine.tree import Tree

PMU_FOLDER = "sys/bus/event_source/devices"

# Names that the kernel gives to a core's own counters: x86 and RISC-V ``cpu``, hybrid x86
# ``cpu_core``/``cpu_atom``, Arm ``armv8_pmuv3_0``, ``armv8_cortex_a72``, ``apple_firestorm_pmu``.
_CORE_PMU = re.compile(r"cpu|cpu_core|cpu_atom|armv\d+_.+|apple_.+_pmu")
_CHOSEN = re.compile(r"\[(\w+)\]")


@dataclass(frozen=True, slots=True)
class System:
    """Settings as the kernel shows them; None where it does not.

    Attributes:
        governors: distinct frequency governors of the CPUs; empty where there is no control.
        turbo: whether clocks above the nominal one are allowed.
        core_pmus / other_pmus: event sources of the core itself, and all others.
        perf_event_paranoid: 2 and more forbid counting the kernel, 3 and more (a distribution's
            patch) everything.
        perf_event_mlock_kb: memory that unprivileged perf buffers may lock.
        ptrace_scope: 0 allows attaching to any own process.
        transparent_hugepages: always, madvise or never.
        distribution: ``ID`` and ``ID_LIKE`` of os-release.
    """

    kernel: str
    distribution: tuple[str, ...]
    governors: tuple[str, ...]
    turbo: bool | None
    core_pmus: tuple[str, ...]
    other_pmus: tuple[str, ...]
    perf_event_paranoid: int | None
    perf_event_mlock_kb: int | None
    ptrace_scope: int | None
    transparent_hugepages: str | None
    memory_total_bytes: int | None
    memory_available_bytes: int | None


def read_system(tree: Tree, online: tuple[int, ...]) -> System:
    """Read the settings from the tree."""
    pmus = tree.names(PMU_FOLDER)
    core = tuple(name for name in pmus if _CORE_PMU.fullmatch(name))
    memory = tree.fields("proc/meminfo")
    chosen = _CHOSEN.search(tree.text("sys/kernel/mm/transparent_hugepage/enabled") or "")
    governors = {tree.text(f"{CPU_FOLDER}/cpu{cpu}/cpufreq/scaling_governor") for cpu in online} - {
        None
    }
    return System(
        tree.text("proc/sys/kernel/osrelease") or "",
        _distribution(tree),
        tuple(sorted(name for name in governors if name)),
        _turbo(tree),
        core,
        tuple(name for name in pmus if name not in core),
        tree.integer("proc/sys/kernel/perf_event_paranoid"),
        tree.integer("proc/sys/kernel/perf_event_mlock_kb"),
        tree.integer("proc/sys/kernel/yama/ptrace_scope"),
        chosen[1] if chosen else None,
        _kib(memory.get("MemTotal")),
        _kib(memory.get("MemAvailable")),
    )


def _distribution(tree: Tree) -> tuple[str, ...]:
    release = tree.fields("etc/os-release", "=") or tree.fields("usr/lib/os-release", "=")
    words = [release.get("ID", ""), *release.get("ID_LIKE", "").strip("\"'").split()]
    return tuple(word.strip("\"'").lower() for word in words if word)


def _turbo(tree: Tree) -> bool | None:
    off = tree.integer(f"{CPU_FOLDER}/intel_pstate/no_turbo")
    if off is not None:
        return off == 0
    boost = tree.integer(f"{CPU_FOLDER}/cpufreq/boost")
    return None if boost is None else boost == 1


def _kib(text: str | None) -> int | None:
    words = (text or "").split()
    return int(words[0]) << 10 if words and words[0].isdigit() else None
