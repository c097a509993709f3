"""Requests that cannot be met: one clear line on stderr, nothing on stdout, the right exit code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from moe_prof.commands import workload
from moe_prof.kernels.features import CpuFeatures
from tests.moe_prof.commands.running import main

COMMANDS = ("topdown", "counters", "bench")
SHAPE = "4,32,32,4,2"
LONG_NAME = "a" * 300


@pytest.fixture(params=COMMANDS)
def refused(request, monkeypatch, tmp_path):
    """Run a measuring command that must refuse; gives its exit code and its only line."""
    monkeypatch.setenv("MOE_PROF_SESSIONS", str(tmp_path / "sessions"))
    monkeypatch.delenv("MOE_PROF_ISA", raising=False)

    def go(*argv):
        ran = main(request.param, *argv)
        assert ran.out == ""
        (line,) = ran.err.splitlines()
        assert line.startswith("moe-prof: ")
        return ran.code, line

    return go


def test_the_environments_path_is_checked_as_the_options(refused, monkeypatch):
    """A wrong MOE_PROF_ISA is refused before anything is measured."""
    monkeypatch.setenv("MOE_PROF_ISA", "mmx")
    code, line = refused(SHAPE)
    assert code == 2
    assert "unknown ISA path 'mmx'; known paths: native" in line


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("S9",), "unknown scenario 'S9'; use one of S1, S2, S3, S4"),
        (("4,32,32,4",), "has 4 sizes; five are needed: N,D,H,E,K"),
        (("4,32,x,4,2",), "every size must be a whole number"),
        ((), "required: SCENARIO"),
        (("4,32,32,4,5",), "K = 5 is larger than E = 4"),
        (("4,0,32,4,2",), "D (d_model) = 0 is not in 1.."),
        (("4,32,0,4,2",), "H (d_ff) = 0 is not in 1.."),
        (("4,32,32,0,0",), "E (num_experts) = 0 is not in 1.."),
        (("4,32,32,4,0",), "K (top_k) = 0 is not in 1.."),
        (("0,32,32,4,2",), "scenario 0,32,32,4,2: N (num_tokens) = 0 leaves nothing to measure"),
        (("-4,32,32,4,2",), "N (num_tokens) = -4 is not in 0.."),
        (("4,-32,32,4,2",), "D (d_model) = -32 is not in 1.."),
        (("99999999999999999999,32,32,4,2",), "is not in 0.."),
        (("٤,32,32,4,2",), "every size must be a whole number, got '٤'"),
        (("1_0,32,32,4,2",), "every size must be a whole number, got '1_0'"),
        (("4,32,32,4,2\n",), "every size must be a whole number"),
        (
            ("9" * 5000 + ",32,32,4,2",),
            "every size must be a whole number, got '99999999999999999999'",
        ),
        (("1,132105,32,4,2",), "D (d_model) = 132105 is larger than 132104"),
        (("1,32,132105,4,2",), "H (d_ff) = 132105 is larger than 132104"),
        ((SHAPE, "--variant", "turbo"), "unknown variant 'turbo'; known variants: scalar"),
        ((SHAPE, "--variant", ","), "names no variant"),
        ((SHAPE, "--variant", "./none.so"), "variant './none.so': there is no library none.so"),
        ((SHAPE, "--variant", "./none.so:mine"), "there is no library none.so"),
        ((SHAPE, "--variant", __file__ + "/x.so"), "there is no library"),
        ((SHAPE, "--variant", __file__), "is not an ELF file; a shared library"),
        ((SHAPE, "--isa", ""), "unknown ISA path ''; known paths: native"),
        ((SHAPE, "--isa", "mmx"), "unknown ISA path 'mmx'; known paths: native"),
        ((SHAPE, "--isa", "mmx", "--variant", "scalar"), "unknown ISA path 'mmx'"),
        ((SHAPE, "--threads", "0"), "--threads: '0' is not a whole number of at least 1"),
        ((SHAPE, "--threads", "-1"), "--threads: '-1' is not a whole number"),
        ((SHAPE, "--threads", "1e3"), "--threads: '1e3' is not a whole number"),
        ((SHAPE, "--threads", "100000"), "--threads: '100000' is more than 1024 threads"),
        ((SHAPE, "--repeat", "0"), "--repeat: '0' is not a whole number"),
        ((SHAPE, "--repeat", "9" * 5000), "is not a whole number of at least 1"),
        ((SHAPE, "--repeat", "٤"), "is not a whole number of at least 1"),
        ((SHAPE, "--seed", str(2**63)), "is not a whole number from 0 to 2^63-1"),
        ((SHAPE, "--seed", "9" * 5000), "is not a whole number from 0 to 2^63-1"),
        ((SHAPE, "--seed", "-1"), "--seed: '-1' is not a whole number"),
        ((SHAPE, "--max-time", "0"), "--max-time: '0' is not a time such as 90s"),
        ((SHAPE, "--max-time", "soon"), "--max-time: 'soon' is not a time"),
        ((SHAPE, "--max-time", "9" * 400), "is not a time such as 90s, 5m or 1h, at most 10000 h"),
        ((SHAPE, "--max-time", "10001h"), "at most 10000 h"),
        ((SHAPE, "--max-time", "1e3"), "is not a time"),
        ((SHAPE, "--output", ""), "--output: the path is empty"),
        ((SHAPE, "--format", "xml"), "invalid choice: 'xml'"),
        ((SHAPE, "--output", "no/such/folder/x.json"), "there is no folder no/such/folder"),
        ((SHAPE, "--output", "x.json", "--format", "csv"), "x.json says json, --format says csv"),
        ((SHAPE, "--output", "x.csv", "--format", "text"), "x.csv says csv, --format says text"),
        ((SHAPE, "--output", "x.html"), "no .html file can be written; end the name in .json"),
    ],
)
def test_usage(refused, argv, words):
    """Exit code 2, and what is wrong with what."""
    code, line = refused(*argv)
    assert code == 2
    assert words in line


def test_a_path_that_this_cpu_lacks(refused, monkeypatch):
    """Exit code 2 for every variant, the baseline included, naming what is missing."""
    old = CpuFeatures("x86_64", "old", frozenset({"sse2"}))
    monkeypatch.setattr(workload, "read_cpu", lambda: old)
    code, line = refused(SHAPE, "--isa", "avx2", "--variant", "scalar")
    assert code == 2
    assert "ISA path 'avx2' cannot run here: this CPU lacks avx2, fma" in line


def test_more_memory_than_there_is(refused):
    """Exit code 2 with the amount, before anything is allocated."""
    code, line = refused("1,100000,100000,512,2")
    assert code == 2
    assert re.search(r"needs 286\d\d\.\d GiB of memory, \d+\.\d GiB are available", line)


@pytest.mark.parametrize("name", ["file/session", LONG_NAME, f"{LONG_NAME}.json", "file/x.json"])
def test_output_that_cannot_be_written(refused, monkeypatch, tmp_path, name):
    """Exit code 1 (2 where only the folder is missing) before anything is measured."""
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("in the way")
    code, line = refused(SHAPE, "--output", name)
    assert code == (2 if name == "file/x.json" else 1)
    assert "cannot write" in line or "there is no folder file" in line


def test_a_folder_that_may_not_be_entered(refused, monkeypatch, tmp_path):
    """What the system forbids is an error with its words, not a traceback."""

    there = Path.exists

    def exists(path):
        if path.name == "manifest.json":
            raise PermissionError(13, "Permission denied", str(path))
        return there(path)

    monkeypatch.setattr(Path, "exists", exists)
    code, line = refused(SHAPE, "--output", tmp_path / "session", "--variant", "scalar")
    assert code == 1
    assert "Permission denied; name a writable one with --output" in line


def test_a_folder_with_a_session(refused, tmp_path):
    """Nothing is overwritten."""
    (tmp_path / "manifest.json").write_text("{}")
    code, line = refused(SHAPE, "--output", tmp_path)
    assert (code, line) == (
        1, f"moe-prof: {tmp_path} already holds a session; choose another --output",
    )  # fmt: skip


def test_a_folder_with_other_files(refused, tmp_path):
    """A home folder given by mistake is not littered."""
    (tmp_path / "mine").write_text("precious")
    code, line = refused(SHAPE, "--output", tmp_path)
    assert (code, line) == (
        1, f"moe-prof: {tmp_path} is a folder with other files (mine, ...); name a new or an empty "
        "one with --output",
    )  # fmt: skip
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_folder_in_place_of_a_result_file(refused, tmp_path):
    """It is not taken for a session's folder either."""
    (tmp_path / "x.json").mkdir()
    code, line = refused(SHAPE, "--output", tmp_path / "x.json")
    assert code == 2
    assert line.endswith("x.json: this is a folder; name a file or another folder")


def test_a_refused_request_leaves_nothing_behind(refused, tmp_path):
    """No session for a request that was wrong."""
    refused(SHAPE, "--variant", "turbo")
    assert list(tmp_path.iterdir()) == []


def test_trying_to_write_changes_nothing(refused, monkeypatch, tmp_path):
    """A result file that is there keeps its content, a new one does not appear."""
    monkeypatch.chdir(tmp_path)
    Path("old.json").write_text("old")
    for name in ("old.json", "new.json"):
        refused(SHAPE, "--output", name, "--variant", "turbo")
    assert (Path("old.json").read_text(), Path("new.json").exists()) == ("old", False)
