"""The callgrind collector: command, how runs fail, counts per forward and rows."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from moe_prof.collectors import callgrind
from moe_prof.collectors.base import ToolRun
from moe_prof.collectors.cache_geometry import CacheGeometry, CacheSizes, simulated_caches
from moe_prof.collectors.callgrind import Counts
from moe_prof.collectors.callgrind_format import CallgrindProfile, parse
from moe_prof.errors import InputError, ToolError, UnavailableError, WorkloadError
from tests.collectors.fixture_files import FIXTURES, recorded

LEVEL1 = CacheGeometry(32 << 10, 8, 64)
CACHES = simulated_caches(CacheSizes(LEVEL1, LEVEL1, CacheGeometry(480 << 20, 16, 64), "L3"))
FINISHED = ToolRun(
    argv=("valgrind", "--tool=callgrind", "./moe_bench-avx2", "1"),
    returncode=0,
    stdout="",
    stderr="==1== Collected : 5\n",
    elapsed_s=1.0,
    outputs={"profile": FIXTURES / "callgrind/roi.out"},
)
VALGRIND_SIGILL = (
    "vex amd64->IR: unhandled instruction bytes: 0x62 0xF1 0x7F 0x8\n"
    "==9== Process terminating with default action of signal 4 (SIGILL)\n"
)


@pytest.fixture
def profile() -> CallgrindProfile:
    """A recorded profile of 10 forwards."""
    return parse(recorded("callgrind/roi.out"))


def test_the_command_names_the_simulated_caches():
    """All three caches are passed: valgrind would guess wrongly on virtual machines."""
    command = callgrind.argv(["./w", "1"], caches=CACHES, out_file=Path("/o/callgrind.out"))
    assert command == (
        "valgrind", "--tool=callgrind", "--instr-atstart=no", "--collect-atstart=no",
        "--cache-sim=yes", "--branch-sim=yes", "--dump-instr=yes", "--I1=32768,8,64",
        "--D1=32768,8,64", "--LL=503316480,15,64", "--callgrind-out-file=/o/callgrind.out",
        "./w", "1",
    )  # fmt: skip


def test_a_percent_sign_in_the_folder_is_escaped():
    """valgrind expands %p and refuses other letters."""
    command = callgrind.argv(["./w"], caches=CACHES, out_file=Path("/50%/callgrind.out"))
    assert "--callgrind-out-file=/50%%/callgrind.out" in command


@pytest.mark.parametrize("feature", ["avx512f", "avx512_vnni", "avx_vnni", "amx_int8"])
def test_a_path_that_valgrind_cannot_run_is_refused_before(feature):
    """The error names the path and the feature."""
    with pytest.raises(UnavailableError, match=f"the vnni path, it has no {feature}"):
        callgrind.check_isa("vnni", ["avx2", feature])


def test_avx2_is_accepted():
    """What valgrind runs is not refused."""
    callgrind.check_isa("avx2", ["avx2", "fma", "f16c", "bmi2"])


def test_without_valgrind_the_remedy_is_named(monkeypatch, tmp_path):
    """Missing is a state with a reason, not an error."""
    monkeypatch.setenv("PATH", str(tmp_path))
    here = callgrind.availability()
    assert (here.usable, here.remedy) == (False, "apt install valgrind")


def test_running_without_valgrind_is_unavailable(monkeypatch, tmp_path):
    """The same reason, when it is run all the same."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnavailableError, match="apt install valgrind"):
        callgrind.run(["true"], caches=CACHES, folder=tmp_path, timeout_s=10)


def test_a_valgrind_that_fails_is_not_usable(monkeypatch, tmp_path):
    """Its own words are the reason."""
    fake = tmp_path / "valgrind"
    fake.write_text("#!/bin/sh\necho 'valgrind: failed to start tool' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert callgrind.availability().reason == (
        "valgrind does not start: valgrind: failed to start tool"
    )


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
def test_an_unwritable_folder_is_one_clear_error(tmp_path):
    """The folder is named."""
    blocker = tmp_path / "file"
    blocker.write_text("")
    with pytest.raises(ToolError, match="file/sub"):
        callgrind.run(["true"], caches=CACHES, folder=blocker / "sub", timeout_s=10)


def test_a_good_run_passes():
    """Status 0 and a profile."""
    callgrind.check_run(FINISHED)


@pytest.mark.parametrize("stderr", [VALGRIND_SIGILL, "moe_bench: this CPU lacks avx512f\n"])
def test_an_unknown_instruction_is_unavailable(stderr):
    """Whether the program asked the CPU first or not."""
    run = replace(FINISHED, stderr=stderr, returncode=-4, outputs={})
    with pytest.raises(UnavailableError, match="moe_bench-avx2 needs instructions"):
        callgrind.check_run(run)


def test_a_handled_sigill_is_no_failure():
    """A program that probes the CPU by trying goes on, and its counts are good."""
    callgrind.check_run(replace(FINISHED, stderr=VALGRIND_SIGILL.splitlines()[0]))


def test_a_crash_is_the_workloads():
    """The signal is named."""
    stderr = "==9== Process terminating with default action of signal 11 (SIGSEGV)\n"
    with pytest.raises(WorkloadError, match="ended by SIGSEGV"):
        callgrind.check_run(replace(FINISHED, stderr=stderr, returncode=-11))


def test_a_failing_workload_is_quoted():
    """The last line that is not valgrind's."""
    stderr = "moe_bench: K = 9 is larger than E = 4\n==9== Collected : 0\n"
    with pytest.raises(WorkloadError, match="ended with 2 under callgrind: moe_bench: K = 9"):
        callgrind.check_run(replace(FINISHED, stderr=stderr, returncode=2))


def test_a_missing_profile_is_valgrinds_failure():
    """Status 0, but nothing was written."""
    with pytest.raises(ToolError, match="wrote no profile"):
        callgrind.check_run(replace(FINISHED, outputs={}))


def test_a_profile_without_region_is_unavailable(tmp_path):
    """A driver that was built without the client requests counts nothing."""
    empty = tmp_path / "callgrind.out"
    empty.write_text("positions: instr line\nevents: Ir\nsummary: 0\n\ntotals: 0\n")
    with pytest.raises(UnavailableError, match=r"marks no region.*valgrind/callgrind\.h"):
        callgrind.load_profile(replace(FINISHED, outputs={"profile": empty}))


def test_a_cut_off_profile_is_refused(tmp_path):
    """Counts of half a file are never used."""
    short = tmp_path / "callgrind.out"
    short.write_text("\n".join(recorded("callgrind/roi.out").splitlines()[:-1]) + "\n")
    run = replace(FINISHED, outputs={"profile": short})
    with pytest.raises((InputError, UnavailableError)):
        callgrind.load_profile(run)


def test_counts_are_per_forward(profile):
    """10 forwards in the region; mispredictions of 71 in all."""
    assert callgrind.counts(profile, forwards=10) == Counts(
        instructions=28074.6, loads=8005.2, stores=4.1, branches=4010.1,
        branch_mispredictions=7.1, l1d_misses=0.0, l1i_misses=0.2, ll_misses=0.2,
    )  # fmt: skip


def test_counts_are_scaled_from_fewer_tokens(profile):
    """A forward of 8 times the tokens has 8 times the instructions."""
    assert callgrind.counts(profile, forwards=10, scale=8).instructions == 8 * 28074.6


def test_what_was_not_simulated_is_none(profile):
    """Without cache and branch simulation only instructions are known."""
    plain = parse("events: Ir\nfl=a\nfn=f\n1 90\ntotals: 90\n")
    assert callgrind.counts(plain, forwards=9) == Counts(10, *[None] * 7)


@pytest.mark.parametrize(("forwards", "scale"), [(0, 1.0), (-1, 1.0), (1, 0.0), (1, float("nan"))])
def test_counts_of_no_forward_are_an_error(profile, forwards, scale):
    """No division by zero, no counts of nothing."""
    with pytest.raises(InputError, match="must be positive"):
        callgrind.counts(profile, forwards=forwards, scale=scale)


def test_rows_are_simulated_with_their_source(profile):
    """Every count is one row."""
    found = callgrind.rows(
        callgrind.counts(profile, forwards=10), scenario="S3", variant="scalar", source="L2 of ..."
    )
    assert {(r.metric, r.value, r.provenance, r.source) for r in found} >= {
        ("instructions", 28074.6, "simulated", "L2 of ..."),
        ("l1i_misses", 0.2, "simulated", "L2 of ..."),
    }


def test_a_missing_count_is_a_row_with_its_reason():
    """None stays None."""
    counts = Counts(10, *[None] * 7)
    found = {r.metric: r for r in callgrind.rows(counts, scenario="", variant="", source="x")}
    row = found["ll_misses"]
    assert (row.value, row.provenance, row.source) == (
        None,
        "unavailable",
        "callgrind ran without this simulation",
    )
