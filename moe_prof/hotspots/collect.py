"""Sampling or simulating one variant: the native driver's forward loop under each tool.

Each function returns a profile whose stacks know their phase and whether they wait.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from moe_prof.collectors import (
    callgrind,
    callgrind_profile,
    gprof,
    perf_record,
    perf_samples,
    vtune,
    vtune_csv,
    vtune_profile,
)
from moe_prof.collectors.base import Availability
from moe_prof.collectors.cache_geometry import cache_sizes, simulated_caches
from moe_prof.collectors.perf_script import ScriptSample, read_samples
from moe_prof.collectors.simulate import Workload as SimulatedWorkload
from moe_prof.collectors.stacks import Profile, Stack, mapped
from moe_prof.collectors.toolrun import keeping_files
from moe_prof.errors import ToolError, UnavailableError
from moe_prof.hotspots.phases import phase_of
from moe_prof.hotspots.places import with_places
from moe_prof.hotspots.waiting import has_nameless_runtime, is_waiting
from moe_prof.kernels import driver
from moe_prof.kernels.features import read_cpu
from moe_prof.machine import Machine
from moe_prof.progress import Progress
from moe_prof.scenario import Scenario
from moe_prof.topdown import simulation

SAMPLED_TIME_S = 1.0
GPROF_TIME_S = 3.0  # 100 samples a second
VTUNE_TIME_S = 3.0  # likewise
WARMUP = 2
_LOOP = "bench::(anonymous namespace)::time_forwards"
_WRAPPER = "sh"  # the shell that records the workload's status
_DAMAGE_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Target:
    """What to profile; ``isa`` None for the best path."""

    scenario: Scenario
    variant: str
    isa: str | None
    threads: int
    seed: int


@dataclass(frozen=True, slots=True)
class Setting:
    """Where and how: the folder of raw files, the limit, the machine, who is told.

    ``stacks`` is perf's way to find callers, ``analysis`` VTune's type; samples are taken for
    ``rounds`` times as long.
    """

    folder: Path
    timeout_s: float
    machine: Machine
    progress: Progress
    stacks: perf_record.Stacks = "dwarf"
    analysis: vtune.AnalysisName = "hotspots"
    rounds: int = 1


def by_perf(target: Target, setting: Setting) -> Profile:
    """Samples of the forward loop by perf record.

    Raises:
        UnavailableError: perf refuses, or took no sample.
        WorkloadError: the workload failed.
        ToolError: perf failed.
    """
    program = driver.find_driver(target.variant, isa=target.isa, progress=setting.progress)
    command = driver.driver_argv(
        program, target.scenario, iterations=1, threads=target.threads, seed=target.seed,
        warmup=WARMUP, min_time_s=SAMPLED_TIME_S * setting.rounds,
    )  # fmt: skip
    with keeping_files(str(setting.folder)):
        recording = perf_record.run(
            command, setting.folder, timeout_s=setting.timeout_s, stacks=setting.stacks
        )
        notes = list(recording.notes)
        samples = _read(perf_record.script(recording.run.outputs["data"]), notes)
        if not any(name.startswith(perf_record.EVENT) for name in recording.events):
            notes.append(
                f"sampled {', '.join(recording.events)}, for there is no hardware counter of cycles"
            )
        found = perf_samples.profile(in_loop(samples, notes), scope="roi", notes=notes)
        found = with_places(found, setting.folder, return_addresses=setting.stacks == "fp")
    return classified(found)


def by_callgrind(target: Target, setting: Setting) -> Profile:
    """Instructions of the forward loop, one thread, simulated by callgrind.

    Raises:
        UnavailableError: valgrind is missing, or has none of the instructions of every path.
        WorkloadError, ToolError, InputError: the run failed.
    """
    _require(callgrind.availability())
    cpu = read_cpu()
    isa = target.isa or simulation.simulable_isa(target.variant, cpu)
    if isa is None:
        raise UnavailableError(f"callgrind: {simulation.why_not_simulable(target.variant)}")
    callgrind.check_isa(isa, simulation.path_features(isa, cpu))
    program = driver.find_driver(target.variant, isa=isa or None, progress=setting.progress)
    tokens = simulation.tokens_to_simulate(target.scenario, target.variant)
    caches = simulated_caches(cache_sizes(setting.machine.caches, last_level=2))
    scenario = simulation.scenario_to_simulate(target.scenario, caches.sizes.last.size_bytes)
    is_cold = simulation.forgets_its_start(scenario, caches.sizes.last.size_bytes)
    workload = SimulatedWorkload(program, scenario, 1, tokens, target.seed, is_cold)
    notes = ["callgrind runs one thread: no waiting for others; instructions are counted, not time"]
    if program.isa:
        notes.append(f"the {program.isa} path")
    if tokens != target.scenario.num_tokens:
        notes.append(f"{tokens} of {target.scenario.num_tokens} tokens were simulated")
    if scenario.distinct_experts:
        notes.append(
            f"{scenario.num_experts} experts share the weights of {scenario.distinct_experts} here"
        )
    with keeping_files(str(setting.folder)):
        result = callgrind.run(
            workload.argv, caches=caches, folder=setting.folder, timeout_s=setting.timeout_s
        )
        read = callgrind.load_profile(result)
        found = callgrind_profile.profile(read, notes=notes)
        found = with_places(found, setting.folder, return_addresses=False)
    return classified(found)


def by_gprof(target: Target, setting: Setting) -> Profile:
    """Samples and call counts of the whole process, of the build with -pg.

    Raises:
        UnavailableError: gprof is missing, or took no sample.
        WorkloadError, ToolError: the run failed.
    """
    _require(gprof.availability())
    program = driver.find_driver(
        target.variant, isa=target.isa, build="gprof", progress=setting.progress
    )
    command = driver.driver_argv(
        program, target.scenario, iterations=1, threads=target.threads, seed=target.seed,
        warmup=0, min_time_s=GPROF_TIME_S * setting.rounds,
    )  # fmt: skip
    with keeping_files(str(setting.folder)):
        read, done = gprof.run(command, setting.folder, timeout_s=setting.timeout_s)
    answer = driver.parse_result(done.stdout)
    notes = [
        f"gprof sees the whole process, {answer.iterations} forwards and the preparation of "
        "weights among it, not the forward loop alone; threads together",
        "the build with -pg counts every call, so that small functions look larger than they are",
        "callers are guessed by gprof where calls are indirect: totals and phases may be off",
    ]
    found = gprof.profile(read, module=Path(command[0]).name, notes=notes)
    return classified(found, callers=False)


def by_vtune(target: Target, setting: Setting) -> Profile:
    """Samples of the forward loop by VTune, with its figures by thread and of the whole.

    Raises:
        UnavailableError: VTune is missing, refuses, or collected nothing.
        WorkloadError, ToolError, InputError: the run failed.
    """
    _require(vtune.availability())
    program = driver.find_driver(target.variant, isa=target.isa, progress=setting.progress)
    command = driver.driver_argv(
        program, target.scenario, iterations=1, threads=target.threads, seed=target.seed,
        warmup=WARMUP, min_time_s=VTUNE_TIME_S * setting.rounds,
    )  # fmt: skip
    folder = setting.folder
    with keeping_files(str(folder)):
        result = vtune.collect(
            command, folder, analysis=setting.analysis, timeout_s=setting.timeout_s
        )
        functions = vtune_csv.parse_table(vtune.report("hotspots", result, folder, "function"))
        threads = vtune_csv.parse_table(vtune.report("hotspots", result, folder, "thread"))
        whole = vtune_csv.parse_summary(vtune.report("summary", result, folder))
    rows = [*vtune_profile.thread_rows(threads), *vtune_profile.summary_rows(whole)]
    notes = [
        f"VTune's {setting.analysis} analysis; its spin and overhead time counts as waiting",
    ]
    found = vtune_profile.profile(functions, rows=rows, notes=notes)
    return mapped(found, _also_by_name)


COLLECTORS: Mapping[str, Callable[[Target, Setting], Profile]] = {
    "perf": by_perf,
    "callgrind": by_callgrind,
    "gprof": by_gprof,
    "vtune": by_vtune,
}


def classified(profile: Profile, *, callers: bool = True) -> Profile:
    """Every stack with its phase and whether it waits; see :func:`phase_of` for ``callers``."""

    def change(stack: Stack) -> Stack:
        waiting = is_waiting(stack)
        return replace(
            stack, waiting=waiting, phase="" if waiting else phase_of(stack, callers=callers)
        )

    found = mapped(profile, change)
    runtime = has_nameless_runtime(found.stacks)
    if runtime:
        note = f"the runtime {runtime} has no symbols here: all of its own time counts as waiting"
        found = replace(found, notes=(*found.notes, note))
    return found


def _also_by_name(stack: Stack) -> Stack:
    """VTune's own judgement, and the names of what it does not know to wait."""
    waiting = stack.waiting or is_waiting(stack)
    return replace(stack, waiting=waiting, phase="" if waiting else phase_of(stack))


def _require(found: Availability) -> None:
    """Refuse before anything is built."""
    if not found.usable:
        raise UnavailableError(f"{found.reason}; {found.remedy}")


def in_loop(samples: Sequence[ScriptSample], notes: list[str]) -> list[ScriptSample]:
    """Samples between the first and the last one that the timed loop's own thread took in it.

    Sampling is on a little longer: while perf's acknowledgement is on its way, other threads wait.
    Without call stacks that mostly show the loop, all samples are kept.
    """
    own = [sample for sample in samples if sample.comm != _WRAPPER] or list(samples)
    main = [sample for sample in own if sample.tid == sample.pid]
    inside = [s.time_s for s in main if s.time_s is not None and _shows_loop(s)]
    if not inside or 2 * len(inside) < len(main):  # the call stacks do not reach so far
        return own
    begin, end = min(inside), max(inside)
    kept = [sample for sample in own if begin <= (sample.time_s or begin) <= end]
    if len(kept) < len(own):
        notes.append(f"{len(own) - len(kept)} samples before and after the loop are left out")
    return kept


def _shows_loop(sample: ScriptSample) -> bool:
    return any((frame.symbol or "").startswith(_LOOP) for frame in sample.frames)


def _read(script: Path, notes: list[str]) -> list[ScriptSample]:
    """The samples of a script; lines that cannot be read are counted, the first ones named."""
    damaged: list[str] = []
    count = 0

    def report(number: int, trouble: str) -> None:
        nonlocal count
        count += 1
        if count <= _DAMAGE_SHOWN:
            damaged.append(f"line {number}: {trouble}")

    try:
        with script.open(encoding="utf-8", errors="replace") as lines:
            samples = list(read_samples(lines, report))
    except OSError as error:
        raise ToolError(f"{script} cannot be read: {error.strerror}") from error
    if count:
        notes.append(f"{script.name}: {count} lines could not be read ({'; '.join(damaged)})")
    return samples
