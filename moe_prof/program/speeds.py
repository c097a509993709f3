"""How fast the hot loops of a program really run, and over how much memory, by its samples.

A register that counts a loop's iterations moves, from one sample of a thread to the next, by the
iterations in between, at full speed and without any counter. The addresses that the registers give
at the samples show how much memory the loop goes over.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from moe_prof.program import code

LINE_BYTES = 64
MIN_PLACE_SHARE = 0.03
MIN_STEPS = 10
STEADY_MIN = 0.3
TURNS_MIN = 0.2
"""Of the samples in the rarer of two loops, those that come right after or before the other's."""
Pair = tuple[str, str]
"""Base and index register of an operand."""
SCATTER_MOST = 0.7
"""Between the quartiles, over the median: other programs slow a loop by a half at most."""
GAP_BYTES = 64 << 20
FASTEST_HZ = 6.5e9
"""No loop goes around more often in a second than any clock ticks."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One look at a thread: the innermost function, its file and address there, registers."""

    thread: int
    function: str
    module: str
    address: int
    registers: tuple[tuple[str, int], ...] = ()
    callers: tuple[str, ...] = ()
    period_s: float = 0.0

    @property
    def place(self) -> tuple[str, int]:
        """File and address."""
        return self.module, self.address


@dataclass(frozen=True, slots=True)
class Around:
    """The smallest loop around a sampled address; no texts where there is none.

    ``near`` are the instructions just before that address, and the one there.
    """

    start: int
    texts: tuple[str, ...]
    polls: bool
    pointers: bool = False
    outer: tuple[Around, ...] = ()
    outer_level: bool = False
    near: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stream:
    """Accesses of a loop by one address: lines an iteration goes on to, over how many bytes."""

    lines: float
    footprint_bytes: int


@dataclass(frozen=True, slots=True)
class LoopSpeed:
    """How fast a loop really ran: from a counting register at one sample and at the next.

    Attributes:
        module / start: its file and first address there.
        iterations_per_s: of CPU time, of one thread.
        share: of all samples that are in it.
        texts: its instructions.
        streams: its accesses to memory.
        together: share of all samples that are in it or in loops that go on with its counter, as
            those do that the cases of a switch make of one loop.
    """

    module: str
    start: int
    iterations_per_s: float
    share: float
    texts: tuple[str, ...] = ()
    streams: tuple[Stream, ...] = ()
    innermost: bool = True
    together: float = 0.0


def speeds(
    samples: Sequence[Sample], loops: Mapping[tuple[str, int], Around]
) -> tuple[LoopSpeed, ...]:
    """Speeds of the loops in which samples follow each other, the hottest first."""
    steps: dict[tuple[str, int], list[float]] = {}
    addresses: dict[tuple[str, int], list[int]] = {}
    exact: dict[tuple[str, int], dict[Pair, list[int]]] = {}
    known: dict[tuple[str, int], Around] = {}
    counts: Counter[tuple[str, int]] = Counter()
    last: dict[int, Sample] = {}
    turns: Counter[frozenset[tuple[str, int]]] = Counter()
    for one in samples:
        before = last.get(one.thread)
        last[one.thread] = one
        around = {} if before is None else _levels(before, loops)
        inner = loops.get(one.place)
        if before is not None and inner is not None and (other := loops.get(before.place)):
            turns[frozenset({(before.module, other.start), (one.module, inner.start)})] += 1
        near = () if inner is None else code.operands_at(inner.near)
        for key, loop in _levels(one, loops).items():
            counts[key] += 1
            known[key] = loop
            registers = dict(one.registers)
            addresses.setdefault(key, []).extend(_touched(loop.texts, registers))
            for operand in near:
                if (address := address_of(operand, registers)) is not None:
                    pair = operand.base, operand.index
                    exact.setdefault(key, {}).setdefault(pair, []).append(address)
            speed = _speed(before, one, loop) if before is not None and key in around else None
            if speed is not None:
                steps.setdefault(key, []).append(speed)
    return tuple(
        LoopSpeed(
            *key, statistics.median(steps[key]), count / len(samples), known[key].texts,
            streams_of(known[key], addresses[key], exact.get(key, {})),
            not known[key].outer_level,
            _together(key, known, counts, turns) / len(samples),
        )
        for key, count in counts.most_common()
        if is_steady(steps.get(key, ()), count)
    )  # fmt: skip


def _levels(
    sample: Sample, loops: Mapping[tuple[str, int], Around]
) -> dict[tuple[str, int], Around]:
    """The loop around a sample and those around that one."""
    loop = loops.get(sample.place)
    found = () if loop is None else (loop, *loop.outer)
    return {(sample.module, level.start): level for level in found}


def _together(
    key: tuple[str, int],
    known: Mapping[tuple[str, int], Around],
    counts: Mapping[tuple[str, int], int],
    turns: Mapping[frozenset[tuple[str, int]], int],
) -> int:
    """Samples in a loop and in those that take turns with it and count by its register."""
    own = {counter.register for counter in code.counters(known[key].texts)}
    total = counts[key]
    for other, count in counts.items():
        often = turns.get(frozenset({key, other}), 0) >= TURNS_MIN * min(count, counts[key])
        if other != key and often:
            theirs = {counter.register for counter in code.counters(known[other].texts)}
            total += count if own & theirs else 0
    return total


def is_steady(found: Sequence[float], count: int) -> bool:
    """Whether the speeds are those of one long run and not of a register that begins anew."""
    if len(found) < MIN_STEPS or len(found) < STEADY_MIN * count:
        return False
    low, middle, high = statistics.quantiles(found, n=4)
    return high - low <= SCATTER_MOST * middle


def _speed(before: Sample, after: Sample, loop: Around) -> float | None:
    """Iterations a second between two samples of a thread; None where no register tells."""
    old, new = dict(before.registers), dict(after.registers)
    if not after.period_s:
        return None
    for counter in code.counters(loop.texts):
        if counter.register not in old or counter.register not in new:
            continue
        size = 1 << counter.bits
        moved = (new[counter.register] - old[counter.register]) % size
        moved = moved - size if moved >= size // 2 else moved
        iterations = moved / counter.step
        if 0 < iterations < after.period_s * FASTEST_HZ:
            return iterations / after.period_s
    return None


def spread(addresses: Sequence[int]) -> int:
    """Bytes that the addresses lie over, large gaps and single ones left out."""
    found = sorted(addresses)
    parts: list[list[int]] = []
    for address in found:
        if parts and address - parts[-1][-1] < GAP_BYTES:
            parts[-1].append(address)
        else:
            parts.append([address])
    kept = [part for part in parts if len(part) >= MIN_PLACE_SHARE * len(found)]
    return sum(part[-1] - part[0] for part in kept)


def streams_of(
    loop: Around, addresses: Sequence[int], exact: Mapping[Pair, Sequence[int]]
) -> tuple[Stream, ...]:
    """What a loop accesses, by its pointers' steps: a line an iteration where they jump; pure.

    Args:
        addresses: that all its operands give at its samples, also where registers hold something
            else by then.
        exact: those of operands that are about to be used, or were just used, by their registers.
    """
    anywhere = spread(addresses)
    operands = [operand for text in loop.texts if (operand := code.memory_operand(text))]
    if loop.pointers:
        pairs = {(operand.base, operand.index) for operand in operands}
        found = [address for pair in pairs for address in exact.get(pair, ())]
        return (Stream(1.0, spread(found) if len(found) >= MIN_STEPS else anywhere),)
    steps = dict.fromkeys(code.moving_registers(loop.texts), LINE_BYTES)
    steps |= {counter.register: abs(counter.step) for counter in code.counters(loop.texts)}
    streams = {
        (operand.base, operand.index): steps.get(operand.base, 0)
        + steps.get(operand.index, 0) * operand.scale
        for operand in operands
    }
    return tuple(
        Stream(
            min(1.0, size / LINE_BYTES),
            spread(exact[pair]) if len(exact.get(pair, ())) >= MIN_STEPS else anywhere,
        )
        for pair, size in streams.items()
        if size
    )


def _touched(texts: Sequence[str], registers: dict[str, int]) -> list[int]:
    """Addresses of a loop's memory operands as its registers stand."""
    found = []
    for text in texts:
        operand = code.memory_operand(text)
        if operand is None or operand.base == "rip":
            continue  # one place, always the same
        address = address_of(operand, registers)
        if address is not None:
            found.append(address)
    return found


def address_of(operand: code.Operand, registers: dict[str, int]) -> int | None:
    """Where a memory operand points with these registers; None where one is not known."""
    if any(name not in registers for name in (operand.base, operand.index) if name):
        return None
    base = registers[operand.base] if operand.base else 0
    index = registers[operand.index] * operand.scale if operand.index else 0
    return (base + index + operand.displacement) & (2**64 - 1)
