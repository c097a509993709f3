"""Samples by stopping threads: they show the program's code and do not change what it does."""

import ctypes
import sys
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest

from moe_prof.errors import UnavailableError, UsageError, WorkloadError
from moe_prof.program import sampling, stops
from moe_prof.program.stops import Mapping, read_maps
from moe_prof.program.symbols import UNKNOWN, Symbols

pytestmark = pytest.mark.skipif(not stops.usable(), reason="reads registers of x86-64 Linux only")
BUSY = "import time\nwhile time.process_time() < 0.5: pass"
ALARMS = """
import signal, time
count = 0
def handler(number, frame):
    global count
    count += 1
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
while count < 100 and time.process_time() < 20: sum(range(1000))
signal.setitimer(signal.ITIMER_REAL, 0)
print("counted", count >= 100)
"""
THREADS = """
import hashlib, threading, time
asleep = threading.Event()
def work():
    data = bytes(1 << 20)
    until = time.thread_time() + 0.3
    while time.thread_time() < until: hashlib.sha256(data).digest()
threads = [threading.Thread(target=work) for _ in range(2)]
sleeper = threading.Thread(target=asleep.wait)
sleeper.start()
[thread.start() for thread in threads]
print(sleeper.native_id, *(thread.native_id for thread in threads))
[thread.join() for thread in threads]
asleep.set()
"""
MAPS = """\
555555554000-555555555000 r--p 00000000 08:01 12 /tmp/a program
555555555000-555555556000 r-xp 00001000 08:01 12 /tmp/a program
7ffff7fc1000-7ffff7fc3000 r-xp 00000000 00:00 0 [vdso]
7ffff7ff0000-7ffff7ff1000 r-xp 00000000 00:00 0
"""


def take(folder, code, **more):
    """Samples of a Python program."""
    return stops.take((sys.executable, "-c", code), folder, **{"timeout_s": 60.0, **more})


def test_samples_are_where_the_time_goes(tmp_path):
    """One thread with registers, in files with code, and its CPU time from look to look."""
    samples = take(tmp_path, BUSY)
    assert all(one.period_s > 0 for one in samples)
    inside = [one for one in samples if one.registers]
    assert inside
    assert {"rax", "rsp", "r15", "rip"} <= set(dict(inside[0].registers))


def test_signals_reach_the_program(tmp_path):
    """Its own alarms arrive, each while it is looked at or not."""
    take(tmp_path, ALARMS)
    assert (tmp_path / "stops.stdout").read_text() == "counted True\n"


def test_sleepers_are_left_alone(tmp_path):
    """Threads that work are seen, one that sleeps all the time is not; all end as they should."""
    samples = take(tmp_path, THREADS)
    sleeper, *workers = map(int, (tmp_path / "stops.stdout").read_text().split())
    seen = Counter(one.thread for one in samples)
    assert set(workers) <= set(seen)
    assert seen[sleeper] <= 1  # while it begins


@pytest.mark.parametrize(
    ("command", "error", "says"),
    [
        (("sh", "-c", "while :; do :; done"), WorkloadError, "did not end within"),
        (("sh", "-c", "kill -SEGV $$"), WorkloadError, "crashed"),
        (("/nowhere/none",), UsageError, "was not found"),
        (("true",), UnavailableError, "no samples"),
    ],
)
def test_what_gives_no_samples(tmp_path, command, error, says):
    """Endless, crashing, missing and very short programs."""
    with pytest.raises(error, match=says):
        stops.take(command, tmp_path, timeout_s=0.5)


def test_nothing_is_left_behind(tmp_path):
    """A program past its time is gone afterwards, its children too."""
    script = "import subprocess, sys\nsubprocess.run(['sleep', '600'])"
    with pytest.raises(WorkloadError):
        take(tmp_path, script, timeout_s=0.3)
    deadline = time.monotonic() + 10
    while _sleeping() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _sleeping()


def _sleeping():
    """Whether this process has children that are no zombies."""
    return [
        child for child in psutil.Process().children(recursive=True)
        if child.name() == "sleep" and child.status() != psutil.STATUS_ZOMBIE
    ]  # fmt: skip


def test_perf_is_stood_in_for(tmp_path, monkeypatch):
    """Without perf the samples come by stops, and that is said."""
    monkeypatch.setattr(sampling.shutil, "which", lambda name: None)
    found = sampling.sample((sys.executable, "-c", BUSY), tmp_path, timeout_s=60.0, x86=True)
    assert found.count > 10
    assert found.remark.startswith("sampled by stopping its threads")


def test_maps():
    """Executable pieces with paths that hold spaces; memory of no file has none."""
    assert read_maps(MAPS) == [
        Mapping(0x555555555000, 0x555555556000, 0x1000, "/tmp/a program"),
        Mapping(0x7FFFF7FC1000, 0x7FFFF7FC3000, 0, "[vdso]"),
        Mapping(0x7FFFF7FF0000, 0x7FFFF7FF1000, 0, ""),
    ]


def test_symbols_of_a_library():
    """A function of a loaded library is found by its place in the file."""
    libc = ctypes.CDLL(None)
    address = ctypes.cast(libc.qsort, ctypes.c_void_p).value
    mappings = read_maps(Path("/proc/self/maps").read_text())
    place = next(one for one in mappings if one.start <= address < one.end)
    symbols = Symbols()
    inside = symbols.address(place.path, address - place.start + place.offset)
    assert symbols.name(place.path, inside) == "qsort"


def test_files_without_symbols(tmp_path):
    """Neither a text nor a missing file has names; addresses stay offsets."""
    text = tmp_path / "text"
    text.write_text("no program")
    symbols = Symbols()
    for path in (str(text), str(tmp_path / "none"), "[vdso]", ""):
        assert (symbols.address(path, 0x10), symbols.name(path, 0x10)) == (0x10, UNKNOWN)
