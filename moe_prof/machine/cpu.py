"""The processor: identity, features, caches and topology, read from /proc/cpuinfo and sysfs."""

from __future__ import annotations

import platform
import re
from dataclasses import dataclass
from typing import Literal

from moe_prof.machine.microarchitecture import (
    Identification,
    identify_arm,
    identify_riscv,
    identify_x86,
)
from moe_prof.machine.tree import Tree, cpu_list

CPU_FOLDER = "sys/devices/system/cpu"
CacheType = Literal["Data", "Instruction", "Unified"]

_CACHE_TYPES: dict[str, CacheType] = {
    "Data": "Data", "Instruction": "Instruction", "Unified": "Unified",
}  # fmt: skip
_SIZE = re.compile(r"(\d+)([KMG]?)", re.ASCII)
_SIZE_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True, slots=True)
class Cache:
    """One cache as seen by one CPU.

    Attributes:
        level: 1 is nearest to the core.
        size_bytes: capacity.
        ways / line_bytes: associativity and line size, None when sysfs does not tell.
        shared_cpus: the CPUs that share it.
    """

    level: int
    type: CacheType
    size_bytes: int
    ways: int | None
    line_bytes: int | None
    shared_cpus: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Processor:
    """Identity of the CPU. ``family``, ``model``, ``stepping`` are x86's; Arm gives its part."""

    architecture: str
    vendor: str
    model_name: str
    family: int | None
    model: int | None
    stepping: int | None
    features: frozenset[str]
    identification: Identification


@dataclass(frozen=True, slots=True)
class Topology:
    """How many of what. ``smt`` is whether two CPUs of this machine share a core, None if unknown.

    ``cores`` and ``sockets`` are None when sysfs does not tell.
    """

    online_cpus: tuple[int, ...]
    cores: int | None
    sockets: int | None
    smt: bool | None
    numa_nodes: int


def read_processor(tree: Tree, caches: tuple[Cache, ...]) -> Processor:
    """Read the identity from the tree's /proc/cpuinfo, in the form of its architecture."""
    info = tree.fields("proc/cpuinfo")
    if "vendor_id" in info:
        return _read_x86(info, caches)
    if "CPU implementer" in info:
        return _read_arm(tree, info)
    if info.get("isa", "").startswith("rv"):
        return _read_riscv(info)
    return Processor(
        platform.machine(), "", info.get("model name", ""), None, None, None, frozenset(),
        Identification(None, "unknown: /proc/cpuinfo has no form that is known here"),
    )  # fmt: skip


def read_caches(tree: Tree, cpu: int) -> tuple[Cache, ...]:
    """The caches of one CPU, nearest first; empty where sysfs has none (some VMs, old boards)."""
    folder = f"{CPU_FOLDER}/cpu{cpu}/cache"
    found = []
    for name in tree.names(folder):
        index = f"{folder}/{name}"
        level = tree.integer(f"{index}/level")
        kind = _CACHE_TYPES.get(tree.text(f"{index}/type") or "")
        size = _size_bytes(tree.text(f"{index}/size") or "")
        if level is None or kind is None or size is None:
            continue
        found.append(
            Cache(
                level,
                kind,
                size,
                tree.integer(f"{index}/ways_of_associativity"),
                tree.integer(f"{index}/coherency_line_size"),
                cpu_list(tree.text(f"{index}/shared_cpu_list") or ""),
            )
        )
    return tuple(sorted(found, key=lambda cache: (cache.level, cache.type)))


def read_topology(tree: Tree) -> Topology:
    """Count CPUs, cores, sockets and memory nodes."""
    online = cpu_list(tree.text(f"{CPU_FOLDER}/online") or "")
    if not online:
        lines = (tree.text("proc/cpuinfo") or "").splitlines()
        online = tuple(range(sum(line.startswith("processor") for line in lines)))
    siblings, packages = set(), set()
    for cpu in online:
        base = f"{CPU_FOLDER}/cpu{cpu}/topology"
        siblings.add(
            tree.text(f"{base}/core_cpus_list") or tree.text(f"{base}/thread_siblings_list")
        )
        packages.add(tree.text(f"{base}/physical_package_id"))
    known = bool(siblings) and None not in siblings
    nodes = sum(
        name.startswith("node") and name[4:].isdigit()
        for name in tree.names("sys/devices/system/node")
    )
    return Topology(
        online,
        len(siblings) if known else None,
        len(packages) if packages and None not in packages else None,
        any(len(cpu_list(text or "")) > 1 for text in siblings) if known else None,
        max(1, nodes),
    )


def _read_x86(info: dict[str, str], caches: tuple[Cache, ...]) -> Processor:
    features = frozenset(info.get("flags", "").split())
    numbers = [_integer(info.get(key, "")) for key in ("cpu family", "model", "stepping")]
    family, model, stepping = numbers
    vendor = info["vendor_id"]
    l1i = next((c.size_bytes for c in caches if c.level == 1 and c.type == "Instruction"), None)
    return Processor(
        "x86_64" if "lm" in features else "i686",
        vendor,
        info.get("model name", ""),
        family,
        model,
        stepping,
        features,
        identify_x86(vendor, family, model, stepping=stepping, features=features, l1i_bytes=l1i),
    )


def _read_arm(tree: Tree, info: dict[str, str]) -> Processor:
    implementer, part = info["CPU implementer"], _integer(info.get("CPU part", ""))
    name = info.get("model name") or tree.text("proc/device-tree/model") or ""
    return Processor(
        "aarch64",
        implementer,
        name.rstrip("\0"),
        None,
        part,
        _integer(info.get("CPU revision", "")),
        frozenset(info.get("Features", "").split()),
        identify_arm(implementer, part),
    )


def _read_riscv(info: dict[str, str]) -> Processor:
    single, *named = info["isa"].split("_")
    vendor, name = info.get("mvendorid", ""), info.get("model name") or info.get("uarch", "")
    return Processor(
        "riscv64" if single.startswith("rv64") else "riscv32",
        vendor,
        name,
        None,
        None,
        None,
        frozenset(single[4:]) | frozenset(named),
        identify_riscv(vendor, info.get("marchid", ""), name),
    )


def _integer(text: str) -> int | None:
    try:
        return int(text, 0)
    except ValueError:
        return None


def _size_bytes(text: str) -> int | None:
    match = _SIZE.fullmatch(text)
    return int(match[1]) * _SIZE_UNITS[match[2]] if match else None
