"""Finding the loops in which a profile spends its instructions.

A loop is a backward branch within a function, and the instructions from its target up to it. Each
instruction belongs to the smallest loop around it: an outer loop holds only what its inner loops do
not, such as the sums that are set up before and folded after a short inner loop. Counts come from
the profile, so that loops which never ran are not there, and the iterations are exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from moe_prof.collectors import disassembly
from moe_prof.collectors.callgrind_format import CallgrindProfile, FunctionKey
from moe_prof.collectors.disassembly import Instruction
from moe_prof.errors import InputError, MoeProfError, UnavailableError

MAX_GAP_BYTES = 16 * 1024  # further apart, two parts of a function are disassembled on their own
LONGEST_INSTRUCTION_BYTES = 16
MIN_SHARE = 0.02
MAX_LOOPS = 8
MAX_FUNCTIONS = 6
RARE_LATCH = 0.1  # a way back that fewer iterations take is an exception within the loop
SAME_LOOP_MIN = 0.5  # an instruction belongs to the usual way through from this share of iterations


@dataclass(frozen=True, slots=True)
class CountedInstruction:
    """One instruction of a loop: address in the object file, AT&T text, executions, target."""

    address: int
    text: str
    count: int
    target: int | None
    is_branch: bool
    is_call: bool


@dataclass(frozen=True, slots=True)
class HotLoop:
    """One loop.

    Attributes:
        function / object: where it is.
        start / end: addresses of its first and last instruction.
        innermost: no other executed loop lies inside.
        instructions: all of its executed instructions, without those of inner loops.
        iterations: times that its first instruction was executed.
        share: part of all executed instructions of the profile that are in it, 0..1.
        calls: texts of calls inside; their callees are not part of the loop.
    """

    function: str
    object: str
    start: int
    end: int
    innermost: bool
    instructions: tuple[CountedInstruction, ...]
    iterations: int
    share: float
    calls: tuple[str, ...]

    @property
    def usual_path(self) -> tuple[CountedInstruction, ...]:
        """The instructions that at least half of the iterations execute."""
        return tuple(i for i in self.instructions if i.count >= SAME_LOOP_MIN * self.iterations)

    @property
    def executed(self) -> int:
        """Instructions executed in the loop."""
        return sum(instruction.count for instruction in self.instructions)


@dataclass(frozen=True, slots=True)
class HotLoops:
    """Loops by share, largest first, and why a hot function could not be looked into."""

    loops: tuple[HotLoop, ...]
    notes: tuple[str, ...]

    @property
    def share(self) -> float:
        """Part of all executed instructions that the loops stand for, 0..1."""
        return sum(loop.share for loop in self.loops)


def find(profile: CallgrindProfile, *, x86: bool, folder: Path) -> HotLoops:
    """Disassemble the hottest functions of the profile and find their loops.

    Args:
        x86: the profiled program is x86 code (AT&T syntax is asked for).
        folder: where objdump's output is kept.

    Raises:
        UnavailableError: objdump is missing, or the profile has no instruction addresses.
    """
    here = disassembly.availability()
    if not here.usable:
        raise UnavailableError(f"hot loop: {here.reason}; {here.remedy}")
    if not profile.instructions:
        raise UnavailableError("hot loop: the profile was taken without --dump-instr=yes")
    total = profile.body["Ir"]
    loops: list[HotLoop] = []
    notes = []
    for number, (function, counts) in enumerate(hottest_functions(profile)):
        try:
            for part, (low, high) in enumerate(address_ranges(counts)):
                code = disassembly.disassemble(
                    Path(function.object), low, high + LONGEST_INSTRUCTION_BYTES,
                    x86=x86, folder=folder, name=f"objdump-{number}-{part}",
                )  # fmt: skip
                loops += loops_of(function, code, counts, total=total)
        except MoeProfError as error:
            notes.append(f"{function.name} was not looked into: {error}")
    loops.sort(key=lambda loop: -loop.share)
    kept = tuple(loop for loop in loops[:MAX_LOOPS] if loop.share >= MIN_SHARE)
    return HotLoops(kept, tuple(notes))


def hottest_functions(
    profile: CallgrindProfile,
) -> list[tuple[FunctionKey, dict[int, int]]]:
    """The functions with the largest self cost, each with executions by address."""
    index = profile.events.index("Ir")
    by_function: dict[FunctionKey, dict[int, int]] = {}
    for (_, address), entry in profile.instructions.items():
        by_function.setdefault(entry.function, {})[address] = entry.cost[index]
    total = sum(sum(counts.values()) for counts in by_function.values())
    ordered = sorted(by_function.items(), key=lambda item: -sum(item[1].values()))
    return [
        (function, counts)
        for function, counts in ordered[:MAX_FUNCTIONS]
        if sum(counts.values()) >= MIN_SHARE * total and function.object
    ]


def address_ranges(addresses: Iterable[int]) -> list[tuple[int, int]]:
    """[first, last] address of each part of a function; cold parts lie far away."""
    ranges: list[tuple[int, int]] = []
    for address in sorted(addresses):
        if ranges and address - ranges[-1][1] <= MAX_GAP_BYTES:
            ranges[-1] = (ranges[-1][0], address)
        else:
            ranges.append((address, address))
    return ranges


def loops_of(
    function: FunctionKey,
    code: Sequence[Instruction],
    counts: Mapping[int, int],
    *,
    total: int,
) -> list[HotLoop]:
    """The executed loops of one function, by their first address.

    Args:
        code: the function's instructions by ascending address.
        counts: executions by address.
        total: executed instructions of the whole profile.

    Raises:
        InputError: counted addresses are no instruction starts of ``code``: another binary.
    """
    if not code:
        return []
    low, high = code[0].address, code[-1].address
    inside = [address for address in counts if low <= address <= high]
    known = {instruction.address for instruction in code}
    if not all(address in known for address in inside):
        raise InputError(
            f"{function.object} does not match the profile: counted addresses of {function.name} "
            "are no instructions of it; was it rebuilt since?"
        )
    spans = [
        (start, end)
        for start, end in _backward_branches(code, known)
        if counts.get(end, 0) > RARE_LATCH * counts.get(start, 0) > 0
    ]
    loops = _merged(spans)
    owner = {i.address: _smallest_around(i.address, loops) for i in code}
    return [
        _loop(
            function,
            [i for i in code if owner[i.address] == span],
            counts,
            span=span,
            innermost=not any(_is_inside(other, span) for other in loops),
            total=total,
        )
        for span in loops
        if span in owner.values()
    ]


def _backward_branches(code: Sequence[Instruction], known: set[int]) -> list[tuple[int, int]]:
    return [
        (i.target, i.address)
        for i in code
        if i.is_branch and i.target is not None and i.target <= i.address and i.target in known
    ]


def _merged(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """One span a loop head: several branches back to one head are one loop."""
    ends: dict[int, int] = {}
    for start, end in spans:
        ends[start] = max(end, ends.get(start, end))
    return sorted(ends.items())


def _smallest_around(address: int, spans: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    around = [span for span in spans if span[0] <= address <= span[1]]
    return min(around, key=lambda span: span[1] - span[0], default=None)


def _is_inside(inner: tuple[int, int], outer: tuple[int, int]) -> bool:
    return inner != outer and outer[0] <= inner[0] and inner[1] <= outer[1]


def _loop(
    function: FunctionKey,
    code: Sequence[Instruction],
    counts: Mapping[int, int],
    *,
    span: tuple[int, int],
    innermost: bool,
    total: int,
) -> HotLoop:
    start, end = span
    body = tuple(
        CountedInstruction(
            i.address, i.text, counts[i.address], i.target, i.is_branch, i.is_call
        )
        for i in code
        if counts.get(i.address, 0) > 0
    )  # fmt: skip
    return HotLoop(
        function=function.name,
        object=function.object,
        start=start,
        end=end,
        innermost=innermost,
        instructions=body,
        iterations=counts[start],
        share=sum(i.count for i in body) / total if total else 0.0,
        calls=tuple(i.text for i in body if i.is_call),
    )
