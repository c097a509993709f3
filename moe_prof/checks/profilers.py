"""Checks of the collectors: the tools' own availability, and what they need from the system."""

from __future__ import annotations

import re
from dataclasses import replace

from moe_prof.checks.base import Check, Context, ask, unusable, usable
from moe_prof.checks.packages import install_line
from moe_prof.collectors import (
    builtin,
    callgrind,
    disassembly,
    llvm_mca,
    perf_facts,
    qemu_user,
    vtune_refusals,
)
from moe_prof.collectors import perf_topdown_plan as topdown_plan
from moe_prof.collectors import vtune as vtune_collector
from moe_prof.collectors.base import Availability
from moe_prof.collectors.scheduling_models import Target
from moe_prof.errors import UnavailableError

_MLOCK_KB_MIN = 516  # perf's default buffer of one CPU: 512 KiB and a control page
_NUMBER = re.compile(r"\d+(\.\d+)+")


def built_in(_: Context) -> Availability:
    """Wall time, per-thread busy and waiting time, phases."""
    return builtin.availability()


def perf_stat(context: Context) -> Availability:
    """Counters of the forward loop."""
    return perf_facts.judge(context.perf)


def perf_topdown(context: Context) -> Availability:
    """Measured top-down figures."""
    facts = context.perf
    whole = perf_facts.judge(facts)
    if not whole.usable:
        return whole
    hardware = perf_facts.judge_hardware(facts)
    if not hardware.usable:
        reason = f"{hardware.reason}; 'topdown' models its figures instead"
        return replace(hardware, reason=reason)
    try:
        first = topdown_plan.attempts(perf_facts.plan_facts(facts))[0]
    except UnavailableError as error:
        reason, _, remedy = str(error).partition("; ")
        return unusable(reason, remedy, version=facts.version)
    note = f"; {first.note}" if first.note else ""
    return usable(f"measured down to level {first.level}{note}", version=facts.version)


def perf_record(context: Context) -> Availability:
    """Hotspots and call stacks."""
    facts = context.perf
    whole = perf_facts.judge(facts)
    if not whole.usable:
        return whole
    hardware = perf_facts.judge_hardware(facts)
    if not hardware.usable:
        reason = "samples the CPU clock only, no hardware events"
    else:
        reason = "samples cycles"
    limit = context.machine.system.perf_event_mlock_kb
    if limit is not None and limit < _MLOCK_KB_MIN and not facts.privileged:
        return usable(
            f"{reason}; perf_event_mlock_kb is {limit}: smaller buffers, which may lose samples",
            remedy=f"sudo sysctl kernel.perf_event_mlock_kb={_MLOCK_KB_MIN}",
            version=facts.version,
        )
    return usable(reason, version=facts.version)


def vtune(context: Context) -> Availability:
    """Intel's profiler: hotspots and threading without counters, more with them."""
    machine = context.machine
    if machine.architecture != "x86_64":
        return unusable(f"VTune profiles x86-64 only, this is {machine.architecture}")
    program = context.which("vtune")
    if program is None:
        return unusable("vtune is not on PATH", vtune_collector.REMEDY)
    answer = ask(program, "--version")
    if answer is None:
        return unusable(f"{program} does not run", vtune_collector.REMEDY)
    version = _version(answer)
    return _vtune_rights(context, version)


def _vtune_rights(context: Context, version: str) -> Availability:
    """What an installed VTune may do here."""
    system = context.machine.system
    scope, paranoid = system.ptrace_scope, system.perf_event_paranoid
    if scope is not None and scope > 0 and not context.privileged:
        return unusable(
            f"kernel.yama.ptrace_scope is {scope}: hotspots and threading cannot attach",
            vtune_refusals.PTRACE_REMEDY, version=version,
        )  # fmt: skip
    if not context.machine.has_pmu:
        return usable("hotspots and threading only: there is no PMU here", version=version)
    if paranoid is not None and paranoid > 0 and not context.privileged:
        return usable(
            "hotspots and threading; uarch-exploration and memory-access need the sampling driver",
            remedy=vtune_refusals.DRIVER_REMEDY, version=version,
        )  # fmt: skip
    return usable("hotspots, threading, uarch-exploration, memory-access", version=version)


def gprof(context: Context) -> Availability:
    """Call counts and 10 ms samples of a build with -pg."""
    program = context.which("gprof")
    if program is None:
        return unusable("gprof is not installed", _install(context, "binutils"))
    answer = ask(program, "--version")
    if answer is None:
        return unusable(f"{program} does not run", _install(context, "binutils"))
    if context.build is None:
        return unusable("it needs a build with -pg, and the C++ kernels do not build")
    return usable("call counts and 10 ms samples of the gprof build", version=_version(answer))


def valgrind(context: Context) -> Availability:
    """Simulated counts; AVX-512 and AMX are beyond valgrind."""
    return _with_install(context, callgrind.availability(), "valgrind")


def qemu(context: Context) -> Availability:
    """Counts for another architecture, in an emulator."""
    return _with_install(context, qemu_user.availability(), "qemu-user")


def mca(context: Context) -> Availability:
    """Throughput bounds of the hot loop."""
    core = context.machine.microarchitecture
    target = Target(context.machine.architecture, core.compiler_name if core else None)
    return _with_install(context, llvm_mca.availability(target), "llvm")


def objdump(context: Context) -> Availability:
    """Finds the hot loop for llvm-mca."""
    return _with_install(context, disassembly.availability(), "binutils")


def _install(context: Context, tool: str) -> str:
    system = context.machine.system
    return context.sudo(install_line(tool, system.distribution, system.kernel))


def _with_install(context: Context, found: Availability, tool: str) -> Availability:
    """The finding, a bare install line replaced by that of this distribution."""
    bare = found.remedy == f"apt install {tool}"
    return replace(found, remedy=_install(context, tool)) if bare else found


def _version(text: str) -> str:
    match = _NUMBER.search(text)
    return match[0] if match else ""


# A collector that no command uses yet has an empty tuple and is not shown.
CHECKS: tuple[Check, ...] = tuple(
    Check("collectors", name, purpose, judge, used_by)
    for name, purpose, judge, used_by in (
        ("builtin", "wall time, busy and waiting time per thread, phases", built_in,
         ("topdown", "bench")),
        ("perf stat", "counters of exactly the forward loop", perf_stat, ("topdown", "counters")),
        ("perf topdown", "measured top-down breakdown", perf_topdown, ("topdown",)),
        ("perf record", "hotspots and call stacks", perf_record, ("hotspots",)),
        ("VTune", "hotspots, threading, microarchitecture (Intel)", vtune, ("hotspots",)),
        ("gprof", "call counts and time per function", gprof, ("hotspots",)),
        ("callgrind", "simulated instructions, misses, mispredictions", valgrind,
         ("topdown", "counters", "hotspots")),
        ("qemu-user", "counted instructions of RISC-V variants", qemu, ("counters",)),
        ("llvm-mca", "throughput bounds of the hot loop", mca, ("topdown",)),
        ("objdump", "finds the hot loop for llvm-mca", objdump, ("topdown",)),
    )
)  # fmt: skip
