"""From the part of a program that a simulation saw to the whole of it.

By the speed of a sampled loop, or by places that are counted in a run of their own.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from moe_prof.collectors.callgrind_format import CallgrindProfile
from moe_prof.collectors.hotloop import HotLoop
from moe_prof.collectors.simulate import LoopDemand
from moe_prof.program import landmarks
from moe_prof.program.speeds import LoopSpeed

ENOUGH_ITERATIONS = 100
LEAST_SCALE = 0.9
"""The simulation runs no more of the program than there is."""
FAST_CLOCK_HZ, MOST_PER_CYCLE = 4e9, 2.0
"""To foresee how much of a program a part is, cautiously: twice as fast as a throughput model says
that its loops can be."""
FASTEST_HZ = 8e9
"""Instructions a second, where no model knows its loops."""


@dataclass(frozen=True, slots=True)
class Factors:
    """From the executions that were seen to those of the whole program.

    Attributes:
        loops: of each hot loop, in their order.
        rest: of all other code.
    """

    loops: tuple[float, ...]
    rest: float

    def whole(self, light: CallgrindProfile, loops: Sequence[HotLoop]) -> float:
        """All instructions of the program."""
        inside = sum(loop.executed for loop in loops)
        scaled = sum(f * loop.executed for f, loop in zip(self.loops, loops, strict=True))
        return scaled + max(0, light.totals["Ir"] - inside) * self.rest


def scale_of(light: CallgrindProfile, speeds: Sequence[LoopSpeed], user_s: float) -> float | None:
    """By sampled loops, from the executions that were seen to all of them; None when unknown."""
    for speed in speeds:
        found = scale(light, speed, user_s)
        if found is not None and found >= LEAST_SCALE:
            return max(1.0, found)
    return None


def scale(light: CallgrindProfile, speed: LoopSpeed, user_s: float) -> float | None:
    """By one loop; None where the run saw too little of it."""
    executed = light.events.index("Ir")
    entry = light.instructions.get((speed.module, speed.start))
    if entry is None or entry.cost[executed] < ENOUGH_ITERATIONS:
        return None
    share = max(speed.share, speed.together)
    return speed.iterations_per_s * share * user_s / entry.cost[executed]


def by_landmarks(
    command: Sequence[str],
    light: CallgrindProfile,
    loops: Sequence[HotLoop],
    *,
    folder: Path,
    user_s: float,
    timeout_s: float,
    demand: LoopDemand | None = None,
) -> Factors | None:
    """By places that are counted in a whole run; None where there are none.

    Args:
        demand: cycles that the loops of the part need, to foresee how much of the whole it is.

    Raises:
        UnavailableError: they cannot be counted here.
    """
    program = shutil.which(command[0])
    if program is None:
        return None
    module = str(Path(program).resolve())
    parts = parts_at_most(light, user_s, demand)
    hits = landmarks.affordable_hits(timeout_s, user_s)
    marks = landmarks.choose(light, loops, module, hits / parts)
    if not marks:
        return None
    places = [mark for near in marks.values() for mark in near]
    counted = landmarks.count(command, Path(module), places, folder, timeout_s=timeout_s)
    return factors_of(landmarks.ratios(marks, counted), loops)


def parts_at_most(light: CallgrindProfile, user_s: float, demand: LoopDemand | None) -> float:
    """How many such parts a program may be; pure."""
    parts = user_s * FASTEST_HZ / light.totals["Ir"]
    if demand is not None and demand.simulated_cycles:
        whole_cycles = user_s * FAST_CLOCK_HZ * MOST_PER_CYCLE
        parts = min(parts, whole_cycles * demand.coverage / demand.simulated_cycles)
    return max(1.0, parts)


def factors_of(ratios: Mapping[int, float], loops: Sequence[HotLoop]) -> Factors | None:
    """Of loops without a ratio that of the first with one; None where no loop has one; pure."""
    if not ratios:
        return None
    first = ratios[min(ratios)]
    if not loops:
        return Factors((), first)
    found = tuple(ratios.get(number, first) for number in range(len(loops)))
    weights = [loop.executed for loop in loops]
    rest = sum(f * w for f, w in zip(found, weights, strict=True)) / max(1, sum(weights))
    return Factors(found, rest)
