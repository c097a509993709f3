"""Ceilings of a machine: the highest rates measured on it, and how they are named.

A ceiling belongs to a team of threads that run at once; its value is the whole team's rate.

======================  ===========  ==============================================================
name                    unit         what
======================  ===========  ==============================================================
``clock``               Hz           real clock of one core
``int8_<path>``         MAC/s        exact int8 products added into int32, operands in registers
``fp32_<path>``         MAC/s        fp32 multiply and add (fused where the path has it)
``read_<level>``        bytes/s      loads from a working set that the level holds
``latency_<level>``     s            one load whose address the load before it gave (one thread)
======================  ===========  ==============================================================

Levels are ``l1``, ``l2``, ``l3`` and ``memory``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from moe_prof.model.interval import Bandwidth
from moe_prof.rows import Provenance, Row, unavailable

Level = Literal["l1", "l2", "l3", "memory"]
Unit = Literal["Hz", "MAC/s", "bytes/s", "s"]

LEVELS: tuple[Level, ...] = get_args(Level)
COLLECTOR = "ceilings"

# Compilers turn loops into vector dot products, but not into tiles: what ``-march=native`` can use.
_NOT_FOR_COMPILERS = frozenset({"int8_amx_int8"})

# Paths that exclude wider fp32 instructions of the machine; the others use whatever it has.
_FP32_OF_PATH = {"portable": "portable", "avx2": "avx2", "avx_vnni": "avx2"}


@dataclass(frozen=True, slots=True)
class Ceiling:
    """One measured rate, or the reason why it is missing.

    Attributes:
        name: see the module's table.
        threads: size of the team.
        value: in ``unit``; None when missing.
        source: how it was measured, or why it is missing.
        capacity_bytes: for ``read_<level>``: what the level holds for this team, None for memory.
    """

    name: str
    threads: int
    value: float | None
    unit: Unit
    provenance: Provenance
    source: str
    capacity_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Ceilings:
    """All ceilings of one machine."""

    entries: tuple[Ceiling, ...]

    @property
    def thread_counts(self) -> tuple[int, ...]:
        """Team sizes that were measured."""
        return tuple(sorted({entry.threads for entry in self.entries}))

    @property
    def clock_hz(self) -> float | None:
        """The core's real clock."""
        return self.value("clock", 1)

    def find(self, name: str, threads: int) -> Ceiling | None:
        """The entry of that name and team, missing value or not."""
        return next((e for e in self.entries if (e.name, e.threads) == (name, threads)), None)

    def value(self, name: str, threads: int) -> float | None:
        """The value of that name and team; None when it was not or could not be measured."""
        entry = self.find(name, threads)
        return entry.value if entry is not None else None

    def best_int8(self, threads: int, path: str | None = None) -> Ceiling | None:
        """The fastest exact int8 entry of a path; of all paths when ``path`` is None.

        ``native`` stands for what a compiler can use here: every path but AMX's tiles.
        """
        return self._best("int8_", threads, path)

    def best_fp32(self, threads: int, path: str | None = None) -> Ceiling | None:
        """The fastest fp32 entry that a path may use; of all paths when ``path`` is None."""
        return self._best("fp32_", threads, None if path is None else _FP32_OF_PATH.get(path))

    def bandwidth_per_thread(self, threads: int) -> Bandwidth:
        """What one thread can read while the whole team reads, for the interval model."""
        rates = {level: self.value(f"read_{level}", threads) for level in LEVELS}
        shares = {level: None if rate is None else rate / threads for level, rate in rates.items()}
        return Bandwidth(shares["l2"], shares["l3"], shares["memory"])

    def _best(self, prefix: str, threads: int, path: str | None) -> Ceiling | None:
        found = [
            entry
            for entry in self.entries
            if entry.name.startswith(prefix)
            and entry.threads == threads
            and entry.value is not None
            and _belongs(entry.name, prefix, path)
        ]
        return max(found, key=lambda entry: entry.value or 0.0, default=None)


def rows(ceilings: Ceilings) -> list[Row]:
    """The ceilings as tidy rows: metric ``ceiling_<name>``, ``thread`` the size of the team."""
    return [_row(entry) for entry in ceilings.entries]


def from_rows(tidy: Iterable[Row]) -> Ceilings:
    """Ceilings out of the rows of a saved session; capacities are not kept in rows."""
    return Ceilings(
        tuple(
            Ceiling(
                row.metric.removeprefix("ceiling_"),
                int(row.thread or 1),
                row.value,
                _unit(row.unit),
                row.provenance,
                row.source,
            )
            for row in tidy
            if row.collector == COLLECTOR and row.metric.startswith("ceiling_")
        )
    )


def best_of(first: Ceilings, second: Ceilings) -> Ceilings:
    """Of each ceiling the better measurement: a disturbance only ever makes one look worse."""
    entries = [_better(entry, second.find(entry.name, entry.threads)) for entry in first.entries]
    known = {(entry.name, entry.threads) for entry in entries}
    entries += [entry for entry in second.entries if (entry.name, entry.threads) not in known]
    return Ceilings(tuple(entries))


def with_capacities(ceilings: Ceilings, caches: Iterable[Mapping[str, Any]]) -> Ceilings:
    """What each level holds for each team, from the ``caches`` of a machine as a manifest has them.

    One instance of a cache for every group of CPUs that shares it.
    """
    sizes: dict[str, tuple[int, int]] = {}
    for cache in caches:
        if cache.get("type") != "Instruction":
            sharers = max(1, len(cache.get("shared_cpus") or ()))
            sizes.setdefault(f"read_l{cache['level']}", (cache["size_bytes"], sharers))
    return Ceilings(tuple(
        replace(entry, capacity_bytes=size * math.ceil(entry.threads / sharers))
        if (found := sizes.get(entry.name)) and (size := found[0]) and (sharers := found[1])
        else entry
        for entry in ceilings.entries
    ))  # fmt: skip


def missing(
    name: str, threads: int, unit: Unit, reason: str, capacity_bytes: int | None = None
) -> Ceiling:
    """An entry without a value."""
    return Ceiling(name, threads, None, unit, "unavailable", reason, capacity_bytes)


def _better(entry: Ceiling, other: Ceiling | None) -> Ceiling:
    if other is None or other.value is None:
        return entry
    if entry.value is None:
        return replace(other, capacity_bytes=entry.capacity_bytes)
    choose = min if entry.unit == "s" else max
    return choose(entry, other, key=lambda found: found.value or math.nan)


def _belongs(name: str, prefix: str, path: str | None) -> bool:
    if path is None:
        return True
    if path == "native":
        return name not in _NOT_FOR_COMPILERS
    return name == prefix + path


def _row(entry: Ceiling) -> Row:
    metric, thread = f"ceiling_{entry.name}", str(entry.threads)
    if entry.value is None:
        return unavailable(
            metric, entry.unit, entry.source, collector=COLLECTOR, scope="machine", thread=thread
        )
    return Row(
        collector=COLLECTOR,
        scope="machine",
        thread=thread,
        metric=metric,
        value=entry.value,
        unit=entry.unit,
        provenance=entry.provenance,
        source=entry.source,
    )


def _unit(text: str) -> Unit:
    units: Sequence[Unit] = get_args(Unit)
    return next(unit for unit in units if unit == text)
