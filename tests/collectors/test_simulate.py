"""The whole simulation, on a stand-in for the native driver whose counts are known."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from moe_prof.collectors import llvm_mca
from moe_prof.collectors.base import Availability
from moe_prof.collectors.cache_geometry import CacheGeometry, CacheSizes
from moe_prof.collectors.hotloop import HotLoop
from moe_prof.collectors.llvm_mca_format import parse as parse_mca
from moe_prof.collectors.scheduling_models import Target
from moe_prof.collectors.simulate import (
    LoopAnalysis,
    SimulatedCounts,
    Workload,
    check_answer,
    collect_simulated,
    loop_demand,
)
from moe_prof.errors import BuildError, ToolError, UsageError
from moe_prof.kernels.build import build
from moe_prof.kernels.driver import Driver
from moe_prof.machine import read
from moe_prof.scenario import Scenario
from tests.collectors.fixture_files import FIXTURES, recorded

LEVEL1 = CacheGeometry(32 << 10, 8, 64)
CACHES = CacheSizes(LEVEL1, LEVEL1, CacheGeometry(1 << 20, 16, 64), "L2")
SCENARIO = Scenario(8, 1000, 1, 1, 1)
ANSWER = {"variant": "scalar", "isa": "portable", "threads": 1, "iterations": 3, "note": ""}
DRIVER = Driver(Path("/b/moe_bench-portable"), "scalar", "portable")
WORKLOAD = Workload(DRIVER, SCENARIO, 3, 8)


@pytest.fixture(scope="module")
def driver(tmp_path_factory) -> Path:
    """The stand-in, compiled; it skips with its reason where that cannot be done."""
    for tool in ("valgrind", "objdump", "gcc"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    program = tmp_path_factory.mktemp("driver") / "roi"
    source = FIXTURES / "callgrind/roi.c"
    made = subprocess.run(
        ["gcc", "-O2", "-fno-tree-vectorize", "-g", "-o", str(program), str(source)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if made.returncode:
        pytest.skip(f"the stand-in does not compile: {made.stderr.strip().splitlines()[0]}")
    return program


def simulated(driver: Path, folder: Path, variant: str = "dot", **changes) -> SimulatedCounts:
    """Simulate the stand-in on this machine's architecture, by haswell's model on x86."""
    architecture = read().architecture
    options = {
        "caches": CACHES, "target": Target(architecture, "haswell"), "iterations": 2,
        "timeout_s": 60.0, "folder": folder, **changes,
    }  # fmt: skip
    return collect_simulated(Driver(driver, variant, "portable"), SCENARIO, variant, **options)


@pytest.fixture(scope="module")
def found(driver, tmp_path_factory) -> SimulatedCounts:
    """The stand-in simulated once for the tests that only look."""
    return simulated(driver, tmp_path_factory.mktemp("found"))


def test_loads_are_exact(found):
    """Two per product, 8 tokens of length 1000, and a few around them."""
    assert found.counts.loads == pytest.approx(2 * 8 * 1000, rel=0.01)


def test_preparation_and_warmup_are_not_counted(driver, tmp_path, found):
    """Twice the iterations, the same counts per forward."""
    more = simulated(driver, tmp_path, iterations=4)
    assert more.counts.instructions == pytest.approx(found.counts.instructions, rel=0.001)


def test_the_warm_up_filled_the_caches(found):
    """2 kB of operands are in the first level before the region begins."""
    assert found.counts.l1d_misses == 0


def test_fewer_tokens_are_scaled_and_said(driver, tmp_path, found):
    """Two of eight tokens give the same counts, and the source names the factor."""
    part = simulated(driver, tmp_path, tokens_simulated=2)
    assert part.counts.instructions == pytest.approx(found.counts.instructions, rel=0.01)
    assert "simulated 2 of 8 tokens, scaled by 4" in part.source


def test_the_source_names_the_simulated_caches(found):
    """What LL stood for, and its geometry."""
    assert "L2 1048576 B, 16-way, 64 B lines" in found.source


def test_the_hot_loop_is_the_dot_product(found):
    """By its function and its iterations per forward."""
    (analysis,) = found.loops
    assert (analysis.loop.function, analysis.iterations) == ("dot", 8000)


def test_the_profile_is_kept(found):
    """The raw output is on disk, with the exact command."""
    assert found.run.outputs["profile"].read_text().startswith("# callgrind format")
    assert "--D1=32768,8,64" in found.run.argv


@pytest.mark.skipif(read().architecture != "x86_64", reason="haswell's model is for x86_64")
def test_the_hot_loop_has_its_bounds(found):
    """Multiplication, additions and loads: at least a cycle, at most a handful."""
    if isinstance(llvm_mca.find_mca(), Availability):
        pytest.skip("llvm-mca is not installed")
    assert 8000 <= found.demand.port_cycles <= 8 * 8000


def test_without_llvm_mca_counts_and_loops_remain(driver, tmp_path, monkeypatch):
    """The missing part is None, and its tool says why."""
    monkeypatch.setattr(llvm_mca, "BINARIES", ())
    found = simulated(driver, tmp_path)
    assert (found.counts is None, len(found.loops), found.demand) == (False, 1, None)
    assert found.tool("llvm_mca").reason == "llvm-mca is not installed"


def test_loops_can_be_left_out(driver, tmp_path):
    """The second run, for the other cache level, needs none."""
    assert simulated(driver, tmp_path, with_loops=False).loops == ()


def test_a_crash_is_a_reason(driver, tmp_path):
    """No counts, and the signal in callgrind's reason."""
    found = simulated(driver, tmp_path, variant="crash")
    assert (found.counts, "SIGSEGV" in found.tool("callgrind").reason) == (None, True)


def test_a_hang_is_a_reason(driver, tmp_path):
    """The run is ended in time."""
    found = simulated(driver, tmp_path, variant="hang", timeout_s=3.0)
    assert "did not end within 3 s" in found.tool("callgrind").reason


def test_another_variant_that_ran_is_a_reason(driver, tmp_path):
    """Counts of something else are never used."""
    found = simulated(driver, tmp_path, variant="other")
    assert (found.counts, found.tool("callgrind").usable) == (None, False)
    assert "ran variant dot instead of other" in found.tool("callgrind").reason


def test_a_path_beyond_valgrind_is_not_started(tmp_path):
    """Even the driver need not exist."""
    found = simulated(Path("/none"), tmp_path, isa_features=["avx512f"])
    assert (found.run, found.counts) == (None, None)


def test_a_missing_valgrind_is_a_reason(tmp_path, monkeypatch):
    """With the remedy beside it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    found = simulated(Path("/none"), tmp_path)
    tool = found.tool("callgrind")
    assert (tool.usable, tool.remedy) == (False, "apt install valgrind")


@pytest.mark.parametrize(
    "changes", [{"iterations": 0}, {"tokens_simulated": 0}, {"tokens_simulated": 9}]
)
def test_impossible_requests_are_usage_errors(changes, tmp_path):
    """More tokens than there are, or none, or no iteration."""
    with pytest.raises(UsageError, match=r"1\.\.8 tokens"):
        simulated(Path("/none"), tmp_path, **changes)


def test_the_drivers_command_line():
    """The seed's sizes, one thread, no baseline, the answer as JSON."""
    assert WORKLOAD.argv == (
        "/b/moe_bench-portable", "8", "1000", "1", "1", "1", "3", "--benchmark", "--json",
        "--variant", "scalar", "--threads", "1", "--seed", "0", "--warmup", "1",
    )  # fmt: skip


def test_a_library_is_named_to_the_driver():
    """Its first variant has no name; no forward is simulated before a large one."""
    driver = Driver(Path("/b/moe_bench-portable"), "", "", Path("/mine.so"))
    argv = replace(WORKLOAD, driver=driver, is_cold=True).argv
    assert argv[8:] == (
        "--json", "--library", "/mine.so", "--threads", "1", "--seed", "0", "--warmup", "1",
        "--uncounted-warmup",
    )  # fmt: skip


def test_a_librarys_own_words_are_not_asked_for():
    """It may name its variant and its path as it likes; its threads must be the one that counts."""
    driver = Driver(Path("/b/moe_bench-portable"), "", "", Path("/mine.so"))
    workload = replace(WORKLOAD, driver=driver)
    check_answer(json.dumps({**ANSWER, "variant": "mine", "isa": "native"}), workload)
    with pytest.raises(ToolError, match=r"/mine\.so ran threads 2 instead of 1"):
        check_answer(json.dumps({**ANSWER, "threads": 2}), workload)


def test_a_matching_answer_passes():
    """The driver ran what it was told to."""
    check_answer(json.dumps(ANSWER), WORKLOAD)


@pytest.mark.parametrize(
    ("key", "value"), [("variant", "openmp"), ("isa", "avx2"), ("threads", 2), ("iterations", 6)]
)
def test_any_difference_is_refused(key, value):
    """Another variant, path, number of threads or of forwards."""
    with pytest.raises(ToolError, match=f"ran {key} {value} instead of"):
        check_answer(json.dumps({**ANSWER, key: value}), WORKLOAD)


@pytest.mark.parametrize("stdout", ["", "Optimized time: 1 s\n", "[]", '{"variant": "scalar"}'])
def test_an_answer_without_proof_is_refused(stdout):
    """Nothing is taken on trust."""
    with pytest.raises(ToolError):
        check_answer(stdout, WORKLOAD)


def analysis(iterations: float, block: float, steady: float, *, chain: bool) -> LoopAnalysis:
    """A loop that runs so often, with bounds from a recorded report."""
    bottleneck = parse_mca(recorded("llvm_mca/dot-14.txt")).bottleneck
    report = parse_mca(recorded("llvm_mca/dot-14.json"))
    report = replace(report, block_rthroughput=block, bottleneck=bottleneck if chain else None)
    bounds = llvm_mca.interpret(report, cpu="icelake-server", steady_cycles=steady)
    loop = HotLoop("f", "/o", 0, 9, True, (), 1, 0.4, ())
    return LoopAnalysis(loop, iterations, bounds, "")


def test_demands_are_weighted_by_iterations():
    """One loop bound by its ports, one by its chain."""
    demand = loop_demand([analysis(10, 2.0, 2.0, chain=False), analysis(100, 2.0, 5.0, chain=True)])
    assert demand is not None
    assert (demand.port_cycles, demand.dependency_cycles, demand.simulated_cycles) == (
        10 * 2 + 100 * 2,
        10 * 2 + 100 * 5,
        10 * 2 + 100 * 5,
    )


def test_an_outer_loop_has_no_chain():
    """Its inner loops run between two iterations: only its ports are a bound."""
    found = analysis(100, 2.0, 5.0, chain=True)
    demand = loop_demand([replace(found, loop=replace(found.loop, innermost=False))])
    assert demand is not None
    assert (demand.dependency_cycles, demand.simulated_cycles) == (200, 200)


def test_coverage_is_of_the_modelled_loops():
    """A loop without bounds does not count."""
    unknown = replace(analysis(10, 2.0, 2.0, chain=False), throughput=None, reason="AMX")
    demand = loop_demand([analysis(10, 2.0, 2.0, chain=False), unknown])
    assert demand is not None
    assert demand.coverage == 0.4


def test_uops_and_slots_are_weighted_by_instructions():
    """One loop: seven micro-operations, six slots, seven instructions."""
    demand = loop_demand([analysis(10, 2.0, 2.0, chain=False)])
    assert demand is not None
    assert (demand.uops_per_instruction, demand.slots_per_instruction) == (1.0, 6 / 7)


def test_no_bounds_no_demand():
    """None, not zero cycles."""
    assert loop_demand([]) is None


@pytest.mark.slow
def test_the_native_driver_marks_its_region(tmp_path):
    """moe_bench's scalar path: one load pair a MAC; what the region costs once is below 0.1 %."""
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")
    try:
        driver = build().driver("portable")
    except BuildError as error:
        pytest.skip(f"the kernels do not build: {error}")
    scenario = Scenario(4, 256, 128, 8, 2)
    macs = 4 * (8 * 256 + 3 * 3 * 256 * 128)
    found = [
        collect_simulated(
            Driver(driver, "scalar", "portable"), scenario, "scalar", caches=CACHES, iterations=n,
            target=Target(read().architecture, None), timeout_s=120.0, folder=tmp_path / str(n),
        )
        for n in (1, 2)
    ]  # fmt: skip
    if found[0].counts is None and "marks no region" in found[0].tool("callgrind").reason:
        pytest.skip(found[0].tool("callgrind").reason)
    assert 2 * macs <= found[0].counts.loads <= 2.5 * macs
    assert found[1].counts.instructions == pytest.approx(found[0].counts.instructions, rel=1e-3)
