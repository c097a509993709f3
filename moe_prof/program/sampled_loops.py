"""Counts of a program from its sampled loops alone, where simulation does not reach them.

From the speed of each hot loop follow its iterations and instructions; from the addresses that its
samples show, how much memory it goes over, hence which cache holds it, and from the steps of its
pointers how many lines it takes from there. Sampling sees no branch predictor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from moe_prof.collectors.hotloop import CountedInstruction, HotLoop
from moe_prof.collectors.simulate import analyse_alone, loop_demand
from moe_prof.machine import Machine
from moe_prof.program import code
from moe_prof.program.counting import Counted, target_of
from moe_prof.program.speeds import LoopSpeed

MISSES_MIN = 0.5
HOT_MIN = 0.3
"""Loops must make up this share of the samples to stand for the program."""


def counted(
    speeds: Sequence[LoopSpeed], user_s: float, machine: Machine, *, folder: Path
) -> Counted:
    """Instructions, bounds and lines from beyond each cache; nothing where loops are not hot."""
    speeds = [speed for speed in speeds if speed.innermost]
    share = sum(speed.share for speed in speeds)
    if share < HOT_MIN:
        return Counted()
    target = target_of(machine)
    loops = tuple(analyse_alone(_loop(speed, user_s), target, folder=folder) for speed in speeds)
    instructions = sum(
        speed.iterations_per_s * speed.share * user_s * len(speed.texts) for speed in speeds
    )
    return Counted(
        cut_off=True,
        instructions=instructions / share,
        loops=loops,
        demand=loop_demand(loops),
        pointer_share=sum(s.share for s in speeds if code.follows_pointers(s.texts)),
        float_share=sum(s.share for s in speeds if code.computes_floats(s.texts)),
        l1_misses=lines_beyond(speeds, user_s, _size(machine, 1)),
        l2_misses=lines_beyond(speeds, user_s, _size(machine, 2)),
        l3_misses=lines_beyond(speeds, user_s, _size(machine, 3)),
    )


def completed(found: Counted, seen: Counted, speeds: Sequence[LoopSpeed]) -> Counted:
    """What simulation cut off, completed by the samples; pure.

    All of it where the simulation did not reach the hot loops; only the misses where its caches did
    not see enough of them.
    """
    if found.instructions is None:
        note = "the simulation did not reach the hot loops: judged by samples"
        return replace(seen, notes=(*found.notes, note)) if seen.loops else found
    if sum(s.share for s in speeds if s.innermost) < MISSES_MIN or seen.l1_misses is None:
        return found
    return replace(
        found,
        l1_misses=seen.l1_misses,
        l2_misses=seen.l2_misses,
        l3_misses=seen.l3_misses,
        notes=(*found.notes, "misses by the samples' addresses"),
    )


def lines_beyond(
    speeds: Sequence[LoopSpeed], user_s: float, size_bytes: int | None
) -> float | None:
    """Lines that come from beyond a cache of that size, where accesses go over more; pure."""
    if size_bytes is None:
        return None
    return sum(
        stream.lines * speed.iterations_per_s * speed.share * user_s
        for speed in speeds
        for stream in speed.streams
        if stream.footprint_bytes > size_bytes
    )


def _size(machine: Machine, level: int) -> int | None:
    cache = machine.cache(level)
    return None if cache is None else cache.size_bytes


def _loop(speed: LoopSpeed, user_s: float) -> HotLoop:
    iterations = round(speed.iterations_per_s * speed.share * user_s)
    last = len(speed.texts) - 1
    instructions = tuple(
        CountedInstruction(
            speed.start + place, text, iterations, speed.start if place == last else None,
            place == last, text.startswith("call"),
        )
        for place, text in enumerate(speed.texts)
    )  # fmt: skip
    return HotLoop(
        "sampled loop", speed.module, speed.start, speed.start + last, True, instructions,
        iterations, speed.share, (),
    )  # fmt: skip
