"""What limits this process inside the machine: CPU affinity, control groups, container, hypervisor.

Control groups of both versions are read, along the whole path from the process's own group to the
root: the tightest limit counts. Source: the kernel's ``cgroup-v2.rst`` (``cpu.max``,
``memory.max``) and ``cgroup-v1`` (``cpu.cfs_quota_us``, ``memory.limit_in_bytes``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from moe_prof.machine.tree import Tree, cpu_list

CGROUP_ROOT = "sys/fs/cgroup"
_V1_NO_LIMIT_BYTES = 1 << 60  # version 1 writes "no limit" as the largest multiple of a page

_CONTAINER_FILES = (
    (".dockerenv", "docker"),
    ("run/.containerenv", "podman"),
    (".singularity.d", "apptainer"),
)
_CONTAINER_WORDS = ("docker", "kubepods", "containerd", "lxc", "podman", "crio")

# Vendor and product strings of virtual machines in the firmware's tables.
_HYPERVISORS = (
    ("qemu", "QEMU/KVM"),
    ("kvm", "KVM"),
    ("vmware", "VMware"),
    ("virtualbox", "VirtualBox"),
    ("innotek", "VirtualBox"),
    ("xen", "Xen"),
    ("microsoft corporation virtual machine", "Hyper-V"),
    ("amazon ec2", "Amazon EC2"),
    ("google", "Google Compute Engine"),
    ("alibaba", "Alibaba Cloud"),
    ("openstack", "OpenStack"),
)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of this process.

    Attributes:
        affinity: CPUs on which it may run.
        cpu_quota: CPUs' worth of time per period, None without a quota.
        memory_limit_bytes: of the tightest control group, None without a limit.
        container: the kind of container, None outside of one.
        hypervisor: its name, ``unknown`` when only the CPU tells, None on bare metal.
    """

    affinity: tuple[int, ...]
    cpu_quota: float | None
    memory_limit_bytes: int | None
    container: str | None
    hypervisor: str | None


def read_limits(tree: Tree, online: tuple[int, ...], features: frozenset[str]) -> Limits:
    """Read all limits from the tree."""
    status = tree.fields("proc/self/status")
    affinity = cpu_list(status.get("Cpus_allowed_list", "")) or online
    return Limits(
        tuple(cpu for cpu in affinity if cpu in online) or online,
        _cpu_quota(tree),
        _memory_limit(tree),
        _container(tree),
        _hypervisor(tree, features),
    )


def _cpu_quota(tree: Tree) -> float | None:
    quotas: list[float] = []
    for folder in _groups(tree, ""):
        words = (tree.text(f"{folder}/cpu.max") or "").split()
        if len(words) == 2 and words[0].isdigit() and words[1].isdigit() and int(words[1]) > 0:
            quotas.append(int(words[0]) / int(words[1]))
    for folder in _groups(tree, "cpu"):
        quota = tree.integer(f"{folder}/cpu.cfs_quota_us")
        period = tree.integer(f"{folder}/cpu.cfs_period_us")
        if quota is not None and quota > 0 and period:
            quotas.append(quota / period)
    return min(quotas, default=None)


def _memory_limit(tree: Tree) -> int | None:
    found = [tree.integer(f"{folder}/memory.max") for folder in _groups(tree, "")]
    found += [tree.integer(f"{folder}/memory.limit_in_bytes") for folder in _groups(tree, "memory")]
    return min(
        (value for value in found if value is not None and value < _V1_NO_LIMIT_BYTES),
        default=None,
    )


def memory_left_bytes(tree: Tree) -> int | None:
    """What the tightest control group still leaves to this process; None without a limit.

    Page cache that can be dropped is not counted as used.
    """
    names = (
        ("", "memory.max", "memory.current"),
        ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
    )
    left = [
        limit - usage + _droppable_bytes(tree, folder)
        for controller, limit_name, usage_name in names
        for folder in _groups(tree, controller)
        if (limit := tree.integer(f"{folder}/{limit_name}")) is not None
        and limit < _V1_NO_LIMIT_BYTES
        and (usage := tree.integer(f"{folder}/{usage_name}")) is not None
    ]
    return min(left, default=None)


def _droppable_bytes(tree: Tree, folder: str) -> int:
    values = tree.fields(f"{folder}/memory.stat", " ")
    text = values.get("total_inactive_file", values.get("inactive_file", ""))
    return int(text) if text.isdigit() else 0


def _groups(tree: Tree, controller: str) -> Iterator[str]:
    """Folders of the process's group and its ancestors; ``controller`` "" is version 2.

    In a container the group's path may name folders that only the host sees; then the mounted root
    is the container's own group.
    """
    for line in (tree.text("proc/self/cgroup") or "").splitlines():
        parts = line.split(":", 2)
        if len(parts) != 3 or (controller not in parts[1].split(",")):
            continue
        path = parts[2].strip("/")
        if controller:
            bases = [f"{CGROUP_ROOT}/{name}" for name in (parts[1], controller)]
        else:
            bases = [CGROUP_ROOT, f"{CGROUP_ROOT}/unified"]
        for base in dict.fromkeys(bases):
            steps = path.split("/") if path else []
            for count in range(len(steps), -1, -1):
                yield "/".join([base, *steps[:count]])


def _container(tree: Tree) -> str | None:
    for path, name in _CONTAINER_FILES:
        if tree.exists(path):
            return name
    declared = tree.text("run/systemd/container")
    if declared:
        return declared
    groups = tree.text("proc/1/cgroup") or ""
    return next((word for word in _CONTAINER_WORDS if word in groups), None)


def _hypervisor(tree: Tree, features: frozenset[str]) -> str | None:
    vendor = tree.text("sys/class/dmi/id/sys_vendor") or ""
    product = tree.text("sys/class/dmi/id/product_name") or ""
    firmware = f"{vendor} {product}".lower()
    named = next((name for word, name in _HYPERVISORS if word in firmware), None)
    if "hypervisor" in features:
        return named or _named_by_kernel(tree) or "unknown"
    if named in ("QEMU/KVM", "KVM"):  # clouds sell bare metal under the same vendor string
        return named
    return _named_by_kernel(tree)


def _named_by_kernel(tree: Tree) -> str | None:
    declared = tree.text("sys/hypervisor/type") or tree.text(
        "proc/device-tree/hypervisor/compatible"
    )
    return declared.rstrip("\0") if declared else None
