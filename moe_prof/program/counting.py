"""Counting a whole program under callgrind: its instructions and loops, branches, cache misses.

Three runs at once, each with a time limit: one that only counts (fast enough to reach the end of
programs of a second or two), one with the L1 and L2 and a branch predictor, one with the L2 and L3.
A run that is cut off still tells the misses per instruction of each hot loop, which are scaled to
the executions that the counting run saw. Where that one is cut off as well, a sampled loop, a
place that breakpoints count or a register that counts repetitions tells how much of the program it
saw; where none does, the counts are of a *part*: they compare causes with each other, if the part
holds the function in which most samples are.
"""

from __future__ import annotations

import concurrent.futures
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from moe_prof.collectors import callgrind, callgrind_format
from moe_prof.collectors.cache_geometry import CacheSizes, cache_sizes, simulated_caches
from moe_prof.collectors.callgrind_format import CallgrindProfile
from moe_prof.collectors.hotloop import HotLoop
from moe_prof.collectors.process_group import run_group
from moe_prof.collectors.scheduling_models import Target
from moe_prof.collectors.simulate import LoopAnalysis, LoopDemand, analyse_loops, loop_demand
from moe_prof.errors import InputError, UnavailableError
from moe_prof.machine import Machine
from moe_prof.program import code, outer_counters, whole
from moe_prof.program.outer_counters import Moving
from moe_prof.program.speeds import LINE_BYTES, LoopSpeed
from moe_prof.program.whole import Factors
from moe_prof.topdown.simulation import end_children

ENOUGH_INSTRUCTIONS = 100_000
"""A loop that was simulated for fewer says nothing about its steady state."""
CODE_LINES = (32 << 10) // LINE_BYTES
"""Of the L1 for code, on nearly all cores."""
SAME_FUNCTION_MIN = 0.3
"""Share of its instructions that a part must have in the function of most samples."""
_MISSES = {
    "mispredictions": ("Bcm", "Bim"),
    "near": ("D1mr", "D1mw"),
    "far": ("DLmr", "DLmw"),
    "fetch": ("I1mr",),
}


@dataclass(frozen=True, slots=True)
class Counted:
    """What was simulated of the whole program; None where it could not be.

    Attributes:
        instructions: all of them; None when the counting run was cut off.
        part_instructions: those of the part that was seen, where nothing tells the whole, and the
            part is of the program's hot code; all other counts are of that part then.
        refuted: (module, start) of sampled loops that would have run less often than was counted.
        loops: hot loops with their bounds.
        demand: cycles that the loops need at least.
        pointer_share: share of the instructions in loops that follow pointers.
        float_share: share of the instructions in loops with floating-point arithmetic.
        mispredictions, l1_misses, l2_misses, l3_misses, fetch_misses: scaled to the whole program;
            the last are lines of code that the L1 did not hold.
        whole_misses: whether both cache simulations reached the program's end.
        cut_off: whether the counting run did not reach it, so that instructions are scaled from a
            part, or missing.
        notes: what is missing and why.
    """

    instructions: float | None = None
    loops: tuple[LoopAnalysis, ...] = ()
    demand: LoopDemand | None = None
    pointer_share: float = 0.0
    float_share: float = 0.0
    mispredictions: float | None = None
    l1_misses: float | None = None
    l2_misses: float | None = None
    l3_misses: float | None = None
    fetch_misses: float | None = None
    part_instructions: float | None = None
    refuted: frozenset[tuple[str, int]] = frozenset()
    whole_misses: bool = False
    cut_off: bool = False
    notes: tuple[str, ...] = ()


def count(
    command: Sequence[str],
    folder: Path,
    machine: Machine,
    *,
    timeout_s: float,
    again_s: float = 0.0,
    speeds: Sequence[LoopSpeed] = (),
    counters: Mapping[str, Moving] | None = None,
    user_s: float = 0.0,
    hottest: str = "",
) -> Counted:
    """Run the three simulations.

    Args:
        again_s: what time there is after them for a run in which places are counted.
        speeds: of loops as they really ran; from them and ``user_s``, the program's user time,
            follows the whole where the counting run is cut off.
        counters: registers that count what the program repeats.
        hottest: the function of most samples.

    Raises:
        UnavailableError: valgrind is missing, or the counting run gave nothing.
    """
    here = callgrind.availability()
    if not here.usable:
        raise UnavailableError(f"callgrind: {here.reason}; {here.remedy}")
    plain = ("--cache-sim=no", "--branch-sim=no")
    jobs = {"count": plain, **_cache_options(machine)}
    with concurrent.futures.ThreadPoolExecutor(max_workers=len(jobs)) as pool:
        futures = {
            name: pool.submit(_run, command, options, folder, name, timeout_s)
            for name, options in jobs.items()
        }
        try:
            runs = {name: future.result() for name, future in futures.items()}
        except KeyboardInterrupt:
            end_children()
            raise
    light = runs["count"]
    if light.profile is None:
        raise UnavailableError(f"callgrind: {light.reason}")
    target = target_of(machine)
    found = analyse_loops(light.profile, target, folder=folder)
    refuted = frozenset(
        (speed.module, speed.start) for speed in speeds
        if (known := whole.scale(light.profile, speed, user_s)) is not None
        and known < whole.LEAST_SCALE
    )  # fmt: skip
    hot = [analysis.loop for analysis in found.loops]
    scale = 1.0 if light.ended else whole.scale_of(light.profile, speeds, user_s)
    factors = None if scale is None else Factors((scale,) * len(hot), scale)
    notes = [*found.notes, *(f"{n}: {r.reason}" for n, r in runs.items() if r.reason)]
    if factors is None and again_s > 0:
        try:
            factors = whole.by_landmarks(
                command, light.profile, hot, folder=folder, user_s=user_s, timeout_s=again_s,
                demand=loop_demand(found.loops),
            )  # fmt: skip
        except UnavailableError as error:
            notes.append(str(error))
        if factors is not None:
            notes.append("scaled to the whole program by places counted with breakpoints")
    program = shutil.which(command[0])
    if factors is None and counters and program is not None:
        module = str(Path(program).resolve())
        scale = outer_counters.scale(light.profile, counters, module, folder=folder, user_s=user_s)
        if scale is not None and scale >= whole.LEAST_SCALE:
            factors = Factors((max(1.0, scale),) * len(hot), max(1.0, scale))
            notes.append("scaled to the whole program by a register that counts its repetitions")
    part = None
    if factors is None and share_of(light.profile, hottest) >= SAME_FUNCTION_MIN:
        part = float(light.profile.totals["Ir"])
    used = factors or Factors((1.0,) * len(hot), 1.0)
    loops = tuple(
        replace(one, iterations=one.iterations * factor)
        for one, factor in zip(found.loops, used.loops, strict=True)
    )
    base = Counted(
        instructions=None if factors is None else used.whole(light.profile, hot),
        loops=loops,
        demand=loop_demand(loops),
        pointer_share=_share(found.loops, code.follows_pointers),
        float_share=_share(found.loops, code.computes_floats),
        whole_misses=light.ended and runs["l2"].ended and runs["l3"].ended,
        cut_off=not light.ended,
        part_instructions=part,
        refuted=refuted,
        notes=tuple(notes),
    )
    return with_misses(base, light.profile, runs["l2"].profile, runs["l3"].profile, factors=used)


def target_of(machine: Machine) -> Target:
    """The core whose throughput model is used."""
    core = machine.microarchitecture
    return Target(machine.architecture, core.compiler_name if core is not None else None)


def share_of(light: CallgrindProfile, function: str) -> float:
    """Share of the instructions in functions of that name; pure."""
    executed = light.events.index("Ir")
    name = plain_name(function)
    seen = sum(
        cost[executed] for key, cost in light.functions.items() if plain_name(key.name) == name
    )
    return seen / light.totals["Ir"] if name else 0.0


def plain_name(function: str) -> str:
    """Without arguments, the compiler's endings and callgrind's mark of a recursion."""
    return re.split(r"[('@]|\.(?:part|constprop|isra|cold)\b", function)[0]


def with_misses(
    base: Counted,
    light: CallgrindProfile,
    near: CallgrindProfile | None,
    far: CallgrindProfile | None,
    *,
    factors: Factors | None = None,
) -> Counted:
    """Add the misses of the two cache simulations, scaled loop by loop; pure."""
    loops = [analysis.loop for analysis in base.loops]
    used = factors or Factors((1.0,) * len(loops), 1.0)

    def total(other: CallgrindProfile | None, kind: str) -> float | None:
        if base.whole_misses and other is not None:
            known = [name for name in _MISSES[kind] if name in other.totals]
            return float(sum(other.totals[name] for name in known)) if known else None
        return _scaled(light, other, loops, kind, used)

    return replace(
        base,
        mispredictions=total(near, "mispredictions"),
        l1_misses=total(near, "near"),
        l2_misses=total(near, "far"),
        l3_misses=total(far, "far"),
        fetch_misses=total(near, "fetch") if near else code_misses(light, CODE_LINES) * used.rest,
    )


def code_misses(light: CallgrindProfile, held: int) -> float:
    """Lines of code fetched from beyond a cache of ``held`` lines, without simulating it; pure.

    The lines that are executed most often stay in the cache, all others come anew each time.
    """
    executed = light.events.index("Ir")
    lines: dict[tuple[str, int], int] = {}
    for (module, address), entry in light.instructions.items():
        key = module, address // LINE_BYTES
        lines[key] = max(lines.get(key, 0), entry.cost[executed])
    return float(sum(sorted(lines.values(), reverse=True)[held:]))


@dataclass(frozen=True, slots=True)
class _Run:
    profile: CallgrindProfile | None
    ended: bool
    reason: str = ""


def _cache_options(machine: Machine) -> dict[str, tuple[str, ...]]:
    """Options of the two cache simulations; without known caches callgrind takes its own."""
    try:
        near = cache_sizes(machine.caches, last_level=2)
        far = replace(cache_sizes(machine.caches, last_level=3), data=near.last)
    except UnavailableError:
        return {"l2": ("--cache-sim=yes", "--branch-sim=yes"), "l3": ("--cache-sim=yes",)}
    return {
        "l2": ("--cache-sim=yes", "--branch-sim=yes", *_sizes(near)),
        "l3": ("--cache-sim=yes", "--branch-sim=no", *_sizes(far)),
    }


def _sizes(caches: CacheSizes) -> tuple[str, ...]:
    sizes = simulated_caches(caches).sizes
    return (
        f"--I1={sizes.instructions.option}", f"--D1={sizes.data.option}",
        f"--LL={sizes.last.option}",
    )  # fmt: skip


def _run(
    command: Sequence[str], options: Sequence[str], folder: Path, name: str, timeout_s: float
) -> _Run:
    out = folder / f"callgrind-{name}.out"
    line = (
        "valgrind", "--tool=callgrind", "--dump-instr=yes", "--fair-sched=try", *options,
        f"--callgrind-out-file={str(out).replace('%', '%%')}", *command,
    )  # fmt: skip
    errors = folder / f"callgrind-{name}.stderr"
    try:
        finished = run_group(
            line, stdout=folder / f"callgrind-{name}.stdout", stderr=errors, timeout_s=timeout_s
        )
        text = out.read_text(encoding="utf-8", errors="replace")
        profile = callgrind_format.parse(text)
    except (OSError, InputError) as error:
        return _Run(None, False, f"no profile: {error}")
    if not profile.totals.get("Ir"):
        return _Run(None, False, "the profile is empty")
    if finished.timed_out:
        return _Run(profile, False, f"cut off after {timeout_s:.0f} s")
    if finished.returncode < 0:
        return _Run(profile, False, "ended by a signal under valgrind")
    return _Run(profile, True)


def _share(loops: Sequence[LoopAnalysis], holds: object) -> float:
    """Share of all instructions in the loops for whose usual path something holds."""
    total = 0.0
    for analysis in loops:
        texts = [instruction.text for instruction in analysis.loop.usual_path]
        if callable(holds) and holds(texts):
            total += analysis.loop.share
    return total


def _scaled(
    light: CallgrindProfile,
    other: CallgrindProfile | None,
    loops: Sequence[HotLoop],
    kind: str,
    factors: Factors,
) -> float | None:
    """Misses of the whole program from those per instruction of each hot loop."""
    if other is None:
        return None
    places = [other.events.index(name) for name in _MISSES[kind] if name in other.events]
    if not places:
        return None
    executed = other.events.index("Ir")
    total, known = 0.0, 0.0
    for loop, factor in zip(loops, factors.loops, strict=True):
        costs = [
            entry.cost
            for i in loop.instructions
            if (entry := other.instructions.get((loop.object, i.address))) is not None
        ]
        seen = sum(cost[executed] for cost in costs)
        if seen >= min(ENOUGH_INSTRUCTIONS, loop.executed):
            misses = sum(cost[place] for cost in costs for place in places)
            total += misses / max(seen, 1) * loop.executed * factor
            known += loop.executed
    if known < 0.5 * sum(loop.executed for loop in loops):
        return None
    if loops:
        return total
    names = [name for name in _MISSES[kind] if name in other.totals]
    executed_in_all = light.totals["Ir"] * factors.rest
    return sum(other.totals[name] for name in names) / other.totals["Ir"] * executed_in_all
