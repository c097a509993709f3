"""Which path is simulated, on how many tokens, and what is said where nothing is."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from moe_prof.errors import ToolError
from moe_prof.kernels import selection
from moe_prof.kernels.driver import Driver
from moe_prof.kernels.features import BY_NAME as PATHS
from moe_prof.kernels.features import CpuFeatures
from moe_prof.machine import read
from moe_prof.machine.cpu import Cache
from moe_prof.progress import SILENT
from moe_prof.scenario import Scenario, parse
from moe_prof.topdown import simulation
from tests.moe_prof.topdown.made import SCENARIO, simulated

AVX2 = CpuFeatures("x86_64", "test", frozenset({"sse2", *PATHS["avx2"].features}))
AVX512 = replace(AVX2, flags=AVX2.flags | {"avx512f", "avx512_vnni", "amx_int8"})
OLD = CpuFeatures("x86_64", "test", frozenset({"sse2"}))
SVE = CpuFeatures("aarch64", "test", frozenset({"asimd", "sve"}))
CACHES = tuple(
    Cache(level=level, type=kind, size_bytes=size, ways=8, line_bytes=64, shared_cpus=(0,))
    for level, kind, size in (
        (1, "Data", 32 << 10), (1, "Instruction", 32 << 10), (2, "Unified", 1 << 20),
    )
)  # fmt: skip


@pytest.fixture
def on_cpu(monkeypatch):
    """Pretend that this machine has another CPU."""

    def pretend(cpu):
        monkeypatch.setattr(selection, "read_cpu", lambda: cpu)
        return cpu

    return pretend


@pytest.mark.parametrize(
    ("cpu", "variant", "path"),
    [
        (AVX2, "openmp", "native"),
        (AVX512, "openmp", "avx2"),
        (AVX512, "packed", "avx2"),
        (AVX512, "scalar", "portable"),
        (OLD, "openmp", "native"),
        (OLD, "packed", None),
        (SVE, "openmp", "portable"),
    ],
)
def test_the_best_path_that_valgrind_can_run(on_cpu, cpu, variant, path):
    """The native one without AVX-512 or SVE, else the next best, None where there is none."""
    assert simulation.simulable_isa(variant, on_cpu(cpu)) == path


def test_only_what_the_driver_runs_is_simulated():
    """Not numba's variants; a user's library has no path to choose."""
    assert simulation.simulable_isa("numba-parallel", AVX2) is None
    assert simulation.simulable_isa("./mine.so", AVX2) == ""


@pytest.mark.parametrize(
    ("variant", "words"),
    [
        ("numba-matricized", "numba compiles"),
        ("packed", "every path of packed"),
    ],
)
def test_why_not(variant, words):
    """Each kind of variant has its own reason."""
    assert words in simulation.why_not_simulable(variant)


def test_a_paths_features():
    """What its compiler flags allow; everything for ``native``."""
    assert simulation.path_features("avx2", AVX512) == PATHS["avx2"].features
    assert simulation.path_features("native", AVX512) == tuple(sorted(AVX512.flags))
    assert simulation.path_features("", AVX512) == ()  # a library's code is not known


@pytest.mark.parametrize(
    ("shape", "variant", "tokens"),
    [
        ((1024, 512, 128, 512, 2), "scalar", 9),  # 8e6 / 852k products a token, rounded
        ((128, 256, 128, 16, 4), "scalar", 16),
        ((128, 256, 128, 16, 4), "matricized", 128),  # grouping is not proportional to tokens
        ((128, 32, 32, 4, 2), "scalar", 128),  # all are fewer than wanted
        ((64, 2048, 1024, 16, 4), "scalar", 4),  # never fewer than four
        ((3, 2048, 1024, 16, 4), "scalar", 3),
        ((128, 256, 128, 16, 4), "./mine.so", 128),
        ((0, 32, 32, 4, 2), "scalar", 0),
    ],
)
def test_tokens_to_simulate(shape, variant, tokens):
    """Enough work for the loops to dominate, scaled only where that is exact."""
    assert simulation.tokens_to_simulate(Scenario(*shape), variant) == tokens


@pytest.mark.parametrize(
    ("scenario", "distinct"),
    [
        (Scenario(1024, 512, 128, 512, 2), 0),  # 100 MB are prepared as they are
        (parse("qwen3-30b-a3b"), 16),  # 4.7 MB an expert, 8 MB and twice K wanted
        (parse("mixtral-8x7b"), 2),  # one expert is 176 MB
        (replace(parse("mixtral-8x7b"), distinct_experts=1), 1),
        (Scenario(8, 1024, 256, 512, 4), 16),  # 11 fill 8 MiB
    ],
    ids=str,
)
def test_experts_share_memory_where_preparing_would_take_minutes(scenario, distinct):
    """As few as still leave a cache of 1 MiB; never more than the run itself has."""
    found = simulation.scenario_to_simulate(scenario, 1 << 20)
    assert found.distinct_experts == distinct
    assert replace(found, distinct_experts=scenario.distinct_experts) == scenario


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Simulate jobs with a stand-in for callgrind; gives (done, failed, calls)."""
    calls = []
    monkeypatch.setattr(
        simulation.driver, "find_driver", lambda name, isa: Driver(tmp_path, name, isa)
    )

    def go(jobs, *, scenario=SCENARIO, caches=CACHES, end_s=None, effect=None):
        def collected(program, scenario, variant, **options):
            calls.append({"variant": variant, "isa": program.isa, **options})
            if effect is not None:
                effect()
            return simulated(variant=variant, isa=program.isa)

        monkeypatch.setattr(simulation, "collect_simulated", collected)
        done, failed = simulation.simulate(
            [simulation.Job(*job) for job in jobs], scenario,
            machine=replace(read(), caches=caches), cpu=AVX512, seed=5, timeout_s=60.0,
            end_s=end_s, folder=tmp_path, progress=SILENT,
        )  # fmt: skip
        return done, failed, calls

    return go


def test_every_job_is_simulated_with_the_runs_seed(run):
    """Results by variant, on the path asked for."""
    done, failed, calls = run([("scalar", "portable"), ("openmp", "avx2")])
    assert ({name: found.isa for name, found in done.items()}, failed) == (
        {"scalar": "portable", "openmp": "avx2"}, {},
    )  # fmt: skip
    assert {call["seed"] for call in calls} == {5}


def test_each_job_has_its_own_folder(run, tmp_path):
    """Raw outputs do not overwrite each other."""
    _, _, calls = run([("scalar", "portable"), ("openmp", "avx2")])
    assert {call["folder"] for call in calls} == {tmp_path / "scalar", tmp_path / "openmp"}


def test_folder_of_a_library_lies_in_the_session(run, tmp_path):
    """Its name may be a path from the root, which would leave the session."""
    _, _, calls = run([("/home/me/mine.so", "")])
    assert calls[0]["folder"] == tmp_path / "home_me_mine.so"


def test_large_forwards_need_no_simulated_warm_up(run):
    """One that reads eight times the last cache leaves nothing in it for the next one."""
    _, _, calls = run([("scalar", "portable")])
    _, _, calls = run([("scalar", "portable")], scenario=parse("qwen3-30b-a3b"))
    assert [call["is_cold"] for call in calls] == [False, True]


def test_a_failure_costs_one_variant(run):
    """The error's words are the reason; no exception leaves."""

    def fail():
        raise ToolError("valgrind fell over")

    done, failed, _ = run([("scalar", "portable")], effect=fail)
    assert (done, failed) == ({}, {"scalar": "valgrind fell over"})


def test_unknown_caches_are_a_reason_for_all(run):
    """Nothing is started where the cache sizes cannot be told."""
    done, failed, calls = run([("scalar", "portable"), ("openmp", "avx2")], caches=())
    assert (done, calls, set(failed)) == ({}, [], {"scalar", "openmp"})
    assert "cache" in failed["scalar"]


def test_no_tokens_are_a_reason(run):
    """An empty forward has no counts."""
    _, failed, calls = run([("scalar", "portable")], scenario=Scenario(0, 32, 32, 4, 2))
    assert (failed, calls) == ({"scalar": "there are no tokens, so nothing to simulate"}, [])


def test_the_time_limit_is_for_all_jobs(run):
    """A job gets what is left, not a limit of its own."""
    _, _, calls = run([("scalar", "portable")], end_s=time.monotonic() + 10)
    assert 0 < calls[0]["timeout_s"] <= 10


def test_no_job_starts_when_the_time_is_up(run):
    """Its reason says so."""
    _, failed, calls = run([("scalar", "portable")], end_s=time.monotonic() - 1)
    assert (calls, set(failed)) == ([], {"scalar"})
    assert failed["scalar"].startswith("the time limit was reached before its simulation began; ")
