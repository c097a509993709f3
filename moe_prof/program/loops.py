"""The loops around sampled places, by the jumps back in the code there.

Source: objdump's listing (collectors/disassembly.py).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from moe_prof.collectors import disassembly
from moe_prof.collectors.disassembly import Instruction
from moe_prof.errors import MoeProfError
from moe_prof.program import code
from moe_prof.program.speeds import MIN_PLACE_SHARE, Around, Sample

AROUND_BYTES = 2048
NEAR = 3
"""Instructions that a stalled access may be away from the sample."""
MOST_LEVELS = 4
MOST_PLACES = 400
"""Sampled addresses around which loops are looked for, those of most samples."""
LONGEST_LOOP = 400
"""Instructions; what goes around in more, as an interpreter does, is not judged by its text."""


def loops_around(
    samples: Sequence[Sample], folder: Path, *, x86: bool
) -> dict[tuple[str, int], Around]:
    """The loop around each place that holds many samples; places without a loop are left out."""
    places = dict(Counter(sample.place for sample in samples).most_common(MOST_PLACES))
    modules = Counter(sample.module for sample in samples)
    found: dict[tuple[str, int], Around] = {}
    for module, count in modules.items():
        if not x86 or count < MIN_PLACE_SHARE * len(samples) or not module.startswith("/"):
            continue
        inside = sorted(address for name, address in places if name == module)
        for number, (low, high) in enumerate(_stretches(inside)):
            try:
                listing = disassembly.disassemble(
                    Path(module), max(0, low - AROUND_BYTES), high + AROUND_BYTES, x86=True,
                    folder=folder, name=f"around-{len(found)}-{number}",
                )  # fmt: skip
            except MoeProfError:
                continue  # no code there: the samples still count by their function
            stretch = CodeStretch(listing)
            for address in inside:
                if low <= address <= high:
                    loop = stretch.around(address) or Around(address, (), polls=False)
                    found[module, address] = replace(loop, near=stretch.near(address))
    return found


def _stretches(addresses: Sequence[int]) -> list[tuple[int, int]]:
    """Groups of addresses that one disassembly holds."""
    groups: list[tuple[int, int]] = []
    for address in addresses:
        if groups and address - groups[-1][1] <= AROUND_BYTES:
            groups[-1] = (groups[-1][0], address)
        else:
            groups.append((address, address))
    return groups


class CodeStretch:
    """A stretch of disassembled code with its jumps back."""

    def __init__(self, listing: Sequence[Instruction]) -> None:
        self._listing = listing
        self._addresses = [instruction.address for instruction in listing]
        self._jumps = [
            (i.target, i.address) for i in listing
            if i.is_branch and i.target is not None and i.target <= i.address
        ]  # fmt: skip

    def around(self, address: int) -> Around | None:
        """The smallest loop around an address, with those around that one."""
        spans = [(low, high) for low, high in self._jumps if low <= address <= high]
        if not spans:
            return None
        heads: dict[int, int] = {}
        for low, high in spans:
            heads[low] = max(high, heads.get(low, high))
        levels = sorted(heads.items(), key=lambda span: span[1] - span[0])[:MOST_LEVELS]
        outer: tuple[Around, ...] = ()
        for low, high in reversed(levels[1:]):
            if texts := self._texts(low, high):
                outer = (Around(low, texts, False, outer_level=True), *outer)
        low, high = min(spans, key=lambda span: span[1] - span[0])
        texts = self._texts(low, high)
        if not texts:
            return None
        return Around(low, texts, code.polls(texts), code.follows_pointers(texts), outer)

    def near(self, address: int) -> tuple[str, ...]:
        """The instruction at an address, after those before it."""
        last = bisect_right(self._addresses, address)
        first = self._addresses[max(0, last - NEAR) : last]
        return self._texts(first[0], address) if first else ()

    def _texts(self, low: int, high: int) -> tuple[str, ...]:
        """Its instructions; none where they are too many."""
        first, last = bisect_left(self._addresses, low), bisect_right(self._addresses, high)
        if last - first > LONGEST_LOOP:
            return ()
        following = self._addresses[first + 1 : last + 1]
        ends = (*following, high)[: last - first]
        return tuple(
            code.absolute(instruction.text, end)
            for instruction, end in zip(self._listing[first:last], ends, strict=True)
        )
