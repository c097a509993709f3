"""Registers that count what a program repeats, seen at samples anywhere inside of it.

A loop that calls a short function keeps its counter in a register, which the function leaves alone:
it moves steadily from one sample to the next, wherever these are. How often the instruction that
moves it was simulated leads from the simulated part of the program to the whole. Needs neither a
PMU nor another run.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from moe_prof.collectors import disassembly
from moe_prof.collectors.callgrind_format import CallgrindProfile
from moe_prof.errors import MoeProfError
from moe_prof.program import code
from moe_prof.program.speeds import FASTEST_HZ, Sample, is_steady

SLOWEST_HZ = 1e4
"""Between two samples some of it must pass."""
NEAR_MEDIAN = 0.5
LEAST_SEEN = 100
MAIN_MIN = 0.8
"""Of all that moves a register, what one instruction must do."""
LONGEST_BYTES = 15
"""Of an instruction."""
LONGEST_CODE = 1 << 18
"""Bytes of a program that are read for such instructions."""


@dataclass(frozen=True, slots=True)
class Moving:
    """A register that moves steadily: units a second, over a share of the samples."""

    per_s: float
    share: float


def moving(samples: Sequence[Sample]) -> dict[str, Moving]:
    """Registers that move at one pace through the samples of the busiest thread; pure."""
    if not samples:
        return {}
    threads = [sample.thread for sample in samples]
    busiest = max(set(threads), key=threads.count)
    own = [sample for sample in samples if sample.thread == busiest]
    paces: dict[str, list[float]] = {}
    for before, after in pairwise(own):
        old = dict(before.registers)
        for name, value in after.registers:
            if name in old and after.period_s:
                paces.setdefault(name, []).append((value - old[name]) / after.period_s)
    found = {}
    for name, seen in paces.items():
        middle = statistics.median(seen)
        if not SLOWEST_HZ <= abs(middle) <= FASTEST_HZ:
            continue
        near = [pace for pace in seen if abs(pace - middle) <= NEAR_MEDIAN * abs(middle)]
        if is_steady([pace / middle for pace in near], len(seen)):
            found[name] = Moving(statistics.mean(near), len(near) / len(seen))
    return found


def scale(
    light: CallgrindProfile,
    found: Mapping[str, Moving],
    module: str,
    *,
    folder: Path,
    user_s: float,
) -> float | None:
    """From the executions that were simulated to all of them; None where no register tells."""
    executed = light.events.index("Ir")
    counts = {
        address: entry.cost[executed]
        for (name, address), entry in light.instructions.items()
        if name == module and entry.cost[executed] >= LEAST_SEEN
    }
    if not counts or not found or max(counts) - min(counts) > LONGEST_CODE:
        return None
    try:
        listing = disassembly.disassemble(
            Path(module), min(counts), max(counts) + LONGEST_BYTES, x86=True, folder=folder,
            name="counters",
        )  # fmt: skip
    except MoeProfError:
        return None
    return scale_by(
        found, ((one.text, counts.get(one.address, 0)) for one in listing), user_s=user_s
    )


def scale_by(
    found: Mapping[str, Moving], executed: Iterable[tuple[str, int]], *, user_s: float
) -> float | None:
    """The same from instructions' texts and how often they were simulated; pure."""
    moved: dict[str, list[int]] = {}
    for text, times in executed:
        counter = code.counting(text)
        if counter is not None and times:
            moved.setdefault(counter.register, []).append(counter.step * times)
    scales = [
        register.per_s * register.share * user_s / most
        for name, register in found.items()
        if name in moved
        and abs(most := max(moved[name], key=abs)) >= MAIN_MIN * sum(map(abs, moved[name]))
        and (most > 0) == (register.per_s > 0)
    ]
    return statistics.median(scales) if scales else None
