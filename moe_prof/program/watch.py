"""One plain run of a program, watched from outside: CPU time, faults, switches, threads over time.

The program runs undisturbed; its threads' times are read every few milliseconds. Times of a
thread are on-CPU and runnable-but-waiting seconds as the scheduler counts them, so that other
programs' load is told apart from sleeping.

Source: proc(5), /proc/PID/task/TID/schedstat and wchan; getrusage(2).
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from moe_prof.errors import UsageError, WorkloadError
from moe_prof.kernels.elf import foreign_reason
from moe_prof.measure import crowd
from moe_prof.parent_death import ended_with_this_process

INTERVAL_S = 0.004
SPELL_S = 5e-5
"""Less than this between two looks is a thread that wakes up and finds nothing to do."""
_PEAK = re.compile(r"VmHWM:\s+(\d+) kB")


@dataclass(frozen=True, slots=True)
class ThreadTime:
    """One thread: seconds on a CPU, and seconds in which it was runnable without one.

    Attributes:
        blocked: share of the looks at which it slept in a lock; None where the system hides that.
        spells / spells_over_s: how often it was seen to work after a rest, and the time from the
            first to the last of these.
    """

    run_s: float
    queued_s: float
    is_main: bool
    blocked: float | None = None
    spells: int = 0
    spells_over_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Watched:
    """What one run was seen to do.

    Attributes:
        exit_code: 0 or what the program returned.
        single_share: share of the wall time in which it had one thread only.
        max_rss_bytes: the largest memory in use; None where the program ended too soon to be seen.
        most_threads: the most threads at one time.
        cpus: CPUs that it may use.
        interrupted: Ctrl-C ended it; the figures are of the time before.
        idle_cpus: of those, that nothing used, on average; None over too short a time.
    """

    exit_code: int
    wall_s: float
    user_s: float
    sys_s: float
    minor_faults: int
    major_faults: int
    voluntary: int
    involuntary: int
    max_rss_bytes: int | None
    threads: tuple[ThreadTime, ...]
    single_share: float
    most_threads: int
    cpus: int
    interrupted: bool = False
    idle_cpus: float | None = None

    @property
    def cpu_s(self) -> float:
        """CPU time of all threads, user and system."""
        return self.user_s + self.sys_s


@dataclass
class _Tasks:
    """Latest times of every thread that was ever seen."""

    times: dict[tuple[int, int], tuple[float, float]] = field(default_factory=dict)
    seen: Counter[tuple[int, int]] = field(default_factory=Counter)
    spells: Counter[tuple[int, int]] = field(default_factory=Counter)
    began: dict[tuple[int, int], tuple[float, float]] = field(default_factory=dict)
    working: set[tuple[int, int]] = field(default_factory=set)
    locked: Counter[tuple[int, int]] = field(default_factory=Counter)
    places_known: bool = False
    most: int = 0
    looks: int = 0
    single: int = 0
    peak_kib: int = 0

    def look(self, pid: int) -> None:
        """Read all threads of the process and of its children."""
        count = 0
        for process in family(pid):
            for name in entries(f"/proc/{process}/task"):
                text = read(f"/proc/{process}/task/{name}/schedstat").split()
                if len(text) >= 2:
                    count += 1
                    self._time((process, int(name)), int(text[0]) * 1e-9, int(text[1]) * 1e-9)
                    self._place(process, int(name))
            if match := _PEAK.search(read(f"/proc/{process}/status")):
                self.peak_kib = max(self.peak_kib, int(match[1]))
        if count:
            self.looks += 1
            self.single += count == 1
            self.most = max(self.most, count)

    def _time(self, key: tuple[int, int], run_s: float, queued_s: float) -> None:
        """Its times so far, and whether it works again."""
        worked = run_s - self.times.get(key, (0.0, 0.0))[0] >= SPELL_S
        self.times[key] = run_s, queued_s
        if worked and key not in self.working:
            now_s = time.monotonic()
            self.spells[key] += 1
            self.began[key] = self.began.get(key, (now_s, now_s))[0], now_s
        (self.working.add if worked else self.working.discard)(key)

    def spells_over_s(self, key: tuple[int, int]) -> float:
        """From the beginning of a thread's first spell of work to that of its last."""
        first_s, last_s = self.began.get(key, (0.0, 0.0))
        return last_s - first_s

    def _place(self, process: int, thread: int) -> None:
        """Where in the system it sleeps."""
        place = read(f"/proc/{process}/task/{thread}/wchan")
        self.seen[process, thread] += 1
        self.locked[process, thread] += "futex" in place
        self.places_known = self.places_known or place not in ("", "0")

    def blocked(self, key: tuple[int, int]) -> float | None:
        """Share of the looks at which a thread slept in a lock."""
        return self.locked[key] / self.seen[key] if self.places_known else None


def watch(
    command: Sequence[str], folder: Path, *, timeout_s: float, cpus: int, name: str = "watch",
    env: dict[str, str] | None = None,
) -> Watched:  # fmt: skip
    """Run the program once; its output goes to files in the folder.

    Ctrl-C ends the program and gives what it did until then.

    Raises:
        UsageError: there is no such program, or it cannot be executed here.
        WorkloadError: it was killed by a signal, or did not end in time.
    """
    tasks = _Tasks()
    started_s, before = time.monotonic(), crowd.read()
    with (
        (folder / f"{name}.stdout").open("wb") as out,
        (folder / f"{name}.stderr").open("wb") as err,
    ):
        process = start(command, out.fileno(), err.fileno(), env)
        with ended_with_this_process(process.pid):
            interrupted = False
            try:
                usage = _follow(process, tasks, started_s + timeout_s)
            except KeyboardInterrupt:
                interrupted, usage = True, _ended(process)
            finally:
                end(process)
    wall_s, used = time.monotonic() - started_s, crowd.between(before, crowd.read())
    if not interrupted:
        check(process.returncode, command, timed_out=usage is None, timeout_s=timeout_s)
    assert usage is not None
    return Watched(
        exit_code=process.returncode,
        wall_s=wall_s,
        user_s=usage.ru_utime,
        sys_s=usage.ru_stime,
        minor_faults=usage.ru_minflt,
        major_faults=usage.ru_majflt,
        voluntary=usage.ru_nvcsw,
        involuntary=usage.ru_nivcsw,
        max_rss_bytes=tasks.peak_kib * 1024 or None,
        threads=tuple(
            ThreadTime(
                run_s,
                queued_s,
                pid == tid,
                tasks.blocked((pid, tid)),
                tasks.spells[pid, tid],
                tasks.spells_over_s((pid, tid)),
            )
            for (pid, tid), (run_s, queued_s) in tasks.times.items()
        ),
        single_share=tasks.single / tasks.looks if tasks.looks else 1.0,
        most_threads=max(1, tasks.most),
        cpus=cpus,
        interrupted=interrupted,
        idle_cpus=None if used is None else max(0.0, used.cpus - used.others),
    )


def start(
    command: Sequence[str], out: int, err: int, env: dict[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start the program in a session of its own.

    Raises:
        UsageError: there is no such program, or it cannot be executed here.
    """
    program = command[0]
    try:
        return subprocess.Popen(
            list(command), stdin=subprocess.DEVNULL, stdout=out, stderr=err,
            start_new_session=True, env={**os.environ, **(env or {})},
        )  # fmt: skip
    except FileNotFoundError:
        raise UsageError(f"the program {program!r} was not found; give its path") from None
    except PermissionError:
        raise UsageError(
            f"the program {program!r} cannot be executed; is it a program, with permission (chmod "
            "+x)?"
        ) from None
    except OSError as error:
        why = foreign_reason(Path(program)) or error.strerror
        raise UsageError(f"the program {program!r} cannot be executed: {why}") from None
    except ValueError as error:
        raise UsageError(f"the program's command line is no command: {error}") from None


def check(returncode: int, command: Sequence[str], *, timed_out: bool, timeout_s: float) -> None:
    """Refuse a run that ended by a signal or by the clock.

    Raises:
        WorkloadError: with the program and how it ended.
    """
    if timed_out:
        raise WorkloadError(
            f"the program {command[0]!r} did not end within {timeout_s:.0f} s; give it less to do, "
            "or allow more with --max-time"
        )
    if returncode < 0:
        try:
            name = signal.Signals(-returncode).name
        except ValueError:
            name = f"signal {-returncode}"
        raise WorkloadError(f"the program {command[0]!r} crashed: killed by {name}")


def _follow(
    process: subprocess.Popen[bytes], tasks: _Tasks, end_s: float
) -> resource.struct_rusage | None:
    """Look at the threads until the program ends; None when the time is up."""
    while True:
        tasks.look(process.pid)
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return usage
        if time.monotonic() >= end_s:
            return None
        time.sleep(INTERVAL_S)


def _ended(process: subprocess.Popen[bytes]) -> resource.struct_rusage:
    """End the program's session now; what it used."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage


def end(process: subprocess.Popen[bytes]) -> None:
    """End whatever is left of the program's session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    if process.returncode is None:
        process.wait()


def family(pid: int) -> list[int]:
    """The process and its descendants."""
    found, ahead = [], [pid]
    while ahead:
        one = ahead.pop()
        found.append(one)
        for name in entries(f"/proc/{one}/task"):
            ahead += [int(c) for c in read(f"/proc/{one}/task/{name}/children").split()]
    return found


def entries(folder: str) -> list[str]:
    """Names in a folder of proc; none where it is gone."""
    try:
        return os.listdir(folder)
    except OSError:
        return []


def read(path: str) -> str:
    """A file of proc; "" where it is gone."""
    try:
        return Path(path).read_text(encoding="ascii")
    except OSError:
        return ""
