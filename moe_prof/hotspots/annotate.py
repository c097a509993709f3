"""The text of hot instructions: disassembled once a module, around the addresses that cost most."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

from moe_prof.collectors.disassembly import disassemble
from moe_prof.errors import MoeProfError
from moe_prof.hotspots.summary import PlaceShare

_LONGEST_BYTES = 16  # more than any instruction has
_WIDEST_BYTES = 1 << 20  # of code between two hot addresses that is disassembled in one go


def instruction_texts(places: Sequence[PlaceShare], folder: Path) -> Mapping[tuple[str, int], str]:
    """Assembly text by module and address; what cannot be disassembled is left out."""
    wanted: dict[str, list[int]] = {}
    for place in places:
        if place.address is not None and Path(place.module).is_file():
            wanted.setdefault(place.module, []).append(place.address)
    found: dict[tuple[str, int], str] = {}
    for number, (module, addresses) in enumerate(wanted.items()):
        for index, (begin, end) in enumerate(_ranges(addresses)):
            found.update(_texts(module, begin, end, folder, f"objdump-{number}-{index}"))
    return found


def _ranges(addresses: Sequence[int]) -> list[tuple[int, int]]:
    """Few ranges that cover the addresses without long gaps."""
    ordered = sorted(addresses)
    ranges = [(ordered[0], ordered[0])]
    for address in ordered[1:]:
        begin, end = ranges[-1]
        if address - end <= _WIDEST_BYTES:
            ranges[-1] = (begin, address)
        else:
            ranges.append((address, address))
    return [(begin, end + _LONGEST_BYTES) for begin, end in ranges]


def _texts(
    module: str, begin: int, end: int, folder: Path, name: str
) -> dict[tuple[str, int], str]:
    x86 = platform.machine() in {"x86_64", "AMD64", "i686"}
    try:
        code = disassemble(Path(module), begin, end, x86=x86, folder=folder, name=name)
    except MoeProfError:  # no objdump, no code: the addresses stand alone then
        return {}
    return {(module, instruction.address): instruction.text for instruction in code}
