"""The pyperf file, read by pyperf's own commands."""

import json
import subprocess
import sys

import pyperf
import pytest

from moe_prof.measure import Measurement, VariantTiming
from moe_prof.measure.pyperf_suite import write_suite
from moe_prof.scenario import SCENARIOS

SAMPLES = {(0, 0): 1.0e-3, (0, 1): 1.1e-3, (1, 0): 1.2e-3, (1, 1): 1.3e-3}


def measurement_of(scale=1.0, **changes):
    """One variant timed in two processes, and a wrong one."""
    values = {
        "variant": "packed", "status": "ok", "isa": "avx2", "threads": 2, "loops": 16,
        "samples_s": {key: value * scale for key, value in SAMPLES.items()},
        "warmups_s": {0: ((1, 2e-3), (16, 1e-3)), 1: ((16, 1e-3),)},
    } | changes  # fmt: skip
    wrong = VariantTiming(variant="openmp", status="wrong", samples_s={(0, 0): 1e-9})
    return Measurement(
        timings=(VariantTiming(**values), wrong), processes=2, interrupted=False,
        checked_tokens=128, notes=(), elapsed_s=1.0,
    )  # fmt: skip


def written(folder, **changes):
    """Path of the suite of :func:`measurement_of`."""
    folder.mkdir(exist_ok=True)
    return write_suite(measurement_of(**changes), SCENARIOS["S3"], folder)


def pyperf_says(*arguments):
    """Output of ``python -m pyperf``."""
    command = [sys.executable, "-m", "pyperf", *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_values_are_kept(tmp_path):
    """One run a process with its values, warm-ups and loops."""
    (benchmark,) = pyperf.BenchmarkSuite.load(str(written(tmp_path))).get_benchmarks()
    assert benchmark.get_values() == tuple(SAMPLES.values())
    assert benchmark.get_nrun() == 2
    assert benchmark.get_loops() == 16
    assert benchmark.get_runs()[0].warmups == ((1, 2e-3), (16, 1e-3))


def test_wrong_variants_are_left_out(tmp_path):
    """Only trusted timings have a benchmark."""
    assert pyperf.BenchmarkSuite.load(str(written(tmp_path))).get_benchmark_names() == ["S3 packed"]


def test_nothing_trusted_gives_no_file(tmp_path):
    """An empty suite is not written."""
    assert written(tmp_path, status="crashed") is None
    assert list(tmp_path.iterdir()) == []


def test_metadata_names_the_variant(tmp_path):
    """ISA, threads and shape are in the file."""
    data = json.loads(written(tmp_path).read_text())
    assert data["metadata"]["moe_isa"] == "avx2"
    assert data["metadata"]["moe_scenario"] == "128,256,128,16,4"


@pytest.mark.parametrize("command", ["show", "stats", "check"])
def test_pyperf_reads_the_file(tmp_path, command):
    """pyperf's commands accept it."""
    assert pyperf_says(command, written(tmp_path)) != ""


def test_pyperf_compares_two_files(tmp_path):
    """compare_to finds the factor of two."""
    old, new = written(tmp_path / "old"), written(tmp_path / "new", scale=0.5)
    assert "2.00x faster" in pyperf_says("compare_to", old, new)
