"""Checks of the machine's state: what makes measurements scatter or narrows what can be measured.

Nothing here is an obstacle; a bad finding is a warning with the command that would change it.
"""

from __future__ import annotations

from moe_prof.checks.base import Check, Context, unusable, usable
from moe_prof.collectors.base import Availability

_BUSY_SHARE = 0.5  # of one CPU: load beyond it disturbs a measurement
_STEADY_GOVERNORS = {"performance"}


def core(context: Context) -> Availability:
    """The core's name, on which widths and latencies of models depend."""
    processor = context.machine.processor
    found = processor.identification
    if found.core is None:
        return unusable(
            f"{processor.model_name or 'CPU'}: {found.basis}",
            "modelled top-down figures need a row in moe_prof/machine/microarchitecture.py",
        )
    return usable(f"{found.core.name}, {found.core.width} slots per cycle ({found.basis})")


def caches(context: Context) -> Availability:
    """Cache sizes, which simulation and bandwidth ceilings need."""
    found = [context.machine.cache(level) for level in (1, 2, 3)]
    texts = [_cache_text(cache.level, cache.size_bytes) for cache in found if cache is not None]
    if not texts:
        return unusable(
            "sysfs shows no caches: no cache simulation, no bandwidth ceilings",
            "a virtual machine that passes the host's caches (QEMU: host-cache-info=on)",
        )
    return usable(", ".join(texts))


def governor(context: Context) -> Availability:
    """The frequency governor."""
    governors = context.machine.system.governors
    if not governors:
        where = "the host decides" if context.machine.limits.hypervisor else "no cpufreq driver"
        return usable(f"no frequency control here: {where}")
    if set(governors) <= _STEADY_GOVERNORS:
        return usable("performance")
    command = context.sudo("cpupower frequency-set -g performance")
    return unusable(f"{', '.join(governors)}: clocks follow the load, timings scatter", command)


def turbo(context: Context) -> Availability:
    """Clocks above the nominal one depend on temperature and on the other cores."""
    state = context.machine.system.turbo
    if state is None:
        return usable("turbo state not shown")
    return usable("on: clocks vary with temperature and neighbours" if state else "off")


def smt(context: Context) -> Availability:
    """Two CPUs of one core share its ports and caches."""
    topology = context.machine.topology
    if topology.smt is None:
        return usable("not shown")
    if not topology.smt:
        return usable("off, or hidden by the hypervisor")
    return unusable(
        f"on: {len(topology.online_cpus)} CPUs are {topology.cores} cores, neighbours share ports",
        f"--threads {topology.cores}, or {context.sudo('sh -c')} "
        "'echo off > /sys/devices/system/cpu/smt/control'",
    )


def cpu_quota(context: Context) -> Availability:
    """A control group's quota throttles all threads together."""
    limits = context.machine.limits
    allowed, online = len(limits.affinity), len(context.machine.topology.online_cpus)
    if limits.cpu_quota is not None and limits.cpu_quota < allowed:
        return unusable(
            f"{limits.cpu_quota:g} CPUs of {allowed} by a control group: threads are throttled "
            "together",
            f"--threads {max(1, int(limits.cpu_quota))}, or a larger quota "
            "(docker --cpus, Kubernetes limits.cpu)",
        )
    if allowed < online:
        return usable(f"no quota; {allowed} of {online} CPUs allowed by affinity")
    return usable(f"no quota, {allowed} CPUs")


def memory_limit(context: Context) -> Availability:
    """How much memory there is for this process."""
    system, limits = context.machine.system, context.machine.limits
    if system.memory_total_bytes is None:
        return usable("not shown")
    total_gib = system.memory_total_bytes / 2**30
    if limits.memory_limit_bytes is not None and limits.memory_limit_bytes < (
        system.memory_total_bytes
    ):
        return usable(
            f"{limits.memory_limit_bytes / 2**30:.1f} GiB by a control group, of {total_gib:.1f}"
        )
    return usable(f"{total_gib:.1f} GiB")


def other_load(context: Context) -> Availability:
    """Other programs on the same CPUs."""
    if context.load is None:
        return usable("not shown")
    if context.load > _BUSY_SHARE:
        return unusable(
            f"load average {context.load:.1f} on {len(context.machine.topology.online_cpus)} CPUs: "
            "other programs disturb timings",
            "stop them, or wait; 'top' shows them",
        )
    return usable(f"load average {context.load:.1f}")


def virtual(context: Context) -> Availability:
    """Hypervisor and container."""
    limits = context.machine.limits
    hypervisor = {None: "bare metal", "unknown": "virtual machine"}.get(
        limits.hypervisor, f"virtual machine ({limits.hypervisor})"
    )
    inside = f", in a container ({limits.container})" if limits.container else ""
    return usable(f"{hypervisor}{inside}, kernel {context.machine.system.kernel}")


def _cache_text(level: int, size_bytes: int) -> str:
    size = f"{size_bytes >> 20} MiB" if size_bytes >= 1 << 20 else f"{size_bytes >> 10} KiB"
    return f"L{level} {size}"


CHECKS: tuple[Check, ...] = (
    Check("machine", "core", "names the microarchitecture", core),
    Check("machine", "caches", "sizes for simulation and ceilings", caches),
    Check("machine", "memory", "what this process may use", memory_limit),
    Check("machine", "system", "hypervisor, container, kernel", virtual),
    Check("machine", "governor", "frequency control", governor),
    Check("machine", "turbo", "clocks above nominal", turbo),
    Check("machine", "SMT", "CPUs that share a core", smt),
    Check("machine", "CPU quota", "limits of the control group", cpu_quota),
    Check("machine", "other load", "programs beside this one", other_load),
)
