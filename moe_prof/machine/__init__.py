"""Facts of the machine, read only: nothing here changes a setting or runs a program.

``read()`` collects them from /proc, /sys and /etc into one :class:`Machine`. What the system does
not tell is None, never a guess.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from moe_prof.machine.cpu import (
    Cache,
    Processor,
    Topology,
    read_caches,
    read_processor,
    read_topology,
)
from moe_prof.machine.limits import Limits, read_limits
from moe_prof.machine.microarchitecture import Microarchitecture
from moe_prof.machine.system import System, read_system
from moe_prof.machine.tree import Tree
from moe_prof.model.interval import Core

__all__ = [
    "Cache", "Limits", "Machine", "Microarchitecture", "Processor", "System", "Topology", "read",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Machine:
    """Everything known of the machine, by subject."""

    processor: Processor
    caches: tuple[Cache, ...]
    topology: Topology
    limits: Limits
    system: System

    @property
    def architecture(self) -> str:
        """``x86_64``, ``aarch64``, ``riscv64``..."""
        return self.processor.architecture

    @property
    def features(self) -> frozenset[str]:
        """Feature flags as the kernel names them."""
        return self.processor.features

    @property
    def microarchitecture(self) -> Microarchitecture | None:
        """The core's design with its published figures; None when unknown."""
        return self.processor.identification.core

    @property
    def has_pmu(self) -> bool:
        """Whether the kernel offers the core's hardware counters."""
        return bool(self.system.core_pmus)

    def usable_cpus(self) -> int:
        """CPUs' worth of time for this process: affinity, limited by the quota rounded up."""
        allowed = max(1, len(self.limits.affinity))
        if self.limits.cpu_quota is None:
            return allowed
        return max(1, min(allowed, math.ceil(self.limits.cpu_quota)))

    def cache(self, level: int) -> Cache | None:
        """The cache of that level that holds data; None when the machine shows none."""
        return next(
            (c for c in self.caches if c.level == level and c.type != "Instruction"),
            None,
        )

    def core(self) -> Core | None:
        """The core's figures for the interval model; None when one of them is not known."""
        known = self.microarchitecture
        if known is None or known.mispredict_penalty_cycles is None:
            return None
        if known.l2_latency_cycles is None:
            return None
        return Core(
            known.name,
            known.width,
            known.mispredict_penalty_cycles,
            known.l2_latency_cycles,
            known.source,
        )

    def as_dict(self) -> dict[str, Any]:
        """The ``machine`` object of JSON output and manifests: JSON types only."""
        processor = asdict(self.processor)
        identification = processor.pop("identification")
        processor["features"] = sorted(self.features)
        return {
            **processor,
            "microarchitecture": identification["core"],
            "microarchitecture_basis": identification["basis"],
            "caches": [_plain(asdict(cache)) for cache in self.caches],
            **_plain(asdict(self.topology)),
            **_plain(asdict(self.limits)),
            **_plain(asdict(self.system)),
            "usable_cpus": self.usable_cpus(),
            "has_pmu": self.has_pmu,
        }


def read(root: str | Path = "/") -> Machine:
    """Read the facts below ``root``, the machine's own file tree by default."""
    tree = Tree(Path(root))
    topology = read_topology(tree)
    caches = read_caches(tree, topology.online_cpus[0] if topology.online_cpus else 0)
    processor = read_processor(tree, caches)
    return Machine(
        processor,
        caches,
        topology,
        read_limits(tree, topology.online_cpus, processor.features),
        read_system(tree, topology.online_cpus),
    )


def _plain(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        key: list(value) if isinstance(value, tuple) else value for key, value in fields.items()
    }
