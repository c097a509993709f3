"""Ceilings of this machine, measured once and kept in the cache of builds.

The file's name is a hash of what decides the rates: CPU model, stepping, microcode, hypervisor, the
CPUs that may be used, the caches, and the library with the probes. A measurement that other
programs disturbed is kept with that mark: it is used when nothing better is to be had, and measured
again the next time; of two disturbed ones the better value of each ceiling counts.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from moe_prof.analysis.ceilings import Ceiling, Ceilings, best_of
from moe_prof.analysis.crowding import is_crowded
from moe_prof.deadline import Deadline
from moe_prof.kernels import build as kernel_build
from moe_prof.machine import Machine
from moe_prof.machine.tree import Tree
from moe_prof.measure import ceilings as measured_ceilings
from moe_prof.measure import crowd
from moe_prof.progress import SILENT, Progress

SCHEMA = 1
PREFIX = "ceilings-"


@dataclass(frozen=True, slots=True)
class Stored:
    """Ceilings with their circumstances.

    Attributes:
        measured_at_s: seconds since 1970.
        cpus / others: CPUs that could be used, and CPUs' worth that other programs used meanwhile;
            None when unknown.
        note: why they are not kept, "" when they are.
    """

    ceilings: Ceilings
    measured_at_s: float
    cpus: int | None
    others: float | None
    note: str = ""

    @property
    def crowded(self) -> bool:
        """Whether other programs took CPUs that the largest team wanted."""
        most = max(self.ceilings.thread_counts, default=0)
        return is_crowded(most, self.cpus, self.others)

    def age_s(self) -> float:
        """Since the measurement; a clock that was set back gives 0."""
        return max(0.0, time.time() - self.measured_at_s)


def obtain(
    machine: Machine,
    teams: Sequence[int],
    *,
    remeasure: bool = False,
    progress: Progress = SILENT,
    deadline: Deadline | None = None,
) -> Stored:
    """The machine's ceilings for these teams: kept ones where they are good, else measured now.

    Args:
        remeasure: whatever is kept.

    Raises:
        BuildError: the probes cannot be built or loaded.
    """
    path = store_path(machine)
    kept = None if remeasure else _read(path)
    have = set() if kept is None else set(kept.ceilings.thread_counts)
    wanted = sorted({1, *teams, *have})
    if kept is not None and not kept.crowded and have >= set(wanted):
        return kept
    start = crowd.read()
    found = measured_ceilings.measure(machine, wanted, progress=progress, deadline=deadline)
    meanwhile = crowd.between(start, crowd.read())
    cpus, others = (meanwhile.cpus, meanwhile.others) if meanwhile is not None else (None, None)
    fresh = Stored(found, time.time(), cpus, others)
    if kept is not None and kept.crowded and fresh.crowded:
        fresh = Stored(best_of(found, kept.ceilings), fresh.measured_at_s, cpus, others)
    if deadline is not None and deadline.passed:
        return fresh  # some may be missing for lack of time only
    return Stored(fresh.ceilings, fresh.measured_at_s, cpus, others, _write(path, fresh))


def store_path(machine: Machine, root: str | Path = "/") -> Path:
    """The file of this machine's ceilings; builds the probes if need be.

    Raises:
        BuildError: they cannot be built, or there is no cache.
    """
    tree = Tree(Path(root))
    library = kernel_build.build("release").support
    processor = machine.processor
    facts = (
        SCHEMA, processor.vendor, processor.model_name, processor.family, processor.model,
        processor.stepping, tree.fields("proc/cpuinfo").get("microcode", ""),
        tree.text("sys/hypervisor/type"), tree.text("sys/class/dmi/id/product_name"),
        "hypervisor" in machine.features, machine.limits.affinity, machine.limits.cpu_quota,
        [asdict(cache) for cache in machine.caches],
        hashlib.sha256(library.read_bytes()).hexdigest(),
    )  # fmt: skip
    digest = hashlib.sha256(json.dumps(facts, default=str).encode()).hexdigest()
    return kernel_build.cache_root() / f"{PREFIX}{digest[:16]}.json"


def _read(path: Path) -> Stored | None:
    """What is kept; None when there is nothing, or nothing that can be used."""
    try:
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if data["schema"] != SCHEMA:
            return None
        entries = tuple(Ceiling(**entry) for entry in data["ceilings"])
        found = Stored(
            Ceilings(entries), float(data["measured_at_s"]), data["cpus"], data["others"]
        )
        usable = all(isinstance(entry.threads, int) for entry in entries) and bool(entries)
        return found if usable else None
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _write(path: Path, stored: Stored) -> str:
    """Keep them, whole or not at all; why not, "" when they are kept."""
    document = {
        "schema": SCHEMA, "measured_at_s": stored.measured_at_s, "cpus": stored.cpus,
        "others": stored.others, "ceilings": [asdict(entry) for entry in stored.ceilings.entries],
    }  # fmt: skip
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=f"{path.name}.", dir=path.parent)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(document, file, indent=1)
            Path(name).replace(path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)
    except OSError as error:
        return f"the ceilings are not kept in {path}: {error.strerror or error}"
    return ""
