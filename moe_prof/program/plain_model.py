"""What hot loops need at least, where no scheduling model is installed: issue width and latencies.

A loop cannot go around faster than its instructions issue, nor than its longest chain from one
iteration to the next. Execution ports are not modelled, so a loop is only judged where one of the
two explains most of the cycles that it was measured to take.

Source: A. Fog, "Instruction tables", for latencies: the smallest of Intel's cores since Haswell and
AMD's since Zen, so that the chain is a lower bound.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace

from moe_prof.analysis.program_demands import FULL_SLOTS, ProgramEvidence
from moe_prof.program import code
from moe_prof.program.speeds import LoopSpeed

HOT_MIN = 0.3
"""Loops must make up this share of the samples to stand for the program."""
EXPLAINED_MIN = 0.7
WARM_ITERATIONS, ITERATIONS = 16, 48
_LOAD_CYCLES = 4
_LATENCIES = (
    (re.compile(r"v?sqrt[sp]d"), 13), (re.compile(r"v?div[sp]d"), 13),
    (re.compile(r"v?(?:sqrt|div)[sp]s"), 10), (re.compile(r"i?div"), 10),
    (re.compile(r"v?fn?m(?:add|sub)|v?cvt"), 4),
    (re.compile(r"v?(?:add|sub|mul|min|max|addsub)[sp][sd]|v?pmul|v?pmadd|v?pdp|i?mul|crc32"), 3),
    (re.compile(r"f(?:add|sub|mul)"), 4),
)  # fmt: skip
"""Cycles by the beginning of the mnemonic; everything else takes one."""


def chain_cycles(texts: Sequence[str]) -> float:
    """Cycles per iteration of the longest chain that goes around a loop of these instructions."""
    steps = code.steps_of(texts)
    ready: defaultdict[str, float] = defaultdict(float)
    warm = 0.0
    for iteration in range(WARM_ITERATIONS + ITERATIONS):
        if iteration == WARM_ITERATIONS:
            warm = max(ready.values(), default=0.0)
        for step in steps:
            loaded = max((ready[name] for name in step.address), default=0.0)
            start = max(
                loaded + _LOAD_CYCLES if step.loads else loaded,
                max((ready[name] for name in step.reads), default=0.0),
            )
            for name in step.writes:
                ready[name] = start + latency_cycles(step.text)
    return (max(ready.values(), default=0.0) - warm) / ITERATIONS


def latency_cycles(text: str) -> int:
    """The least latency of an instruction, apart from a load's."""
    mnemonic = text.partition(" ")[0]
    return next((cycles for pattern, cycles in _LATENCIES if pattern.match(mnemonic)), 1)


def with_loops(e: ProgramEvidence, speeds: Sequence[LoopSpeed]) -> ProgramEvidence:
    """The evidence with what its hot loops need; unchanged where that explains too little; pure."""
    inner = [speed for speed in speeds if speed.innermost]
    width, clock = e.machine.width, e.machine.clock_hz
    if not width or not clock or sum(speed.share for speed in inner) < HOT_MIN:
        return e
    bounds: Counter[str] = Counter()
    slots = 0.0
    for speed in inner:
        iterations = speed.iterations_per_s * speed.share * e.user_s
        slots_each = max(1, len(speed.texts) - 1)  # the jump back is fused with its test
        issue, chain = slots_each / width, chain_cycles(speed.texts)
        real = clock / speed.iterations_per_s
        if issue < FULL_SLOTS * real and chain < EXPLAINED_MIN * real:
            continue
        bounds["dependency" if chain > issue else "issue"] += round(iterations * max(issue, chain))
        slots += iterations * slots_each
    if not bounds:
        return e
    bound, _ = bounds.most_common(1)[0]
    cycles = float(sum(bounds.values()))
    return replace(
        e, loop_bound=bound, loop_cycles=cycles, loop_slots=slots / (width * cycles),
        loop_model="issue width and latencies of the hot loops",
    )  # fmt: skip
