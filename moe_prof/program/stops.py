"""Samples where perf may not take any: running threads are stopped for a moment and looked at.

Many containers forbid performance events, yet a process may trace what it started itself. Every few
milliseconds each thread that has used a CPU since the last look is attached, stopped, read and let
go, which costs it some ten microseconds; threads that sleep are left alone, and signals reach the
program as if nobody looked. What was in the system shows by its call's number alone.

Source: ptrace(2), PTRACE_SEIZE and PTRACE_INTERRUPT; proc(5); the struct of registers in
arch/x86/include/uapi/asm/ptrace.h and the numbers of calls in arch/x86/entry/syscalls of Linux.
"""

from __future__ import annotations

import ctypes
import os
import platform
import random
import sys
import time
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from moe_prof.errors import UnavailableError, WorkloadError
from moe_prof.parent_death import ended_with_this_process
from moe_prof.program import watch
from moe_prof.program.speeds import Sample
from moe_prof.program.symbols import Symbols

INTERVAL_S = 0.004
SHORTEST_PAUSE_S = 0.001
"""Threads are looked at one by one, in random order: what one is seen to do must not follow from a
stop of another, as the wait for a stopped one would."""
KERNEL = "[kernel]"
_SEIZE, _INTERRUPT, _GETREGS, _DETACH = 0x4206, 0x4207, 12, 17
_EVENT_STOP = 128
_WALL = 0x40000000
_LONG_MODE = 0x33
"""The code segment of 64-bit programs."""
_NAMES = (
    "r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi",
    "rdi", "orig_rax", "rip", "cs", "eflags", "rsp", "ss", "fs_base", "gs_base", "ds", "es", "fs",
    "gs",
)  # fmt: skip
_GENERAL = frozenset(_NAMES[:15]) | {"rsp"}
_CALLS = {24: "do_sched_yield", 202: "do_futex"}
_ANY_CALL = "do_syscall_64"


@dataclass(frozen=True, slots=True)
class Mapping:
    """A piece of a file in a process's memory."""

    start: int
    end: int
    offset: int
    path: str


@dataclass(frozen=True, slots=True)
class _Look:
    """One stop of a thread: where it was, its registers, CPU time since the one before."""

    thread: int
    registers: tuple[tuple[str, int], ...]
    pc: int
    call: int
    cpu_s: float
    place: Mapping | None


@dataclass
class _Family:
    """The program's processes and threads, and what was seen of them."""

    looks: list[_Look] = field(default_factory=list)
    cpu_ns: dict[int, int] = field(default_factory=dict)
    maps: dict[int, list[Mapping]] = field(default_factory=dict)
    ended: dict[int, int] = field(default_factory=dict)
    """Wait status of processes whose end came while they were looked at."""

    def look_at(self, process: int, thread: int) -> None:
        """A thread that has used a CPU since the last look."""
        before = self.cpu_ns.get(thread)
        now = _cpu_ns(process, thread)
        if now is None:
            return
        self.cpu_ns[thread] = now if before is None else before
        if before is None or now <= before or not _runs(process, thread):
            return  # the first look only begins to count
        if _ptrace(_SEIZE, thread) != 0:
            return  # it has just ended, or another tracer holds it
        _ptrace(_INTERRUPT, thread)
        _, status = os.waitpid(thread, _WALL)
        if not os.WIFSTOPPED(status):
            self.ended[thread] = status
            return
        registers = _registers(thread)
        now = _cpu_ns(process, thread) or now
        own = status >> 16 != _EVENT_STOP  # a signal of the program's own came first
        _ptrace(_DETACH, thread, os.WSTOPSIG(status) if own else 0)
        self.cpu_ns[thread] = now
        if registers is not None:
            self._keep(process, thread, registers, (now - before) * 1e-9)

    def _keep(self, process: int, thread: int, registers: dict[str, int], cpu_s: float) -> None:
        pc = registers["rip"]
        call = registers["orig_rax"]
        general = tuple((name, registers[name]) for name in _NAMES if name in _GENERAL)
        self.looks.append(
            _Look(thread, general, pc, call if call < 1 << 63 else -1, cpu_s,
                  self._place(process, pc))
        )  # fmt: skip

    def _place(self, process: int, pc: int) -> Mapping | None:
        """The mapping that holds an address; maps are read again when it is in none."""
        known = self.maps.get(process, [])
        for fresh in (False, True):
            if fresh:
                known = self.maps[process] = read_maps(watch.read(f"/proc/{process}/maps"))
            at = bisect_right(known, pc, key=lambda one: one.start) - 1
            if at >= 0 and pc < known[at].end:
                return known[at]
        return None


def usable() -> bool:
    """Whether threads can be read like this here at all: Linux on x86-64."""
    return sys.platform == "linux" and platform.machine() == "x86_64"


def take(command: Sequence[str], folder: Path, *, timeout_s: float) -> list[Sample]:
    """Run the program once, stopping its running threads for looks.

    Raises:
        UnavailableError: its threads may not be traced.
        WorkloadError: it was killed by a signal, or did not end in time.
    """
    family = _Family()
    end_s = time.monotonic() + timeout_s
    with (
        (folder / "stops.stdout").open("wb") as out,
        (folder / "stops.stderr").open("wb") as err,
    ):
        process = watch.start(command, out.fileno(), err.fileno())
        with ended_with_this_process(process.pid):
            try:
                status = _follow(process.pid, family, end_s)
            finally:
                watch.end(process)
    if status is None:
        watch.check(0, command, timed_out=True, timeout_s=timeout_s)
    elif os.waitstatus_to_exitcode(status) < 0:
        raise WorkloadError(f"the program {command[0]!r} crashed while it was looked at")
    if not family.looks:
        raise UnavailableError("no samples: its threads could not be stopped for a look (ptrace)")
    return _samples(family.looks)


def _follow(pid: int, family: _Family, end_s: float) -> int | None:
    """Look until the program ends, its wait status; None when the time is up."""
    rng = random.Random(0)
    while time.monotonic() < end_s:
        threads = [
            (process, int(name))
            for process in watch.family(pid)
            for name in watch.entries(f"/proc/{process}/task")
        ]
        rng.shuffle(threads)
        for process, thread in threads or [(pid, pid)]:
            begun_s = time.monotonic()
            family.look_at(process, thread)
            if pid in family.ended:
                return family.ended[pid]
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                return status
            pause_s = max(INTERVAL_S / max(1, len(threads)), SHORTEST_PAUSE_S)
            time.sleep(max(pause_s, time.monotonic() - begun_s))  # half of the time at most
    return None


def _samples(looks: Sequence[_Look]) -> list[Sample]:
    """What was seen, with names and with addresses as in the files."""
    symbols = Symbols()
    found = []
    for look in looks:
        if look.call >= 0:
            name = _CALLS.get(look.call, _ANY_CALL)
            found.append(Sample(look.thread, name, KERNEL, 0, (), (), look.cpu_s))
            continue
        if look.place is None:
            found.append(Sample(look.thread, "[unknown]", "", look.pc, look.registers, (),
                                look.cpu_s))  # fmt: skip
            continue
        path = look.place.path
        address = symbols.address(path, look.pc - look.place.start + look.place.offset)
        name = symbols.name(path, address)
        registers = (*look.registers, ("rip", look.pc - address))  # from the file to the memory
        found.append(Sample(look.thread, name, path, address, registers, (), look.cpu_s))
    return found


def read_maps(text: str) -> list[Mapping]:
    """The executable mappings of ``/proc/PID/maps``, by address."""
    found = []
    for line in text.splitlines():
        words = line.split(maxsplit=5)
        if len(words) < 5 or "x" not in words[1]:
            continue
        low, _, high = words[0].partition("-")
        path = words[5] if len(words) == 6 else ""
        found.append(Mapping(int(low, 16), int(high, 16), int(words[2], 16), path))
    return sorted(found, key=lambda one: one.start)


def _registers(thread: int) -> dict[str, int] | None:
    """The registers of a stopped thread; None of one that runs 32-bit code."""
    values = (ctypes.c_uint64 * len(_NAMES))()
    if _ptrace(_GETREGS, thread, ctypes.addressof(values)) != 0:
        return None
    found = dict(zip(_NAMES, values, strict=True))
    return found if found["cs"] == _LONG_MODE else None


def _ptrace(request: int, thread: int, data: int = 0) -> int:
    call = _libc().ptrace
    call.restype = ctypes.c_long
    call.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    return int(call(request, thread, None, data))


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _runs(process: int, thread: int) -> bool:
    """Whether a thread runs or wants to; a sleeping one would be woken by a stop."""
    fields = watch.read(f"/proc/{process}/task/{thread}/stat").rpartition(")")[2].split()
    return bool(fields) and fields[0] == "R"


def _cpu_ns(process: int, thread: int) -> int | None:
    """CPU time of a thread."""
    words = watch.read(f"/proc/{process}/task/{thread}/schedstat").split()
    return int(words[0]) if words else None
