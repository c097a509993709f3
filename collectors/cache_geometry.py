"""Cache sizes in the form that valgrind's cache simulation accepts.

The simulator has two levels (I1 + D1, then LL) and demands a number of sets that is a power of two.
Real last-level caches often have none: 480 MiB in 16 ways of 64-byte lines are 491520 sets. The
nearest geometry is taken that keeps the size first and the ways second; what was simulated is said.

Source: valgrind manual, "Cachegrind: a cache and branch-prediction profiler", options --I1, --D1,
--LL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from moe_prof.errors import InputError, UnavailableError
from moe_prof.machine.cpu import Cache


@dataclass(frozen=True, slots=True)
class CacheGeometry:
    """One cache: total size in bytes, associativity, bytes per line.

    Raises:
        InputError: a value is not positive, or the size is below one set.
    """

    size_bytes: int
    ways: int
    line_bytes: int

    def __post_init__(self) -> None:
        if min(self.size_bytes, self.ways, self.line_bytes) < 1:
            raise InputError(f"cache geometry {self}: every value must be at least 1")
        if self.size_bytes < self.ways * self.line_bytes:
            raise InputError(f"cache geometry {self}: smaller than one set of its ways")

    def __str__(self) -> str:
        return f"{self.size_bytes} B, {self.ways}-way, {self.line_bytes} B lines"

    @property
    def sets(self) -> float:
        """Number of sets; a fraction when size is no multiple of one set."""
        return self.size_bytes / (self.ways * self.line_bytes)

    @property
    def option(self) -> str:
        """``size,ways,line`` as valgrind's options want it."""
        return f"{self.size_bytes},{self.ways},{self.line_bytes}"


@dataclass(frozen=True, slots=True)
class CacheSizes:
    """The caches to simulate; ``last`` stands for whichever level ``last_name`` says."""

    instructions: CacheGeometry
    data: CacheGeometry
    last: CacheGeometry
    last_name: str = "LL"


@dataclass(frozen=True, slots=True)
class SimulatedCaches:
    """What the simulator is given, and a note for each cache that had to be changed."""

    sizes: CacheSizes
    notes: tuple[str, ...]

    @property
    def text(self) -> str:
        """The three geometries in one line."""
        sizes = self.sizes
        return f"I1 {sizes.instructions}; D1 {sizes.data}; {sizes.last_name} {sizes.last}"


def cache_sizes(caches: Sequence[Cache], *, last_level: int) -> CacheSizes:
    """Sizes of a machine's own caches, its level ``last_level`` standing for the last one.

    Raises:
        UnavailableError: the machine does not tell one of them.
    """
    return CacheSizes(
        instructions=_machine_cache(caches, 1, ("Instruction", "Unified")),
        data=_machine_cache(caches, 1, ("Data", "Unified")),
        last=_machine_cache(caches, last_level, ("Unified", "Data")),
        last_name=f"L{last_level}",
    )


def _machine_cache(caches: Sequence[Cache], level: int, types: tuple[str, ...]) -> CacheGeometry:
    for cache in caches:
        if cache.level == level and cache.type in types and cache.ways and cache.line_bytes:
            return CacheGeometry(cache.size_bytes, cache.ways, cache.line_bytes)
    raise UnavailableError(
        f"cache simulation: the system does not tell the size and ways of the level {level} "
        f"{types[0].lower()} cache"
    )


def simulated_caches(sizes: CacheSizes) -> SimulatedCaches:
    """The nearest caches that the simulator accepts."""
    notes = []
    nearest = {}
    labels = {"instructions": "I1", "data": "D1", "last": sizes.last_name}
    for field, label in labels.items():
        asked: CacheGeometry = getattr(sizes, field)
        nearest[field] = nearest_valid(asked)
        if nearest[field] != asked:
            notes.append(f"{label} cache of {asked} was simulated as {nearest[field]}")
    return SimulatedCaches(CacheSizes(**nearest, last_name=sizes.last_name), tuple(notes))


def nearest_valid(geometry: CacheGeometry) -> CacheGeometry:
    """The closest geometry with a power of two of sets and of bytes per line.

    The size in bytes counts first, then the ways.
    """
    line = max(16, _power_of_two_below(geometry.line_bytes))
    sets = geometry.size_bytes / (geometry.ways * line)
    low = _power_of_two_below(max(1, int(sets)))
    candidates = []
    for count in (low, 2 * low):
        ways = max(1, round(geometry.size_bytes / (count * line)))
        candidates.append(CacheGeometry(count * ways * line, ways, line))

    def distance(candidate: CacheGeometry) -> tuple[int, int]:
        return (
            abs(candidate.size_bytes - geometry.size_bytes),
            abs(candidate.ways - geometry.ways),
        )

    return min(candidates, key=distance)


def _power_of_two_below(value: int) -> int:
    return 1 << (value.bit_length() - 1)
