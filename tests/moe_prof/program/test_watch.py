"""Watching a run from outside: what it did, and how it can fail."""

import os
import sys
from pathlib import Path

import pytest

from moe_prof.errors import UsageError, WorkloadError
from moe_prof.measure import crowd
from moe_prof.program import watch


def run(tmp_path, *command, timeout_s=30.0):
    """One watched run."""
    return watch.watch(command, tmp_path, timeout_s=timeout_s, cpus=2)


def test_what_it_returned_and_said(tmp_path):
    """Exit code and output are kept."""
    seen = run(tmp_path, "sh", "-c", "echo hello; exit 3")
    assert seen.exit_code == 3
    assert (tmp_path / "watch.stdout").read_text() == "hello\n"


def test_cpu_time_is_its_own(tmp_path):
    """Work shows as user time of its only thread."""
    seen = run(tmp_path, sys.executable, "-c", "for i in range(2000000): pass")
    assert seen.user_s > 0
    assert seen.most_threads == 1
    assert seen.single_share == 1.0
    assert seen.threads[0].is_main


def test_what_others_leave_idle(monkeypatch, tmp_path):
    """The machine's use beside the program's time: neither its own nor others' is idle."""
    readings = iter([crowd.Reading(10.0, 5.0, 0.0, 4), crowd.Reading(12.0, 9.0, 0.0, 4)])
    monkeypatch.setattr(crowd, "read", lambda: next(readings))
    assert run(tmp_path, "true").idle_cpus == 2.0


def test_spells_of_work_after_rests(monkeypatch, tmp_path):
    """A thread that works, rests and works again was given work twice; waking up is none."""
    times = {"1": [10, 20, 30, 40], "2": [0.0, 5.0, 5.0, 9.0], "3": [0.0, 0.01, 0.01, 0.02]}
    tasks = watch._Tasks()
    monkeypatch.setattr(watch, "family", lambda _: [1])
    monkeypatch.setattr(watch, "entries", lambda _: list(times))
    for look in range(4):

        def read(path, look=look):
            thread = path.split("/")[4] if path.endswith("schedstat") else ""
            return f"{round(times[thread][look] * 1e6)} 0 1" if thread else ""

        monkeypatch.setattr(watch, "read", read)
        tasks.look(1)
    assert [tasks.spells[1, thread] for thread in (1, 2, 3)] == [1, 2, 0]
    assert tasks.spells_over_s((1, 2)) > 0
    assert tasks.spells_over_s((1, 1)) == tasks.spells_over_s((1, 3)) == 0


def test_crash_names_the_signal(tmp_path):
    """A death by signal is the workload's failure."""
    with pytest.raises(WorkloadError, match="killed by SIGSEGV"):
        run(tmp_path, "sh", "-c", "kill -SEGV $$")


def test_endless_programs_are_ended(tmp_path):
    """The limit ends the program and whatever it started."""
    with pytest.raises(WorkloadError, match="did not end within"):
        run(tmp_path, "sh", "-c", "sleep 60 & wait", timeout_s=0.2)


def test_no_such_program(tmp_path):
    """A mistake of the command line."""
    with pytest.raises(UsageError, match="was not found"):
        run(tmp_path, str(tmp_path / "none"))


def test_not_executable(tmp_path):
    """A file without permission, and one that is no program."""
    plain = tmp_path / "plain"
    plain.write_text("x")
    with pytest.raises(UsageError, match="cannot be executed"):
        run(tmp_path, str(plain))
    plain.chmod(0o755)
    plain.write_bytes(b"\x7fELF" + bytes(60))
    with pytest.raises(UsageError, match="cannot be executed"):
        run(tmp_path, str(plain))


def test_file_descriptors_are_closed(tmp_path):
    """Nothing stays open after a run."""
    before = len(os.listdir("/proc/self/fd"))
    run(tmp_path, "true")
    assert len(os.listdir("/proc/self/fd")) == before


def test_ctrl_c_ends_the_program_and_keeps_what_it_did(tmp_path, monkeypatch):
    """The program is gone, its CPU time of the time before is told."""
    seen = []
    look = watch._Tasks.look

    def interrupt(tasks, pid):
        look(tasks, pid)
        seen.append(pid)
        if sum(run_s for run_s, _ in tasks.times.values()) > 0.02:
            raise KeyboardInterrupt

    monkeypatch.setattr(watch._Tasks, "look", interrupt)
    watched = run(tmp_path, sys.executable, "-c", "while True: pass")
    assert watched.interrupted
    assert watched.cpu_s > 0.01
    assert not Path(f"/proc/{seen[0]}").exists()
