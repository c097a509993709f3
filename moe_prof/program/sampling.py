"""Where a program's threads are, by samples of the CPU clock, with registers where perf gives them.

Needs no PMU. From samples and the code around them follows which threads only wait (they are in a
loop that polls, or in a function that is known to wait), and which memory lines they write: the
address of a store is its operand evaluated with the registers at the sample.

Source: perf-record(1), ``--user-regs``; perf-script(1).
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from moe_prof.collectors import perf_record
from moe_prof.collectors.toolrun import run_tool
from moe_prof.errors import UnavailableError
from moe_prof.hotspots.waiting import is_wait_name
from moe_prof.program import code, stops
from moe_prof.program.loops import loops_around
from moe_prof.program.outer_counters import Moving, moving
from moe_prof.program.placing import in_files
from moe_prof.program.speeds import (
    LINE_BYTES,
    Around,
    LoopSpeed,
    Sample,
    address_of,
    speeds,
)

REGISTERS = (
    "AX", "BX", "CX", "DX", "SI", "DI", "BP", "SP", "IP",
    "R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15",
)  # fmt: skip
CONVERT_S = 60.0
PAGE_BYTES = 4096
STAYS_MIN = 0.005
"""Share of the samples that a place must have to count as one to which a thread comes again."""
OWNER_MIN = 0.9
"""Share of the samples that write a place, which its owner must have."""
CHANCE_SIGMAS = 3.0
"""Counts of samples scatter by their square root."""
_FRAME = re.compile(r"\t\s*(?P<ip>[0-9a-f]+) (?P<symbol>.*?)(?:\+0x[0-9a-f]+)? \((?P<dso>.*)\)\s*$")
_HEAD = re.compile(r"\s*(\d+)\s*(\d+)?\s*:?\s*")
_REGISTER = re.compile(r"\b([A-Z0-9]+):0x([0-9a-f]+)")
_CLOCK_MODULE = "[vdso]"
_KERNEL = re.compile(r"\[(?:kernel|guest\.kernel)\b|\[k\]|vmlinux")
_KINDS = (
    ("yield", re.compile(r"sys_sched_yield|do_sched_yield")),
    ("futex", re.compile(r"sys_futex|do_futex")),
    ("fault", re.compile(r"page_fault|handle_mm_fault|do_mem_abort|translation_fault")),
    ("call", re.compile(r"do_syscall|entry_SYSCALL|el0_svc|trap_ecall|_sys_")),
)
"""Names in the system's part of a stack, on x86, Arm and RISC-V; the first that fits."""
_LOCKS = re.compile(r"pthread_(?:mutex|rwlock)|lll_lock|mutex_unlock_usercnt")
_SYSTEM = re.compile(r"libgomp|libomp|libiomp")


@dataclass(frozen=True, slots=True)
class Sampled:
    """What the samples say.

    Attributes:
        count: samples.
        waiting: share of samples in code that only waits.
        own_polling: the part of it that is in loops of the program itself, not in a runtime; some
            ask for the time.
        locking: share of samples inside locks, in the library and in the system below it.
        walking: share of samples in loops that go through memory by small steps.
        work: samples in other code by thread, the main thread's under its own number.
        own_share: share of the busiest thread's work in functions that no other thread ran.
        shared_lines: share of the samples in loops that write a line which other threads write,
            at another place of it.
        speeds: of the loops whose registers tell it.
        counters: registers that move steadily wherever the samples are.
        seen: all samples by thread.
        system: samples inside the system by what called it: ``fault``, ``call``, and of the calls
            ``yield`` and ``futex``, which only wait.
        remark: how they were taken, where that needs saying.
        pointers: share of the samples in loops that follow pointers.
    """

    count: int
    waiting: float
    work: dict[int, int] = field(default_factory=dict)
    own_share: float = 0.0
    shared_lines: float = 0.0
    hottest: str = ""
    speeds: tuple[LoopSpeed, ...] = ()
    counters: dict[str, Moving] = field(default_factory=dict)
    pointers: float = 0.0
    seen: dict[int, int] = field(default_factory=dict)
    system: dict[str, int] = field(default_factory=dict)
    own_polling: float = 0.0
    locking: float = 0.0
    walking: float = 0.0
    remark: str = ""

    @property
    def team(self) -> list[int]:
        """Threads that were on a CPU for a fair time, working or waiting."""
        most = max(self.seen.values(), default=0)
        return [thread for thread, count in self.seen.items() if count >= 0.05 * most]

    @property
    def busiest(self) -> float:
        """Work of the busiest thread over the mean of the team's; 1 where that may be chance."""
        work = [self.work.get(thread, 0) for thread in self.team]
        mean = sum(work) / len(work) if work else 0.0
        if not mean or max(work) - mean < CHANCE_SIGMAS * mean**0.5:
            return 1.0
        return max(work) / mean

    @property
    def main_is_busiest(self) -> bool:
        """Whether the first thread, by its number, works most."""
        most = max(self.work, key=self.work.__getitem__, default=0)
        return bool(self.seen) and most == min(self.seen)


def sample(command: Sequence[str], folder: Path, *, timeout_s: float, x86: bool) -> Sampled:
    """Run the program under perf record, else with stops of its threads, and read the samples.

    Raises:
        UnavailableError: neither can sample here, or took no sample.
        ToolError: perf failed.
    """
    try:
        samples, remark = _perf_samples(command, folder, timeout_s=timeout_s, x86=x86), ""
    except UnavailableError as error:
        if not stops.usable():
            raise
        samples = stops.take(command, folder, timeout_s=timeout_s)
        remark = f"sampled by stopping its threads for a moment, since perf gave {error}"
    return replace(judge(samples, loops_around(samples, folder, x86=x86)), remark=remark)


def _perf_samples(
    command: Sequence[str], folder: Path, *, timeout_s: float, x86: bool
) -> list[Sample]:
    """What perf record sees.

    Raises:
        UnavailableError: perf cannot sample here, or took no sample.
        ToolError: perf did not end in time, or its samples cannot be read.
    """
    if shutil.which("perf") is None:
        raise UnavailableError("no samples: it is not installed")
    data = folder / "samples.data"
    base = perf_record.argv((), data=data, event=perf_record.CLOCK_EVENT, stacks="fp")[:-1]
    registers = (f"--user-regs={','.join(REGISTERS)}",) if x86 else ()
    run = run_tool((*base, *registers, "--", *command), folder=folder, name="samples",
                   timeout_s=timeout_s)  # fmt: skip
    if not data.exists():
        words = run.stderr.strip().splitlines() or ["perf wrote nothing"]
        raise UnavailableError(f"no samples: {words[-1]}")
    fields = "tid,period,ip,sym,symoff,dso" + (",uregs" if x86 else "")
    text = run_tool(
        ("perf", "script", "-i", str(data), "--no-inline", "-F", fields),
        folder=folder, name="samples-script", timeout_s=CONVERT_S,
    ).stdout  # fmt: skip
    samples = in_files(read(text.splitlines()))
    if not samples:
        raise UnavailableError("no samples: perf took none")
    return samples


def read(lines: Iterable[str]) -> list[Sample]:
    """Samples of ``perf script``: a line with the thread, frames, a line of registers."""
    found: list[Sample] = []
    thread = 0
    frames: list[re.Match[str]] = []
    registers: tuple[tuple[str, int], ...] = ()
    period_s = 0.0

    def finish() -> None:
        if frames and thread:
            inner = frames[0]
            address = int(inner["ip"], 16)
            found.append(
                Sample(thread, inner["symbol"], inner["dso"], address,
                       _placed(registers, address),
                       tuple(frame["symbol"] for frame in frames[1:]), period_s)
            )  # fmt: skip

    for line in lines:
        match = _FRAME.match(line)
        if match is not None:
            frames.append(match)
        elif "ABI:" in line:
            registers = tuple(
                (
                    code.whole_name(name.lower() if name[0] == "R" else f"r{name.lower()}"),
                    int(v, 16),
                )
                for name, v in _REGISTER.findall(line.partition("ABI:")[2][1:])
            )
        elif head := _HEAD.fullmatch(line):
            finish()
            thread, frames, registers = int(head[1]), [], ()
            period_s = int(head[2] or 0) * 1e-9
    finish()
    return found


def _placed(registers: tuple[tuple[str, int], ...], address: int) -> tuple[tuple[str, int], ...]:
    """With ``rip`` as the distance from addresses in the file to those in memory.

    Without it where the sample is in the system: its user registers are of another place.
    """
    known = dict(registers)
    distance = known.pop("rip", -1) - address
    if distance >= 0 and distance % PAGE_BYTES == 0:
        known["rip"] = distance
    return tuple(known.items())


def judge(samples: Sequence[Sample], loops: dict[tuple[str, int], Around]) -> Sampled:
    """Sum the samples up; pure."""
    waiting = [s for s in samples if _waits(s, loops)]
    work = [s for s in samples if not _waits(s, loops)]
    by_thread = Counter(s.thread for s in work)
    busiest = max(by_thread, key=by_thread.__getitem__, default=0)
    others = {(s.function, s.module) for s in work if s.thread != busiest}
    mine = [s for s in work if s.thread == busiest]
    own = sum((s.function, s.module) not in others for s in mine)
    functions = Counter(s.function for s in samples)
    return Sampled(
        count=len(samples),
        waiting=len(waiting) / len(samples),
        own_polling=sum(not _waits(s, {}) or _asks_the_time(s) for s in waiting) / len(samples),
        locking=sum(_locks(s) for s in samples) / len(samples),
        walking=sum(_walks(s, loops) for s in samples) / len(samples),
        work=dict(by_thread),
        own_share=own / len(mine) if mine else 0.0,
        shared_lines=_shared_lines(samples, loops),
        hottest=functions.most_common(1)[0][0],
        speeds=speeds(samples, loops),
        counters=moving(samples),
        pointers=sum(_follows(s, loops) for s in samples) / len(samples),
        seen=dict(Counter(s.thread for s in samples)),
        system=dict(Counter(kind for s in samples if (kind := system_kind(s)))),
    )


def system_kind(sample: Sample) -> str:
    """What the system was doing for the thread; "" outside of it, or where names do not tell."""
    if not _KERNEL.match(sample.module):
        return ""
    names = " ".join((sample.function, *sample.callers))
    return next((kind for kind, pattern in _KINDS if pattern.search(names)), "")


def _walks(sample: Sample, loops: dict[tuple[str, int], Around]) -> bool:
    loop = loops.get(sample.place)
    return loop is not None and code.walks(loop.texts)


def _locks(sample: Sample) -> bool:
    """Whether a lock's functions are where the thread is, or right above the system's part."""
    return any(_LOCKS.search(name) for name in (sample.function, *sample.callers))


def _asks_the_time(sample: Sample) -> bool:
    return sample.module == _CLOCK_MODULE


def _waits(sample: Sample, loops: dict[tuple[str, int], Around]) -> bool:
    if is_wait_name(sample.function) or _asks_the_time(sample):
        return True
    if system_kind(sample) in ("yield", "futex"):
        return True
    if _SYSTEM.search(sample.module.rsplit("/", 1)[-1]):
        return True
    if any(is_wait_name(name) for name in sample.callers[:2]):
        return True
    loop = loops.get(sample.place)
    return loop is not None and loop.polls


def _follows(sample: Sample, loops: dict[tuple[str, int], Around]) -> bool:
    loop = loops.get(sample.place)
    return loop is not None and loop.pointers


def _shared_lines(samples: Sequence[Sample], loops: dict[tuple[str, int], Around]) -> float:
    """Share of samples at or in loops around lines in which several threads have their places."""
    places: list[tuple[Sample, set[int], set[int]]] = []
    for one in samples:
        loop = loops.get(one.place)
        if loop is not None and one.registers:
            registers = dict(one.registers)
            near = code.operands_at(loop.near)
            written = _written(loop.texts, registers) | _addresses(
                (operand for operand in near if operand.written), registers
            )
            places.append((one, written, written | _addresses(near, registers)))
    writers: dict[int, Counter[int]] = {}
    for one, written, _ in places:
        for address in written:
            writers.setdefault(address, Counter())[one.thread] += 1
    owners: dict[int, set[int]] = {}
    for address, threads in writers.items():
        if threads.total() < STAYS_MIN * len(samples):
            continue  # a large array is passed by, maybe by one thread after the other
        owner, most = threads.most_common(1)[0]
        if most >= OWNER_MIN * threads.total():  # what all write is shared by intent
            owners.setdefault(address // LINE_BYTES, set()).add(owner)
    shared = {line for line, who in owners.items() if len(who) > 1}
    hit = sum(any(a // LINE_BYTES in shared for a in touched) for _, _, touched in places)
    return hit / len(samples)


def _addresses(operands: Iterable[code.Operand], registers: dict[str, int]) -> set[int]:
    found = (address_of(operand, registers) for operand in operands)
    return {address for address in found if address is not None}


def _written(texts: Sequence[str], registers: dict[str, int]) -> set[int]:
    """Addresses that a loop writes and that do not move within it."""
    moving = code.moving_registers(texts)
    found = set()
    for text in texts:
        operand = code.memory_operand(text)
        if operand is None or not operand.written or {operand.base, operand.index} & moving:
            continue
        address = address_of(operand, registers)
        if address is not None:
            found.add(address)
    return found
