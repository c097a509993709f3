"""The interval model: a top-down breakdown from simulated counts and a measured time.

Used where no hardware counters can be had. Everything in it is labelled ``modelled``.

Given per forward: instructions, mispredicted branches and cache misses (counted by simulation over
exactly the forward loop), the thread time spent working (measured), the core's real clock
(calibrated) and the core's width, the model divides the issue slots::

    slots            = width x cycles,       cycles = working thread time x clock
    Retiring         = uops / slots,         uops = instructions x uops per instruction
    Bad_Speculation  = mispredictions x penalty / cycles
    Frontend_Bound   = L1I misses x L2 latency / cycles
    Backend_Bound    = what remains

The first term is the definition of Retiring in the top-down method (A. Yasin, ISPASS 2014); the
penalties are those of interval analysis, in which a core runs at its width between miss events and
each event costs an interval of its own (T. Karkhanis and J. Smith, ISCA 2004; S. Eyerman et al.,
ACM TOCS 27(2), 2009).

Level 2 divides Backend_Bound in proportion to two demands that are known apart from the time:

* core: cycles by which the hot loop's bound by ports or by its dependency chain (from a throughput
  model of the core) exceeds the cycles that its uops need at full width;
* memory: the time that the missed lines need at the read bandwidth measured on this machine, one
  level after the other.

When both together explain less than ``EXPLAINED_MIN`` of the stalled cycles, level 2 is not given.

What the model cannot see, and what follows for its validity:

* the simulated branch predictor is far simpler than a real one: Bad_Speculation is an upper bound;
* decoding and fetch bandwidth are not modelled: Frontend_Bound is a lower bound, and what it misses
  is found in Backend_Bound;
* misses overlap with work and with each other; the bandwidth form assumes prefetched streams, so
  for pointer chasing Memory_Bound is a lower bound;
* waiting threads are outside: the slots are those of working time only, and waiting is reported
  beside them as ``spin_fraction``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

EXPLAINED_MIN = 0.3
LINE_BYTES = 64

NodeName = Literal[
    "Retiring",
    "Bad_Speculation",
    "Frontend_Bound",
    "Backend_Bound",
    "Backend_Bound.Memory_Bound",
    "Backend_Bound.Core_Bound",
]
NODES: tuple[tuple[NodeName, int], ...] = (
    ("Retiring", 1),
    ("Bad_Speculation", 1),
    ("Frontend_Bound", 1),
    ("Backend_Bound", 1),
    ("Backend_Bound.Memory_Bound", 2),
    ("Backend_Bound.Core_Bound", 2),
)


@dataclass(frozen=True, slots=True)
class Core:
    """What the model must know of one core.

    Attributes:
        name: microarchitecture.
        width: issue slots per cycle.
        mispredict_penalty_cycles: from a mispredicted branch to useful issue again.
        l2_latency_cycles: load-to-use latency of the second level.
        source: where the figures are from.
    """

    name: str
    width: int
    mispredict_penalty_cycles: float
    l2_latency_cycles: float
    source: str


@dataclass(frozen=True, slots=True)
class Events:
    """Counts of one forward, summed over threads; None when not simulated.

    Misses are lines that had to come from beyond the level. ``uops_per_instruction`` is 1 when no
    throughput model knows the code (``uops_known`` False).
    """

    instructions: float
    branch_mispredictions: float | None
    l1i_misses: float | None
    l1d_misses: float | None
    l2_misses: float | None
    l3_misses: float | None
    uops_per_instruction: float = 1.0
    uops_known: bool = False


@dataclass(frozen=True, slots=True)
class LoopBound:
    """Cycles of one forward that the hot loops need at least, by a throughput model of the core.

    Attributes:
        port_cycles: bound by execution ports and dispatch.
        dependency_cycles: bound by the loop-carried dependency chain.
        coverage: share of all instructions that the modelled loops stand for, 0..1.
    """

    port_cycles: float
    dependency_cycles: float
    coverage: float


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """Measured read bandwidth of one thread while all threads read, in bytes per second."""

    l2: float | None
    l3: float | None
    memory: float | None


@dataclass(frozen=True, slots=True)
class Node:
    """One node of the tree: a fraction of slots, or None with the reason in ``note``."""

    name: NodeName
    level: int
    value: float | None
    note: str


@dataclass(frozen=True, slots=True)
class Breakdown:
    """The model's answer.

    Attributes:
        nodes: level 1, then level 2.
        ipc: instructions per working cycle.
        cycles: working cycles of all threads in one forward.
        memory_cycles / core_cycles: the demands behind level 2, None when unknown.
        warnings: where the answer is at the edge of its validity.
    """

    nodes: tuple[Node, ...]
    ipc: float
    cycles: float
    memory_cycles: float | None
    core_cycles: float | None
    warnings: tuple[str, ...]

    def value(self, name: NodeName) -> float | None:
        """The value of one node."""
        return next(node.value for node in self.nodes if node.name == name)


def breakdown(
    core: Core,
    events: Events,
    *,
    working_s: float,
    clock_hz: float,
    bandwidth: Bandwidth,
    loop: LoopBound | None,
) -> Breakdown:
    """Divide the slots of one forward.

    Args:
        working_s: thread seconds of useful work in one forward, summed over threads.
        clock_hz: the core's real clock during the run.

    Raises:
        ValueError: a time, clock or width that is not positive.
    """
    if working_s <= 0 or clock_hz <= 0 or core.width <= 0:
        raise ValueError("working time, clock and width must be positive")
    cycles = working_s * clock_hz
    ipc = events.instructions / cycles
    retiring = events.instructions * events.uops_per_instruction / (core.width * cycles)
    if retiring > 1:
        return _impossible(retiring, ipc, cycles, core)
    speculation, frontend, warnings = _penalties(core, events, cycles, retiring)
    backend = max(0.0, 1 - retiring - speculation - frontend)
    memory_cycles = _memory_cycles(events, bandwidth, clock_hz)
    core_cycles = _core_cycles(events, core, loop)
    memory_bound, core_bound, division = _second_level(backend, cycles, memory_cycles, core_cycles)
    notes = (
        _retiring_note(core, events),
        "upper bound: simple simulated branch predictor",
        "lower bound: instruction cache misses only",
        "what remains of the slots",
        division,
        division,
    )
    values = (retiring, speculation, frontend, backend, memory_bound, core_bound)
    nodes = tuple(
        Node(name, level, value, note)
        for (name, level), value, note in zip(NODES, values, notes, strict=True)
    )
    return Breakdown(nodes, ipc, cycles, memory_cycles, core_cycles, warnings)


def _retiring_note(core: Core, events: Events) -> str:
    uops = (
        f"{events.uops_per_instruction:.2f} uops an instruction"
        if events.uops_known
        else "one uop an instruction assumed, no throughput model knows this code"
    )
    return f"uops / ({core.width} slots x cycles); {uops}"


def _penalties(
    core: Core, events: Events, cycles: float, retiring: float
) -> tuple[float, float, tuple[str, ...]]:
    speculation = (events.branch_mispredictions or 0.0) * core.mispredict_penalty_cycles / cycles
    frontend = (events.l1i_misses or 0.0) * core.l2_latency_cycles / cycles
    room = 1 - retiring
    if speculation + frontend <= room:
        return speculation, frontend, ()
    scale = room / (speculation + frontend)
    warning = (
        "the simulated miss penalties exceed the slots that are not retiring, so they overlap with "
        "work: scaled to fit, Bad_Speculation and Frontend_Bound are uncertain"
    )
    return speculation * scale, frontend * scale, (warning,)


def _memory_cycles(events: Events, bandwidth: Bandwidth, clock_hz: float) -> float | None:
    steps = (
        (events.l1d_misses, bandwidth.l2),
        (events.l2_misses, bandwidth.l3),
        (events.l3_misses, bandwidth.memory),
    )
    known = [
        lines * LINE_BYTES / rate * clock_hz
        for lines, rate in steps
        if lines is not None and rate is not None
    ]
    return sum(known) if known else None


def _core_cycles(events: Events, core: Core, loop: LoopBound | None) -> float | None:
    if loop is None:
        return None
    full_width = events.instructions * events.uops_per_instruction * loop.coverage / core.width
    return max(0.0, max(loop.port_cycles, loop.dependency_cycles) - full_width)


def _second_level(
    backend: float, cycles: float, memory_cycles: float | None, core_cycles: float | None
) -> tuple[float | None, float | None, str]:
    if memory_cycles is None or core_cycles is None:
        missing = "cache misses" if memory_cycles is None else "a throughput model of the hot loop"
        return None, None, f"needs {missing}"
    demand, stalled = memory_cycles + core_cycles, backend * cycles
    if demand == 0 or demand < EXPLAINED_MIN * stalled:
        share = demand / stalled if stalled else 0.0
        return (
            None,
            None,
            (
                f"known demands on ports, dependencies and bandwidth explain only {share:.0%} of "
                "the stalled cycles"
            ),
        )
    memory = backend * memory_cycles / demand
    return (
        memory,
        backend - memory,
        (
            f"in proportion to demands: memory {memory_cycles:.3g}, core {core_cycles:.3g} cycles, "
            f"of {stalled:.3g} stalled"
        ),
    )


def _impossible(retiring: float, ipc: float, cycles: float, core: Core) -> Breakdown:
    reason = (
        f"the counted instructions would fill {retiring:.0%} of the slots of a {core.width} wide "
        f"{core.name}: the width, the clock or the counted code is not what ran"
    )
    nodes = tuple(Node(name, level, None, reason) for name, level in NODES)
    return Breakdown(nodes, ipc, cycles, None, None, (reason,))
