"""Simulating the variants: which path can be simulated, how many tokens, several runs at once."""

from __future__ import annotations

import concurrent.futures
import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from moe_prof.analysis.work import MATRICES
from moe_prof.collectors import callgrind
from moe_prof.collectors.cache_geometry import CacheSizes, cache_sizes
from moe_prof.collectors.scheduling_models import Target
from moe_prof.collectors.simulate import SimulatedCounts, collect_simulated
from moe_prof.collectors.toolrun import keeping_files
from moe_prof.errors import MoeProfError, UnavailableError
from moe_prof.kernels import driver, selection
from moe_prof.kernels.features import BY_NAME as PATHS
from moe_prof.kernels.features import CpuFeatures
from moe_prof.kernels.memory import weight_bytes
from moe_prof.kernels.table import BY_NAME as VARIANTS
from moe_prof.machine import Machine
from moe_prof.measure.expected import layer_macs
from moe_prof.progress import Progress
from moe_prof.scenario import Scenario

# Work of the simulated tokens of a variant whose counts are proportional to tokens: enough for the
# loops to dominate, a few seconds of simulation
SCALED_MACS = 8_000_000
SCALED_TOKENS_MIN = 4
# Weights beyond this are prepared for minutes under a simulator; experts then share memory in it.
WHOLE_BYTES = 128 << 20
SHARED_CACHES = 8
"""Distinct experts of the simulation fill so many times its last cache: they stay misses there."""


@dataclass(frozen=True, slots=True)
class Job:
    """One variant to simulate on one path; "" is that of a user's library."""

    variant: str
    isa: str


def path_features(isa: str, cpu: CpuFeatures) -> tuple[str, ...]:
    """CPU features that code of a path may use; for ``native`` all that the CPU has.

    What a library (path "") uses shows when it runs.
    """
    if not isa:
        return ()
    return tuple(sorted(cpu.flags)) if isa == "native" else PATHS[isa].features


def simulable_isa(variant: str, cpu: CpuFeatures) -> str | None:
    """The best path that valgrind can run, "" of a user's library; None when there is none."""
    if selection.is_library_path(variant):
        return ""
    spec = VARIANTS.get(variant)
    if spec is None or spec.language != "c++":
        return None
    for isa in selection.isas(variant):
        if not callgrind.unknown_isa(path_features(isa, cpu)):
            return isa
    return None


def why_not_simulable(variant: str) -> str:
    """The reason why :func:`simulable_isa` has no path."""
    spec = VARIANTS.get(variant)
    if spec is not None and spec.language == "numba":
        return "code that numba compiles inside Python is not simulated; see the C++ variants"
    return f"every path of {variant} that runs here uses instructions that valgrind lacks"


def tokens_to_simulate(scenario: Scenario, variant: str) -> int:
    """All tokens, or fewer for a variant whose work is proportional to them."""
    spec = VARIANTS.get(variant)
    if spec is None or not spec.token_linear or scenario.num_tokens <= SCALED_TOKENS_MIN:
        return scenario.num_tokens
    per_token = layer_macs(scenario) / scenario.num_tokens
    wanted = max(SCALED_TOKENS_MIN, round(SCALED_MACS / per_token))
    return min(scenario.num_tokens, wanted)


def scenario_to_simulate(scenario: Scenario, last_cache_bytes: int) -> Scenario:
    """The scenario, with fewer distinct experts where all of them would take minutes to prepare.

    A forward executes the same instructions then, and weights still leave the last cache that is
    simulated before they are read again, so that its misses are the same as well.
    """
    if weight_bytes(scenario) <= WHOLE_BYTES:
        return scenario
    _, d, h, e, k = scenario.shape
    needed = max(2 * k, -(-SHARED_CACHES * last_cache_bytes // (MATRICES * d * h)))
    distinct = 1 << (needed - 1).bit_length()
    if MATRICES * d * h >= SHARED_CACHES * last_cache_bytes:  # one expert leaves it by itself
        distinct = 2
    if distinct >= (scenario.distinct_experts or e):
        return scenario
    return replace(scenario, distinct_experts=distinct)


def forgets_its_start(scenario: Scenario, last_cache_bytes: int) -> bool:
    """Whether one forward reads so many weights that it does not matter what caches held before."""
    _, d, h, _, _ = scenario.shape
    touched = scenario.experts_per_token * MATRICES * d * h
    return scenario.num_tokens > 0 and touched >= SHARED_CACHES * last_cache_bytes


def simulate(
    jobs: Sequence[Job],
    scenario: Scenario,
    *,
    machine: Machine,
    cpu: CpuFeatures,
    seed: int,
    timeout_s: float,
    end_s: float | None,
    folder: Path,
    progress: Progress,
) -> tuple[Mapping[str, SimulatedCounts], Mapping[str, str]]:
    """Run the jobs under callgrind, as many at once as there are CPUs.

    Args:
        seed: of weights and tokens.
        timeout_s: for each job.
        end_s: when all must have ended, by ``time.monotonic``; a job that finds no time left is not
            started. None: no such time.

    Returns:
        results by variant, and for the others the reason why there is none.
    """
    if not scenario.num_tokens:
        return {}, {job.variant: "there are no tokens, so nothing to simulate" for job in jobs}
    try:
        caches = cache_sizes(machine.caches, last_level=2)
    except UnavailableError as error:
        return {}, {job.variant: str(error) for job in jobs}
    with concurrent.futures.ThreadPoolExecutor(max_workers=machine.usable_cpus()) as pool:
        futures = {
            pool.submit(
                _one, job, scenario, machine=machine, cpu=cpu, caches=caches, seed=seed,
                timeout_s=timeout_s, end_s=end_s,
                folder=folder / selection.folder_name(job.variant),
            ): job
            for job in jobs
        }  # fmt: skip
        try:
            return _gathered(futures, progress)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            end_children()
            raise


def _gathered(
    futures: Mapping[concurrent.futures.Future[SimulatedCounts], Job], progress: Progress
) -> tuple[Mapping[str, SimulatedCounts], Mapping[str, str]]:
    """Results and reasons by variant, as the jobs end."""
    done: dict[str, SimulatedCounts] = {}
    failed: dict[str, str] = {}
    for number, future in enumerate(concurrent.futures.as_completed(futures), start=1):
        job = futures[future]
        progress.step(f"simulated {job.variant} ({number} of {len(futures)})")
        try:
            done[job.variant] = future.result()
        except MoeProfError as error:
            failed[job.variant] = str(error)
    return done, failed


def end_children() -> None:
    """Kill the tools that threads are still waiting for, so that Ctrl-C ends at once."""
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            child.kill()


def _one(
    job: Job,
    scenario: Scenario,
    *,
    machine: Machine,
    cpu: CpuFeatures,
    caches: CacheSizes,
    seed: int,
    timeout_s: float,
    end_s: float | None,
    folder: Path,
) -> SimulatedCounts:
    if end_s is not None:
        timeout_s = min(timeout_s, end_s - time.monotonic())
    if timeout_s <= 0:
        raise UnavailableError(
            "the time limit was reached before its simulation began; --max-time 10m gives it more"
        )
    scenario = scenario_to_simulate(scenario, caches.last.size_bytes)
    with keeping_files(str(folder)):
        folder.mkdir(parents=True, exist_ok=True)
        core = machine.microarchitecture
        return collect_simulated(
            driver.find_driver(job.variant, isa=job.isa or None),
            scenario,
            job.variant,
            caches=caches,
            target=Target(machine.architecture, core.compiler_name if core is not None else None),
            iterations=1,
            timeout_s=timeout_s,
            folder=folder,
            seed=seed,
            is_cold=forgets_its_start(scenario, caches.last.size_bytes),
            tokens_simulated=tokens_to_simulate(scenario, job.variant),
            isa_features=path_features(job.isa, cpu),
        )
