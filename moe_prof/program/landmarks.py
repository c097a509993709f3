"""How often places of a program are really executed: by breakpoints of the CPU, at full speed.

A simulation that is cut off saw a part of the program. A place near each hot loop that is executed
now and then (the loop around it, say) is counted in the simulated part and in a whole run of its
own; the ratio of the two leads from the part to the whole. Needs no PMU: the debug registers count,
some microseconds each time. The program runs without address randomization for it, so that its
places are known.

Source: perf-stat(1), ``mem:ADDRESS:x``; personality(2), ADDR_NO_RANDOMIZE; the ELF specification,
e_type at offset 16.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from moe_prof.collectors.callgrind_format import CallgrindProfile
from moe_prof.collectors.hotloop import HotLoop
from moe_prof.collectors.toolrun import run_tool
from moe_prof.errors import ToolError, UnavailableError

MOST = 4
"""Debug registers of x86; other cores have as many or more."""
LEAST_HITS = 8
HIT_S = 25e-6
"""What an execution of a place takes: 2 to 20 us, most on virtual machines."""
MOST_HITS = 1_000_000
"""In the whole run."""
LEAST_RATIO = 1.05
"""A part that was cut off within a loop saw no more of it than this."""
PROBE_S = 10.0
_FIXED, _MOVABLE = 2, 3
_COUNT = re.compile(r"^(\d+),[^,]*,mem:(0x[0-9a-f]+):x", re.MULTILINE)
_FIRST = re.compile(r"^([0-9a-f]+)-", re.MULTILINE)
UNRANDOMIZED = ("setarch", "-R")


@dataclass(frozen=True, slots=True)
class Landmark:
    """A place, by its address in the program's file, and its executions in the simulated part."""

    address: int
    seen: int


def choose(
    profile: CallgrindProfile, loops: Sequence[HotLoop], module: str, most_seen: float
) -> dict[int, tuple[Landmark, ...]]:
    """By the number of a loop, the places nearest to it that are executed now and then; pure.

    One before and one after it, of the same function: one of them may belong to something else.
    Loops of libraries and of functions without such places, and programs without hot loops (number
    0), take places of the program itself: a frequent and a rare one, and between them.

    Args:
        module: the program's file, the only one whose place in memory is known.
        most_seen: executions in the part from which on the whole run would take too long.
    """
    executed = profile.events.index("Ir")
    places = [
        (Landmark(address, entry.cost[executed]), entry.function.name)
        for (name, address), entry in profile.instructions.items()
        if name == module and LEAST_HITS <= entry.cost[executed] <= most_seen
    ]
    if not places:
        return {}
    found: dict[int, tuple[Landmark, ...]] = {}
    anywhere = _spread([mark for mark, _ in places], most_seen)
    if not loops:
        return {0: anywhere}
    for number, loop in enumerate(loops[: MOST // 2]):
        near = [
            mark for mark, function in places
            if loop.object == module and function == loop.function
        ]  # fmt: skip
        before = [mark for mark in near if mark.address < loop.start]
        after = [mark for mark in near if mark.address > loop.end]
        found[number] = (
            *([max(before, key=lambda mark: mark.address)] if before else ()),
            *([min(after, key=lambda mark: mark.address)] if after else ()),
        ) or anywhere
    return found


def _spread(marks: Sequence[Landmark], most_seen: float) -> tuple[Landmark, ...]:
    """Up to as many places as can be counted, from rare to frequent; pure.

    What is over by the time at which the simulation was cut off may be among them.
    """
    distinct = sorted({mark.seen: mark for mark in marks}.values(), key=lambda mark: mark.seen)
    while sum(mark.seen for mark in distinct[-MOST:]) > most_seen and len(distinct) > 1:
        distinct.pop()
    step = max(1.0, (len(distinct) - 1) / (MOST - 1))
    places = {min(len(distinct) - 1, round(n * step)) for n in range(MOST)}
    return tuple(distinct[place] for place in sorted(places))


def affordable_hits(left_s: float, user_s: float) -> float:
    """Executions that a whole run of so many seconds can count in the time left; pure."""
    return max(0.0, min(MOST_HITS, (left_s - 2 * user_s) / HIT_S))


def ratios(
    landmarks: Mapping[int, Sequence[Landmark]], counted: Mapping[int, int]
) -> dict[int, float]:
    """From the part to the whole, by the number of the loop; pure.

    A place that is executed no more often in the whole run belongs to what was over before.
    """
    found = {}
    for number, marks in landmarks.items():
        ratio = max(counted.get(mark.address, 0) / mark.seen for mark in marks)
        if ratio >= LEAST_RATIO:
            found[number] = ratio
    return found


def count(
    command: Sequence[str], module: Path, landmarks: Sequence[Landmark], folder: Path, *,
    timeout_s: float,
) -> dict[int, int]:  # fmt: skip
    """Executions of the places, by their address, in a whole run.

    Raises:
        UnavailableError: there are no breakpoints here, or the place of the program is not known.
    """
    if shutil.which(UNRANDOMIZED[0]) is None or shutil.which("perf") is None:
        raise UnavailableError("perf and setarch are needed to count places of a program")
    base = _base(module, folder)
    addresses = list(dict.fromkeys(mark.address for mark in landmarks))[:MOST]
    events = [f"mem:{address + base:#x}:x:u" for address in addresses]
    wanted = [word for event in events for word in ("-e", event)]
    line = (*UNRANDOMIZED, "perf", "stat", "-x", ",", *wanted, "--", *command)
    try:
        run = run_tool(line, folder=folder, name="landmarks", timeout_s=timeout_s)
    except ToolError as error:
        raise UnavailableError(f"places of the program were not counted: {error}") from error
    found = {address - base: hits for address, hits in counts(run.stderr).items()}
    if not found:
        raise UnavailableError("places of the program were not counted: no breakpoints here")
    return found


def counts(text: str) -> dict[int, int]:
    """Executions by address in memory, of perf stat's table with commas; pure."""
    return {int(address, 16): int(hits) for hits, address in _COUNT.findall(text)}


def _base(module: Path, folder: Path) -> int:
    """Where the program's file begins in memory, without randomization.

    Raises:
        UnavailableError: it is no ELF program, or cannot be run so.
    """
    try:
        with module.open("rb") as file:
            header = file.read(18)
    except OSError as error:
        raise UnavailableError(f"{module} cannot be read: {error.strerror}") from error
    kind = int.from_bytes(header[16:18], "little" if header[5:6] == b"\x01" else "big")
    if header[:4] != b"\x7fELF" or kind not in (_FIXED, _MOVABLE):
        raise UnavailableError(f"{module} is no ELF program")
    if kind == _FIXED:
        return 0
    try:
        run = run_tool(
            (*UNRANDOMIZED, "cat", "/proc/self/maps"), folder=folder, name="landmarks-base",
            timeout_s=PROBE_S,
        )  # fmt: skip
    except ToolError as error:
        raise UnavailableError(f"programs cannot be placed: {error}") from error
    first = _FIRST.search(run.stdout)
    if first is None:
        raise UnavailableError("programs cannot be placed: no map of memory")
    return int(first[1], 16)
