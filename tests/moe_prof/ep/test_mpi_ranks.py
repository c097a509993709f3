"""The command on real MPI ranks: the same bits for every number of ranks, and ranks that fail."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from tests.moe_prof.commands.running import main
from tests.moe_prof.ep.ranks import ROOT, mpirun, needs_mpi

pytestmark = [needs_mpi, pytest.mark.usefixtures("built")]

SMALL = (
    "ep", "512,1024", "--experts", "4", "--top-k", "2", "--tokens", "13", "--threads", "1",
    "--repeat", "1",
)  # fmt: skip


def hashes(ran):
    """Output hashes by (ranks, variant)."""
    ranks = {
        row["scenario"]: int(row["value"])
        for row in ran.document["rows"]
        if row["metric"] == "ranks"
    }
    return {
        (ranks[row["scenario"]], row["variant"]): row["source"]
        for row in ran.document["rows"]
        if row["metric"] == "output_sha256"
    }


def ep(tmp_path, *more):
    """Run the small case."""
    return main(*SMALL, "--format", "json", "--output", tmp_path / "session", *more)


def test_every_number_of_ranks_gives_the_same_bits(tmp_path):
    """P = 1, 2, 4, fused with all its ablations and small ops: one hash, near the oracle."""
    ran = ep(tmp_path, "--ranks", "1,2,4", "--ablate", "--verify")
    assert ran.code == 0, ran.err
    found = hashes(ran)
    assert len(found) == 12
    assert len(set(found.values())) == 1
    errors = [row["value"] for row in ran.document["rows"] if row["metric"] == "rel_rmse"]
    assert len(errors) == 12
    assert max(errors) < 0.02


def test_put_gives_the_same_bits_as_shared_memory(tmp_path):
    """The transport between machines, on one; each rank has a trace."""
    ran = ep(tmp_path, "--ranks", "2", "--transport", "put", "--trace", tmp_path / "traces")
    shared = ep(tmp_path / "other", "--ranks", "2", "--transport", "shared")
    assert (ran.code, shared.code) == (0, 0), ran.err + shared.err
    assert hashes(ran) == hashes(shared)
    names = sorted(path.name.rpartition("-")[2] for path in (tmp_path / "traces").iterdir())
    assert names == ["all.json", "rank0.json", "rank1.json"]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("die@1", "rank 1 of 2 died: Killed (signal 9)"),
        ("exit@1", "rank 1 of 2 ended with exit code 7"),
        ("error@1", "rank 1: an error was injected into call 3"),
    ],
)
def test_a_rank_that_fails_is_named_in_one_line(tmp_path, fault, words):
    """Exit code 6, one line, no traceback, long before any deadline."""
    ran = ep(tmp_path, "--ranks", "2", "--inject", fault, "--deadline", "200")
    assert ran.code == 6
    (line,) = [one for one in ran.complaints if "what was measured" not in one]
    assert words in line


@pytest.mark.parametrize("transport", ["shared", "put"])
def test_a_rank_that_hangs_is_named_after_the_deadline(tmp_path, transport):
    """With what it was doing; the hanging process is ended."""
    ran = ep(
        tmp_path, "--ranks", "2", "--inject", "hang@1", "--deadline", "3", "--transport", transport
    )
    assert ran.code == 6
    (line,) = [one for one in ran.complaints if "what was measured" not in one]
    assert "rank 1" in line
    assert "last: " in line
    assert not ranks_of(tmp_path)


def test_under_mpirun_one_rank_prints(tmp_path):
    """``mpirun -n 2 python -m moe_prof ep`` gives one document."""
    words = [*SMALL, "--format", "json", "--output", tmp_path / "session"]
    ran = mpirun(2, "-m", "moe_prof", *words)
    assert ran.code == 0, ran.err
    rows = json.loads(ran.out)["rows"]
    assert {row["value"] for row in rows if row["metric"] == "ranks"} == {2.0}


def test_under_mpirun_an_error_is_told_once(tmp_path):
    """Whatever rank it is of, one line names it."""
    words = [*SMALL, "--inject", "error@1", "--output", tmp_path / "session"]
    ran = mpirun(2, "-m", "moe_prof", *words)
    assert ran.code == 6, ran.err
    lines = [line for line in ran.err.splitlines() if line.startswith("moe-prof: ")]
    assert lines == ["moe-prof: rank 1: an error was injected into call 3"]


def test_under_mpirun_a_rank_that_died_is_named(tmp_path):
    """By the process that waits for it; exit code 6, whatever mpirun says besides."""
    words = [*SMALL, "--inject", "die@1", "--deadline", "200", "--output", tmp_path / "session"]
    ran = mpirun(2, "-m", "moe_prof", *words)
    assert ran.code == 6, ran.err
    lines = [line for line in ran.err.splitlines() if line.startswith("moe-prof: ")]
    assert lines == ["moe-prof: rank 1 of 2 died: Killed (signal 9); mpirun ends the other ranks"]


def test_no_rank_outlives_a_launcher_that_was_killed(tmp_path):
    """Not even by SIGKILL."""
    words = [*SMALL, "--ranks", "2", "--inject", "hang@1", "--deadline", "200"]
    with subprocess.Popen(
        [sys.executable, "-m", "moe_prof", *words, "--output", str(tmp_path / "session")],
        cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as launcher:  # fmt: skip
        assert _soon(lambda: len(ranks_of(tmp_path)) == 2)
        os.kill(launcher.pid, signal.SIGKILL)
    assert _soon(lambda: not ranks_of(tmp_path))


def ranks_of(folder):
    """Rank processes whose command line names the folder."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        words = process.info["cmdline"] or []
        if words[1:3] == ["-m", "moe_prof.ep.rank"] and str(folder) in words[-1]:
            found.append(process)
    return found


def _soon(condition, limit_s=60.0):
    end_s = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > end_s:
            return False
        time.sleep(0.05)
    return True
