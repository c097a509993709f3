"""Everything that simulation can say of one forward: counts, hot loops and their bounds.

One call runs the native driver under callgrind, finds the hot loops in the profile and asks
llvm-mca for their bounds. Each part may be missing; it is then None, and the tool's Availability
holds the reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from moe_prof.collectors import callgrind, disassembly, hotloop, llvm_mca
from moe_prof.collectors.base import Availability, ToolRun
from moe_prof.collectors.cache_geometry import CacheSizes, SimulatedCaches, simulated_caches
from moe_prof.collectors.callgrind import Counts
from moe_prof.collectors.callgrind_format import CallgrindProfile
from moe_prof.collectors.hotloop import HotLoop
from moe_prof.collectors.llvm_mca import LoopThroughput, Mca
from moe_prof.collectors.scheduling_models import Target
from moe_prof.errors import (
    InputError,
    ToolError,
    UnavailableError,
    UsageError,
    WorkloadError,
)
from moe_prof.kernels.driver import Driver, layer_argv
from moe_prof.scenario import Scenario

WARMUP_FORWARDS = 1


@dataclass(frozen=True, slots=True)
class LoopAnalysis:
    """A hot loop, its bounds where the model knows it, and the reason where it does not.

    ``iterations`` is per forward.
    """

    loop: HotLoop
    iterations: float
    throughput: LoopThroughput | None
    reason: str


@dataclass(frozen=True, slots=True)
class LoopDemand:
    """Cycles of one forward that the modelled loops need at least.

    Attributes:
        port_cycles: by dispatch and execution ports.
        dependency_cycles: the same with the loop-carried chain in those loops that it binds, so
            never less than ``port_cycles``.
        simulated_cycles: as the scheduling model simulates the loops, both bounds together.
        coverage: share of all instructions that the modelled loops stand for, 0..1.
        uops_per_instruction: micro-operations without fusion, over the modelled loops.
        slots_per_instruction: issue slots after fusion, over the modelled loops.
        cpu: the scheduling model.
    """

    port_cycles: float
    dependency_cycles: float
    simulated_cycles: float
    coverage: float
    uops_per_instruction: float
    slots_per_instruction: float
    cpu: str


@dataclass(frozen=True, slots=True)
class SimulatedCounts:
    """What was simulated of one forward.

    Attributes:
        counts: per forward of all tokens, None when callgrind's Availability says why.
        source: what was simulated, for the ``source`` of rows.
        scale: factor from the tokens that were simulated to those of the scenario.
        loops: hot loops by share, largest first.
        demand: sum over the loops with known bounds, None when there are none.
        tools: callgrind, objdump and llvm_mca, usable or with the reason.
        notes: changes of cache sizes, scaling, functions without loops.
        run: the run under callgrind with its raw output.
    """

    scenario: Scenario
    variant: str
    isa: str
    counts: Counts | None
    source: str
    scale: float
    caches: SimulatedCaches
    loops: tuple[LoopAnalysis, ...]
    demand: LoopDemand | None
    tools: tuple[Availability, ...]
    notes: tuple[str, ...]
    run: ToolRun | None

    def tool(self, name: str) -> Availability:
        """The state of one tool by its name."""
        return next(tool for tool in self.tools if tool.name == name)


@dataclass(frozen=True, slots=True)
class Workload:
    """The native driver and what it shall run: ``moe_bench``'s command line.

    Attributes:
        is_cold: the simulated caches are empty before the forward that counts; else one forward
            fills them.
    """

    driver: Driver
    scenario: Scenario
    iterations: int
    tokens: int
    seed: int = 0
    is_cold: bool = False

    @property
    def argv(self) -> tuple[str, ...]:
        """The command: one thread, no baseline, the result as JSON."""
        _, d, h, e, k = self.scenario.shape
        sizes = (self.tokens, d, h, e, k, self.iterations)
        return (
            str(self.driver.program), *(str(size) for size in sizes),
            *layer_argv(self.scenario), "--benchmark", "--json",
            *self.driver.kernel_argv, "--threads", "1", "--seed", str(self.seed),
            "--warmup", str(WARMUP_FORWARDS), *(["--uncounted-warmup"] if self.is_cold else []),
        )  # fmt: skip

    @property
    def scale(self) -> float:
        """From the simulated tokens to all."""
        return self.scenario.num_tokens / self.tokens


def collect_simulated(
    driver: Driver,
    scenario: Scenario,
    variant: str,
    *,
    caches: CacheSizes,
    target: Target,
    iterations: int,
    timeout_s: float,
    folder: Path,
    tokens_simulated: int | None = None,
    isa_features: Iterable[str] = (),
    seed: int = 0,
    is_cold: bool = False,
    with_loops: bool = True,
) -> SimulatedCounts:
    """Simulate a variant's forward and analyse its hot loops.

    Args:
        driver: what shall run, and, of a built-in variant, what it must say that it ran.
        variant: its name in the result.
        caches: ``last`` stands for L2 or L3; call twice for both.
        target: the core whose scheduling model llvm-mca shall use.
        iterations: forwards inside the region of interest.
        tokens_simulated: fewer tokens than the scenario's, for variants whose work is proportional
            to them; counts are scaled up, and the source says so.
        isa_features: CPU features that the path needs; refused when valgrind lacks one.
        seed: of weights and tokens, which decide the routing.
        is_cold: leave out simulating the warm-up, where one forward reads so much that its start
            is forgotten.
        with_loops: also find the hot loops and their bounds.

    Raises:
        UsageError: ``iterations`` or ``tokens_simulated`` is out of range.
    """
    tokens = scenario.num_tokens if tokens_simulated is None else tokens_simulated
    _check_size(scenario, iterations, tokens)
    workload = Workload(driver, scenario, iterations, tokens, seed, is_cold)
    simulated = simulated_caches(caches)
    tool, result, profile = _profile(
        workload, simulated, isa_features=isa_features, folder=folder, timeout_s=timeout_s
    )
    found = SimulatedCounts(
        scenario=scenario, variant=variant, isa=driver.isa, counts=None, scale=workload.scale,
        source=_source(workload, simulated, tool), caches=simulated, loops=(), demand=None,
        tools=(tool,), notes=simulated.notes, run=result,
    )  # fmt: skip
    if profile is None:
        return found
    counts = callgrind.counts(profile, forwards=iterations, scale=workload.scale)
    found = replace(found, counts=counts)
    return _with_loops(found, profile, workload, target, folder) if with_loops else found


def _check_size(scenario: Scenario, iterations: int, tokens: int) -> None:
    if iterations < 1 or not 1 <= tokens <= scenario.num_tokens:
        raise UsageError(
            f"simulation of {scenario.label}: {iterations} iterations on {tokens} tokens is not "
            f"within 1..{scenario.num_tokens} tokens and at least one iteration"
        )


def _profile(
    workload: Workload,
    caches: SimulatedCaches,
    *,
    isa_features: Iterable[str],
    folder: Path,
    timeout_s: float,
) -> tuple[Availability, ToolRun | None, CallgrindProfile | None]:
    """Callgrind's state after the run, the run, and its profile; what failed is None."""
    tool = callgrind.availability()
    result: ToolRun | None = None
    try:
        callgrind.check_isa(workload.driver.isa, isa_features)
        result = callgrind.run(workload.argv, caches=caches, folder=folder, timeout_s=timeout_s)
        check_answer(result.stdout, workload)
        return tool, result, callgrind.load_profile(result)
    except (UnavailableError, ToolError, WorkloadError, InputError) as error:
        return _failed(tool, error), result, None


def check_answer(stdout: str, workload: Workload) -> None:
    """Compare what the driver says that it ran with what it was told to run.

    Raises:
        ToolError: it ran something else, or does not say.
    """
    try:
        answer: Any = json.loads(stdout)
    except json.JSONDecodeError:
        answer = None
    driver = workload.driver
    if not isinstance(answer, dict):
        raise ToolError(f"{driver.program} does not say what it ran; rebuild the kernels")
    wanted: dict[str, object] = {"threads": 1, "iterations": workload.iterations}
    if driver.library is None:
        wanted |= {"variant": driver.variant, "isa": driver.isa}
    for key, value in wanted.items():
        if answer.get(key) != value:
            raise ToolError(
                f"{driver.library or driver.program} ran {key} {answer.get(key)} instead of "
                f"{value} under valgrind {answer.get('note') or ''}".rstrip()
            )


def _failed(tool: Availability, error: Exception) -> Availability:
    return replace(tool, usable=False, reason=str(error)) if tool.usable else tool


def _source(workload: Workload, caches: SimulatedCaches, tool: Availability) -> str:
    """How the counts were made, in one line."""
    if not tool.usable:
        return tool.reason
    parts = [f"callgrind {tool.version}, 1 thread, {caches.text}"]
    if workload.scale != 1:
        parts.append(
            f"simulated {workload.tokens} of {workload.scenario.num_tokens} tokens, "
            f"scaled by {workload.scale:g}"
        )
    if workload.is_cold:
        parts.append("caches empty at first")
    if workload.scenario.distinct_experts:
        parts.append(
            f"{workload.scenario.num_experts} experts share the weights of "
            f"{workload.scenario.distinct_experts}"
        )
    return "; ".join(parts)


def _with_loops(
    counted: SimulatedCounts,
    profile: CallgrindProfile,
    workload: Workload,
    target: Target,
    folder: Path,
) -> SimulatedCounts:
    found = analyse_loops(
        profile, target, folder=folder, per_forward=workload.scale / workload.iterations
    )
    return replace(
        counted,
        loops=found.loops,
        demand=loop_demand(found.loops),
        tools=(*counted.tools, *found.tools),
        notes=(*counted.notes, *found.notes),
    )


@dataclass(frozen=True, slots=True)
class AnalysedLoops:
    """The hot loops of a profile with their bounds, the tools used, and remarks."""

    loops: tuple[LoopAnalysis, ...]
    tools: tuple[Availability, ...]
    notes: tuple[str, ...]


def analyse_loops(
    profile: CallgrindProfile, target: Target, *, folder: Path, per_forward: float = 1.0
) -> AnalysedLoops:
    """Find the hot loops of a profile and their bounds; what fails is said by a tool's reason.

    Args:
        per_forward: factor from the profile's iterations to those of the result.
    """
    objdump = disassembly.availability()
    mca_tool = llvm_mca.availability(target)
    mca = _chosen_mca(target)
    notes: tuple[str, ...] = ()
    analyses: tuple[LoopAnalysis, ...] = ()
    try:
        found = hotloop.find(profile, x86=target.is_x86, folder=folder)
        notes = found.notes
        analyses = tuple(
            _analyse(
                loop, number, mca, per_forward=per_forward, reason=mca_tool.reason, folder=folder
            )
            for number, loop in enumerate(found.loops)
        )
        if not analyses:
            mca_tool = replace(mca_tool, usable=False, reason="no hot loop was found to model")
    except (UnavailableError, ToolError, InputError) as error:
        objdump = _failed(objdump, error)
        mca_tool = _failed(mca_tool, error)
    return AnalysedLoops(analyses, (objdump, mca_tool), notes)


def _chosen_mca(target: Target) -> tuple[Mca, str] | None:
    """llvm-mca and the processor name to use, where there are both."""
    mca = llvm_mca.find_mca()
    if isinstance(mca, Availability):
        return None
    cpu = llvm_mca.choose_cpu(mca, target).name
    return None if cpu is None else (mca, cpu)


def _analyse(
    loop: HotLoop,
    number: int,
    chosen: tuple[Mca, str] | None,
    *,
    per_forward: float,
    reason: str,
    folder: Path,
) -> LoopAnalysis:
    """The loop's bounds; ``reason`` says why there are none when no model was chosen."""
    iterations = loop.iterations * per_forward
    if chosen is None:
        return LoopAnalysis(loop, iterations, None, reason)
    mca, cpu = chosen
    try:
        bounds = llvm_mca.run(mca, cpu, loop, folder=folder, name=f"mca-{number}")
    except (UnavailableError, ToolError, InputError) as error:
        return LoopAnalysis(loop, iterations, None, str(error))
    return LoopAnalysis(loop, iterations, bounds, "")


def analyse_alone(loop: HotLoop, target: Target, *, folder: Path) -> LoopAnalysis:
    """The bounds of one loop that was found in another way than by a profile."""
    reason = llvm_mca.availability(target).reason
    return _analyse(loop, 0, _chosen_mca(target), per_forward=1.0, reason=reason, folder=folder)


def loop_demand(analyses: Sequence[LoopAnalysis]) -> LoopDemand | None:
    """Add the bounds of the loops up over one forward; None when no loop has any.

    Between two iterations of an outer loop its inner loops run: only its ports count.
    """
    known = [(a, a.throughput) for a in analyses if a.throughput is not None]
    if not known:
        return None
    instructions = sum(a.iterations * t.instructions for a, t in known)
    inner = [(a, t) for a, t in known if a.loop.innermost]
    outer_cycles = sum(a.iterations * t.throughput_cycles for a, t in known if not a.loop.innermost)
    return LoopDemand(
        port_cycles=sum(a.iterations * t.throughput_cycles for a, t in known),
        dependency_cycles=outer_cycles
        + sum(a.iterations * (t.dependency_cycles or t.throughput_cycles) for a, t in inner),
        simulated_cycles=outer_cycles + sum(a.iterations * t.simulated_cycles for a, t in inner),
        coverage=sum(a.loop.share for a, _ in known),
        uops_per_instruction=sum(a.iterations * t.uops for a, t in known) / instructions,
        slots_per_instruction=sum(a.iterations * t.issue_slots for a, t in known) / instructions,
        cpu=known[0][1].cpu,
    )
