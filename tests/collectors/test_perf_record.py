"""The perf record collector against a program that plays perf and checks what it gets."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from moe_prof.collectors import perf_record
from moe_prof.collectors.perf_control import Control
from moe_prof.errors import ToolError, UnavailableError, WorkloadError

FOLDER = Path(__file__).parents[1] / "fixtures" / "perf"
TIME_LIMIT_S = 30.0
SCRIPT = "a 1/1 1.0: 250000 cpu-clock:\n\t 1f f+0x1 (/a)\n\n"


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """A perf that records anything."""
    program = tmp_path / "perf"
    player = FOLDER / "fake_perf_record.py"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {player} "$@"\n')
    program.chmod(0o755)
    text = tmp_path / "samples.txt"
    text.write_text(SCRIPT)
    monkeypatch.setenv("FAKE_PERF_SCRIPT", str(text))
    monkeypatch.delenv("FAKE_PERF", raising=False)
    return str(program)


def record(perf, folder, command=("true",), **options):
    """Record without a region of interest."""
    return perf_record.run(command, folder, timeout_s=TIME_LIMIT_S, roi=False, perf=perf, **options)


def test_argv_of_a_region_of_interest():
    """Sampling starts off; stacks are copied for unwinding; the frequency is no round number."""
    line = perf_record.argv(
        ("./bench",), data=Path("/raw/d"), pages=16, control=Control(Path("/c"), Path("/a"))
    )
    assert line == (
        "perf", "record", "-o", "/raw/d", "-e", "cycles", "-F", "1999", "--call-graph",
        "dwarf,8192", "-m", "16", "-D", "-1", "--control", "fifo:/c,/a", "--", "./bench",
    )  # fmt: skip


@pytest.mark.parametrize(("stacks", "option"), [("fp", ("--call-graph", "fp")), ("none", ())])
def test_argv_of_stacks(stacks, option):
    """Frame pointers, or no stacks at all."""
    line = perf_record.argv(("./b",), data=Path("d"), stacks=stacks)
    assert line == (
        "perf", "record", "-o", "d", "-e", "cycles", "-F", "1999", *option, "--", "./b"
    )  # fmt: skip


def test_recording_and_its_script(fake, tmp_path):
    """The data, the events by perf's own word, and the samples as text."""
    found = record(fake, tmp_path / "raw")
    assert (found.events, found.notes) == (("cycles",), ())
    text = perf_record.script(found.run.outputs["data"], perf=fake)
    assert (text.name, text.read_text()) == ("perf_record.script", SCRIPT)


def test_the_event_is_what_evlist_says(fake, tmp_path, monkeypatch):
    """perf samples the clock where cycles were asked for and says nothing; evlist tells."""
    monkeypatch.setenv("FAKE_PERF_EVENT", "cpu-clock")
    assert record(fake, tmp_path / "raw").events == ("cpu-clock",)


def test_buffers_shrink_until_they_are_granted(fake, tmp_path, monkeypatch):
    """Refused mmap: fewer pages, with a remark."""
    monkeypatch.setenv("FAKE_PERF", "no-mmap")
    monkeypatch.setenv("FAKE_PERF_PAGES", "16")
    found = record(fake, tmp_path / "raw")
    assert found.run.argv[found.run.argv.index("-m") + 1] == "16"
    assert found.notes == (
        "perf's buffers were cut to 16 pages a CPU (kernel.perf_event_mlock_kb)",
    )


def test_no_buffer_at_all(fake, tmp_path, monkeypatch):
    """Not one page may be locked: unavailable, with the command that changes it."""
    monkeypatch.setenv("FAKE_PERF", "no-mmap")
    monkeypatch.setenv("FAKE_PERF_PAGES", "0")
    with pytest.raises(UnavailableError, match="perf_event_mlock_kb=516"):
        record(fake, tmp_path / "raw")


def test_clock_where_cycles_are_refused(fake, tmp_path, monkeypatch):
    """Newer perf refuses cycles without a PMU: the clock is sampled then."""
    monkeypatch.setenv("FAKE_PERF", "no-cycles")
    assert record(fake, tmp_path / "raw").events == ("cpu-clock",)


def test_forbidden(fake, tmp_path, monkeypatch):
    """perf_event_paranoid: unavailable, with the remedy."""
    monkeypatch.setenv("FAKE_PERF", "forbidden")
    with pytest.raises(UnavailableError, match="perf_event_paranoid=1"):
        record(fake, tmp_path / "raw")


def test_missing_perf(tmp_path):
    """No perf: unavailable."""
    with pytest.raises(UnavailableError, match="is not installed"):
        record(str(tmp_path / "nothing"), tmp_path / "raw")


def test_workload_that_crashes(fake, tmp_path):
    """The workload's own end is judged, not perf's exit code."""
    with pytest.raises(WorkloadError, match="killed by SIGSEGV"):
        record(fake, tmp_path / "raw", ("sh", "-c", "kill -SEGV $$"))


def test_script_of_an_older_perf(fake, tmp_path, monkeypatch):
    """Fields that perf does not know: its default output is taken."""
    found = record(fake, tmp_path / "raw")
    monkeypatch.setenv("FAKE_PERF", "old")
    assert perf_record.script(found.run.outputs["data"], perf=fake).read_text() == SCRIPT


def test_recording_that_cannot_be_read(fake, tmp_path):
    """perf's own first words are passed on."""
    with pytest.raises(ToolError, match="No such file"):
        perf_record.script(tmp_path / "nothing.data", perf=fake)
