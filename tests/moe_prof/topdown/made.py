"""Hand-made inputs of the topdown command's parts: figures small enough to divide in the head."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from moe_prof.collectors.base import Availability
from moe_prof.collectors.cache_geometry import CacheGeometry, CacheSizes, SimulatedCaches
from moe_prof.collectors.callgrind import Counts
from moe_prof.collectors.simulate import LoopDemand, SimulatedCounts
from moe_prof.model.interval import Bandwidth, Core
from moe_prof.rows import Row
from moe_prof.scenario import Scenario
from moe_prof.topdown.modelled import Platform, Subject

SCENARIO = Scenario(4, 32, 32, 4, 2)
LEVEL1 = CacheGeometry(32 << 10, 8, 64)
CACHES = SimulatedCaches(CacheSizes(LEVEL1, LEVEL1, CacheGeometry(1 << 20, 16, 64), "L2"), ())
CORE = Core("testlake", width=4, mispredict_penalty_cycles=20, l2_latency_cycles=14, source="here")
COUNTS = Counts(
    instructions=2000.0, loads=500.0, stores=100.0, branches=200.0, branch_mispredictions=5.0,
    l1d_misses=10.0, l1i_misses=1.0, ll_misses=0.0,
)  # fmt: skip
# 2000 instructions in 1000 cycles of a core 4 wide: half of the slots
SUBJECT = Subject(
    scenario="4,32,32,4,2", variant="scalar", isa="portable", threads=1, time_s=1e-6, cpu_s=None,
    waiting=None, busy_s=None, macs=1000,
)  # fmt: skip
PLATFORM = Platform(CORE, clock_hz=1e9, bandwidth=Bandwidth(64e9, 32e9, 8e9), l3_misses=0.0)
CALLGRIND = Availability("callgrind", True, "simulated counts", version="3.19.0")


def simulated(**changes: object) -> SimulatedCounts:
    """Counts of one forward, without a throughput model of its loops."""
    made = SimulatedCounts(
        scenario=SCENARIO, variant="scalar", isa="portable", counts=COUNTS,
        source="callgrind 3.19.0, 1 thread", scale=1.0, caches=CACHES, loops=(), demand=None,
        tools=(CALLGRIND,), notes=(), run=None,
    )  # fmt: skip
    return replace(made, **changes)  # type: ignore[arg-type]


def demand(**changes: float) -> LoopDemand:
    """Loops whose ports need 900 of the 1000 cycles, all instructions covered."""
    made = LoopDemand(
        port_cycles=900.0, dependency_cycles=900.0, simulated_cycles=900.0, coverage=1.0,
        uops_per_instruction=1.0, slots_per_instruction=1.0, cpu="testlake",
    )  # fmt: skip
    return replace(made, **changes)  # type: ignore[arg-type]


def row(metric: str, value: float | None, variant: str = "scalar", **more: object) -> Row:
    """A summary row of a variant."""
    labels = {"collector": "test", "unit": "1", "variant": variant, **more}
    return Row(metric=metric, value=value, **labels)  # type: ignore[arg-type]


def executable(path: Path, script: str) -> Path:
    """A shell script that can be run."""
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path
