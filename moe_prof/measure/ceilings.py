"""Measuring the machine's ceilings with the probes of the support library (kernels/cpp/support).

A quick run takes one to two seconds. Each probe runs in short batches of which the best counts, so
that disturbances by other programs matter little. What a deadline leaves no time for is missing
with that reason.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from moe_prof.analysis.ceilings import Ceiling, Ceilings, Level, missing
from moe_prof.deadline import Deadline
from moe_prof.errors import BuildError
from moe_prof.kernels import build as kernel_build
from moe_prof.machine import Cache, Machine
from moe_prof.progress import SILENT, Progress

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

_SET_UNIT_BYTES = 512  # the widest probe reads eight lines a step
_L3_SET_BYTES = 16 * MIB  # a pass must end within a scheduler's slice
_MEMORY_FACTORS = (4, 2)  # times the last-level cache: at least 2 to leave it
_MEMORY_SET_MIN_BYTES = 32 * MIB
_CLOCK_REPEATS, _CLOCK_CHAIN_US = 20, 300
_REASON_SIZE = 200
_NO_TIME = "the time limit (--max-time) left no time to measure it"
_OK, _UNKNOWN_NAME = 0, 4  # moe_status of moe_prof.h


@dataclass(frozen=True, slots=True)
class Effort:
    """How long to measure: batches of every probe, and how large a set for memory may get."""

    batch_s: float
    batches: int
    memory_batches: int
    memory_set_max_bytes: int


QUICK = Effort(0.001, 8, 3, 256 * MIB)
THOROUGH = Effort(0.005, 20, 5, 2 * GIB)


@dataclass(frozen=True, slots=True)
class ComputeProbe:
    """A ceiling of arithmetic: its name, the only architecture that has it ("" for every one), and
    the probes of which the fastest counts.
    """

    name: str
    architecture: str
    probes: tuple[str, ...]


# The order is that of reports.
COMPUTE_PROBES: tuple[ComputeProbe, ...] = (
    ComputeProbe("int8_portable", "", ("int8_portable",)),
    ComputeProbe("int8_avx2", "x86_64", ("int8_avx2_words", "int8_avx2_bytes")),
    ComputeProbe("int8_avx_vnni", "x86_64", ("int8_avx_vnni",)),
    ComputeProbe("int8_avx512_vnni", "x86_64", ("int8_avx512_vnni",)),
    ComputeProbe("int8_amx_int8", "x86_64", ("int8_amx_int8",)),
    ComputeProbe("int8_neon_dot", "aarch64", ("int8_neon_dot",)),
    ComputeProbe("int8_neon_i8mm", "aarch64", ("int8_neon_i8mm",)),
    ComputeProbe("fp32_portable", "", ("fp32_portable",)),
    ComputeProbe("fp32_avx2", "x86_64", ("fp32_avx2",)),
    ComputeProbe("fp32_avx512", "x86_64", ("fp32_avx512",)),
)
READ_PROBES = ("read_avx512", "read_avx2", "read_portable")


@dataclass(frozen=True, slots=True)
class Rate:
    """One probe's answer: units per second, or why there is none."""

    value: float | None
    reason: str


class ProbeLibrary:
    """The support library's probes.

    Raises:
        BuildError: the library cannot be loaded or lacks the probes.
    """

    def __init__(self, path: Path) -> None:
        try:
            library = ctypes.CDLL(str(path))
            self._rate = library.moe_probe_rate
            self._clock = library.moe_clock_hz
        except (OSError, AttributeError) as error:
            raise BuildError(f"the probes in {path} cannot be used: {error}") from error
        self._rate.restype = ctypes.c_int32
        self._rate.argtypes = (
            ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64, ctypes.c_double,
            ctypes.c_int32, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32,
        )  # fmt: skip
        self._clock.restype = ctypes.c_double
        self._clock.argtypes = (ctypes.c_int32, ctypes.c_int32)

    def clock_hz(self) -> float | None:
        """The calling core's clock by a chain of known latency; None where none is known."""
        return self._clock(_CLOCK_REPEATS, _CLOCK_CHAIN_US) or None

    def rate(
        self, probe: str, cpus: Sequence[int], *, set_bytes: int, batch_s: float, batches: int
    ) -> Rate:
        """Run one probe on a team.

        Args:
            cpus: one entry a thread, -1 leaves it free.
            set_bytes: working set of each thread for memory probes, a multiple of 512; else 0.
        """
        value = ctypes.c_double()
        reason = ctypes.create_string_buffer(_REASON_SIZE)
        status = self._rate(
            probe.encode(), (ctypes.c_int32 * len(cpus))(*cpus), len(cpus), set_bytes, batch_s,
            batches, ctypes.byref(value), reason, _REASON_SIZE,
        )  # fmt: skip
        if status == _UNKNOWN_NAME:
            return Rate(
                None, "the compiler that built the kernels does not know these instructions"
            )
        if status != _OK:
            return Rate(None, reason.value.decode() or f"the probe failed with status {status}")
        return Rate(value.value, "")


@dataclass(frozen=True, slots=True)
class _Bench:
    library: ProbeLibrary
    machine: Machine
    effort: Effort
    deadline: Deadline

    def rate(self, probe: str, threads: int, set_bytes: int = 0, batches: int = 0) -> Rate:
        if self.deadline.passed:
            return Rate(None, _NO_TIME)
        return self.library.rate(
            probe, team_cpus(self.machine, threads), set_bytes=set_bytes,
            batch_s=self.effort.batch_s, batches=batches or self.effort.batches,
        )  # fmt: skip


def measure(
    machine: Machine,
    threads: int | Sequence[int] | None = None,
    *,
    quick: bool = True,
    progress: Progress = SILENT,
    deadline: Deadline | None = None,
) -> Ceilings:
    """Measure all ceilings; builds the support library if the cache lacks it.

    Args:
        threads: team sizes besides one thread (default: the CPUs that this process may use).
        quick: one to two seconds, in which a very large last-level cache cannot be left.
        deadline: no probe begins later; a build that is needed first is not bounded by it.

    Raises:
        BuildError: the support library cannot be built or loaded.
    """
    library = ProbeLibrary(kernel_build.build("release", progress).support)
    if threads is None:
        threads = machine.usable_cpus()
    wanted = (threads,) if isinstance(threads, int) else tuple(threads)
    bench = _Bench(library, machine, QUICK if quick else THOROUGH, deadline or Deadline(None))
    entries = [_clock(bench)]
    for team in sorted({1, *wanted}):
        progress.step(f"measuring ceilings with {team} thread{'s' if team > 1 else ''}")
        entries += _rates(bench, team)
        entries += _reads(bench, team)
    entries += _latencies(bench)
    return Ceilings(tuple(entries))


def team_cpus(machine: Machine, threads: int) -> tuple[int, ...]:
    """The CPU of each thread: pinned when the team fills the machine, else free (-1).

    A smaller team is better placed by the scheduler, which sees other programs and shared cores.
    """
    affinity = machine.limits.affinity
    return affinity if threads == len(affinity) > 1 else (-1,) * threads


def _clock(bench: _Bench) -> Ceiling:
    if bench.deadline.passed:
        return missing("clock", 1, "Hz", _NO_TIME)
    value = bench.library.clock_hz()
    if value is None:
        return missing("clock", 1, "Hz", "no instruction chain of known latency here")
    return Ceiling("clock", 1, value, "Hz", "measured", "dependent chain of known latency")


def _rates(bench: _Bench, threads: int) -> list[Ceiling]:
    """All rates of arithmetic, or none: the best of some would not be the machine's best."""
    wanted = [c for c in COMPUTE_PROBES if c.architecture in ("", bench.machine.architecture)]
    entries = [_compute(bench, ceiling.name, ceiling.probes, threads) for ceiling in wanted]
    if not bench.deadline.passed:
        return entries
    return [missing(ceiling.name, threads, "MAC/s", _NO_TIME) for ceiling in wanted]


def _compute(bench: _Bench, name: str, probes: tuple[str, ...], threads: int) -> Ceiling:
    rates = {probe: bench.rate(probe, threads) for probe in probes}
    found = {probe: rate.value for probe, rate in rates.items() if rate.value}
    if not found:
        reason = next(iter(rates.values())).reason
        return missing(name, threads, "MAC/s", reason)
    best = max(found, key=lambda probe: found[probe])
    source = f"probe {best}, {_batches_text(bench.effort.batches)}"
    return Ceiling(name, threads, found[best], "MAC/s", "measured", source)


def _reads(bench: _Bench, threads: int) -> list[Ceiling]:
    entries = []
    usable = (p for p in READ_PROBES if bench.rate(p, 1, 16 * KIB, 1).value is not None)
    probe = next(usable, READ_PROBES[-1])
    for level, number in (("l1", 1), ("l2", 2), ("l3", 3)):
        name = f"read_{level}"
        cache = bench.machine.cache(number)
        if cache is None:
            entries.append(missing(name, threads, "bytes/s", f"no level {number} cache is shown"))
            continue
        capacity = _capacity_bytes(cache, threads)
        size = cache_set_bytes(cache, threads)
        rate = bench.rate(probe, threads, size)
        entries.append(_read(name, threads, rate, f"probe {probe}, {_size_text(size)}", capacity))
    size_or_reason = memory_set_bytes(bench.machine, threads, bench.effort.memory_set_max_bytes)
    if isinstance(size_or_reason, str):
        entries.append(missing("read_memory", threads, "bytes/s", size_or_reason))
    else:
        rate = bench.rate(probe, threads, size_or_reason, bench.effort.memory_batches)
        source = f"probe {probe}, {_size_text(size_or_reason)}"
        entries.append(_read("read_memory", threads, rate, source, None))
    return entries


def _read(name: str, threads: int, rate: Rate, source: str, capacity: int | None) -> Ceiling:
    if rate.value is None:
        return missing(name, threads, "bytes/s", rate.reason, capacity)
    return Ceiling(name, threads, rate.value, "bytes/s", "measured", source, capacity)


def _latencies(bench: _Bench) -> list[Ceiling]:
    sets: list[tuple[Level, int | str]] = []
    levels: tuple[tuple[Level, int], ...] = (("l2", 2), ("l3", 3))
    for level, number in levels:
        cache = bench.machine.cache(number)
        reason = f"no level {number} cache is shown"
        sets.append((level, reason if cache is None else cache_set_bytes(cache, 1)))
    sets.append(("memory", memory_set_bytes(bench.machine, 1, bench.effort.memory_set_max_bytes)))
    entries = []
    for level, size in sets:
        name = f"latency_{level}"
        if isinstance(size, str):
            entries.append(missing(name, 1, "s", size))
            continue
        rate = bench.rate("chase", 1, size)
        if rate.value:
            source = f"pointer chase, {_size_text(size)}"
            entries.append(Ceiling(name, 1, 1 / rate.value, "s", "measured", source))
        else:
            entries.append(missing(name, 1, "s", rate.reason))
    return entries


def cache_set_bytes(cache: Cache, threads: int) -> int:
    """Working set of one thread: half of its share of the cache, a pass of the L3 kept short."""
    share = cache.size_bytes // (2 * _sharers(cache, threads))
    return _rounded(min(share, _L3_SET_BYTES))


def memory_set_bytes(machine: Machine, threads: int, most_bytes: int) -> int | str:
    """Working set of one thread that leaves the last-level cache, or why there is none."""
    caches = [cache for cache in machine.caches if cache.type != "Instruction"]
    if not caches:
        return "the system does not show its caches, so no set is known to leave them"
    last = max(cache.size_bytes for cache in caches)
    available = machine.system.memory_available_bytes or 0
    if machine.limits.memory_limit_bytes is not None:
        available = min(available, machine.limits.memory_limit_bytes)
    for factor in _MEMORY_FACTORS:
        total = max(factor * last, _MEMORY_SET_MIN_BYTES)
        if total <= most_bytes and total <= available // 4:
            return _rounded(total // threads)
    return (
        f"the last-level cache holds {last // MIB} MiB: a set that leaves it needs "
        f"{_MEMORY_FACTORS[-1] * last // MIB} MiB, more than this measurement takes"
    )


def _capacity_bytes(cache: Cache, threads: int) -> int:
    """What the caches of this level hold for a team, one instance for every group that shares."""
    return cache.size_bytes * math.ceil(threads / max(1, len(cache.shared_cpus)))


def _sharers(cache: Cache, threads: int) -> int:
    return max(1, min(threads, len(cache.shared_cpus)))


def _rounded(size_bytes: int) -> int:
    return max(_SET_UNIT_BYTES, size_bytes // _SET_UNIT_BYTES * _SET_UNIT_BYTES)


def _size_text(size_bytes: int) -> str:
    size = f"{size_bytes // MIB} MiB" if size_bytes >= MIB else f"{size_bytes // KIB} KiB"
    return f"set of {size} a thread"


def _batches_text(batches: int) -> str:
    return f"best of {batches} batches"
