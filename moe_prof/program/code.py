"""What a loop's instructions say by themselves: does it only wait, does it follow pointers?

Works on AT&T text as objdump prints it; for other architectures nothing is claimed.

* A loop *polls* when it stores nothing, carries no value from one iteration to the next and reads
  memory at one place: it can only end by what others do. A pause instruction says the same.
* A loop *follows pointers* when the address of a load comes from an earlier load of the same chain.

Thousands of samples ask the same of a few loops, so answers are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

_MEMORY = re.compile(
    r"(?P<disp>-?0x[0-9a-f]+|-?\d+)?\((?P<base>%\w+)?(?:,(?P<index>%\w+)(?:,(?P<scale>\d))?)?\)"
)
_RELATIVE = re.compile(r"(-?0x[0-9a-f]+|-?\d+)?\(%rip\)")
_REGISTER = re.compile(r"%([a-z0-9]+)")
_READS_ONLY = ("cmp", "test", "bt", "ucomis", "comis", "vucomis", "vcomis", "prefetch", "push")
_PLAIN_MOVES = (
    "mov",
    "vmov",
    "lea",
    "cvt",
    "vcvt",
    "set",
    "vbroadcast",
    "pmov",
    "vpmov",
    "sqrt",
    "vsqrt",
)
_POLLING = re.compile(
    r"(?:lock )?(?:mov[a-z]*|cmp[a-z]*|test[a-z]*|j[a-z]+|pause|nop[a-z]*|xchg[a-z]*|cmpxchg[a-z]*"
    r"|cs|data16|xor[a-z]*|set[a-z]+|lfence|endbr64)\b"
)
_FLOATS = re.compile(
    r"^v?(?:add|sub|mul|div|f[n]?m(?:add|sub)\d*|sqrt|min|max)[sp][sd]\b|^v?fn?m(?:add|sub)\w+"
    r"|^f(?:add|mul|sub|div)"
)
_DIVIDES = re.compile(r"^(?:i?div[bwlq]?\b|v?(?:div|sqrt)[sp][sd]\b|f(?:i?div|sqrt))")
_WIDE = re.compile(r"i?(?:div|mul)[bwlq]?$")
"""With one operand they work on rax and rdx."""
_EXTENDS_RAX = frozenset({"cqto", "cltd", "cwtd"})
_ZEROES = re.compile(
    r"(?:v?p?xor[a-z]*|v?sub[a-z]*|psub[a-z]*)\s+(?P<one>%\w+),\s*(?P=one)(?:,\s*%\w+)?"
)
"""The result is zero whatever was there before."""
_COUNTS = re.compile(
    r"(?:(?:add|inc|(?P<down>sub|dec))[lq]?)\s+(?:\$(?P<step>-?0x[0-9a-f]+|-?\d+),\s*)?"
    r"%(?P<register>\w+)"
)
_SLOT = re.compile(r"-0x[0-9a-f]+\(%rbp\)|(?:0x[0-9a-f]+)?\(%rsp\)")
"""A place on the stack, which unoptimized code uses like a register."""
_LONGEST_POLL = 14
LARGEST_STEP = 256
"""Bytes an iteration: unrolled loops go on by a few lines."""
_KEPT_TEXTS, _KEPT_LOOPS = 1 << 15, 1 << 10


@dataclass(frozen=True, slots=True)
class Operand:
    """A memory operand: displacement, registers, whether the instruction writes it."""

    displacement: int
    base: str
    index: str
    scale: int
    written: bool


@dataclass(frozen=True, slots=True)
class Step:
    """Registers that one instruction reads for addresses, reads as values, and writes."""

    text: str
    address: frozenset[str]
    reads: frozenset[str]
    writes: frozenset[str]
    loads: bool
    stores: bool


def steps_of(texts: Sequence[str]) -> list[Step]:
    """What each instruction reads and writes, in order."""
    return [_step(text) for text in texts]


def polls(texts: Sequence[str]) -> bool:
    """Whether a loop of these instructions only waits."""
    if any(text.split()[:1] == ["pause"] or "rep nop" in text for text in texts):
        return True
    if len(texts) > _LONGEST_POLL or not all(_POLLING.match(_plain(text)) for text in texts):
        return False
    steps = steps_of(texts)
    exchanges = [step for step in steps if step.stores]
    if any("xchg" not in step.text for step in exchanges):
        return False
    return any(step.loads for step in steps) and all(
        _is_constant(steps, place, name)
        for place, step in enumerate(steps)
        for name in step.address
    )


def follows_pointers(texts: Sequence[str]) -> bool:
    """Whether a load's address comes from a chain of loads that goes around the loop."""
    steps = steps_of(texts)
    loads = [n for n, step in enumerate(steps) if step.loads]
    return any(n in _reached(steps, n) for n in loads)


@lru_cache(_KEPT_LOOPS)
def walks(texts: tuple[str, ...]) -> bool:
    """Whether all memory that a loop goes on to lies small steps ahead, as prefetchers foresee."""
    moving = moving_registers(texts)
    steps = {counter.register: counter.step for counter in counters(texts)}
    found = False
    for operand in filter(None, map(memory_operand, texts)):
        step = 0
        for name, scale in ((operand.base, 1), (operand.index, operand.scale)):
            if name in moving and name not in steps:
                return False
            step += steps.get(name, 0) * scale
        if abs(step) > LARGEST_STEP:
            return False
        found = found or step != 0
    return found


def divides_in_chain(texts: Sequence[str]) -> bool:
    """Whether a division or square root waits, around the loop, for its own last result."""
    steps = steps_of(texts)
    return any(
        n in _users(steps, n)[0] for n, step in enumerate(steps) if _DIVIDES.match(step.text)
    )


def computes_floats(texts: Iterable[str]) -> bool:
    """Whether there is floating-point arithmetic in it."""
    return any(_FLOATS.match(_plain(text)) for text in texts)


@lru_cache(_KEPT_LOOPS)
def moving_registers(texts: tuple[str, ...]) -> frozenset[str]:
    """Registers that the loop changes, apart from pointers reloaded from the stack."""
    steps = steps_of(texts)
    return frozenset(name for step in steps if not _reloads(step) for name in step.writes)


@dataclass(frozen=True, slots=True)
class Counter:
    """A register that changes by the same step in each iteration; ``bits`` is its width."""

    register: str
    step: int
    bits: int


@lru_cache(_KEPT_LOOPS)
def counters(texts: tuple[str, ...]) -> tuple[Counter, ...]:
    """Registers that count the iterations: written once, by a constant."""
    writers = [name for text in texts for name in _step(text).writes]
    found = filter(None, map(counting, texts))
    return tuple(counter for counter in found if writers.count(counter.register) == 1)


def counting(text: str) -> Counter | None:
    """What an instruction does that adds a constant to a register; None for any other."""
    match = _COUNTS.fullmatch(_plain(text).split("#")[0].strip())
    if match is None:
        return None
    printed = match["register"]
    step = int(match["step"] or "1", 0) * (-1 if match["down"] else 1)
    narrow = printed.startswith("e") or printed.endswith("d")
    return Counter(whole_name(printed), step, 32 if narrow else 64) if step else None


@lru_cache(_KEPT_TEXTS)
def memory_operand(text: str) -> Operand | None:
    """The memory operand of an instruction that is not on the stack; None without one.

    One relative to the program counter has the base ``rip``; its displacement is that of the text,
    see ``absolute``.
    """
    plain = _plain(text)
    match = _MEMORY.search(plain)
    if match is None or plain.startswith(("lea", "nop")):
        return None
    base = whole_name(match["base"] or "")
    if base == "rsp":
        return None
    operands = _operands(plain)
    written = _writes_last(plain) and bool(operands) and "(" in operands[-1]
    return Operand(
        displacement=int(match["disp"] or "0", 0),
        base=base,
        index=whole_name(match["index"] or ""),
        scale=int(match["scale"] or 1),
        written=written,
    )


@lru_cache(_KEPT_LOOPS)
def operands_at(texts: tuple[str, ...]) -> tuple[Operand, ...]:
    """Memory operands of the last instructions before a sample whose registers still hold.

    Args:
        texts: in order; the last is the one that is to be executed next.
    """
    found: list[Operand] = []
    changed: set[str] = set()
    for place, text in enumerate(reversed(texts)):
        if place:
            changed |= _step(text).writes
        operand = memory_operand(text)
        if operand is not None and not {operand.base, operand.index} & changed:
            found.append(operand)
    return tuple(found)


def absolute(text: str, following: int) -> str:
    """The text with an operand relative to the program counter given by its address in the file.

    Args:
        following: the address of the next instruction, to which the displacement is relative.
    """
    return _RELATIVE.sub(lambda found: f"{int(found[1] or '0', 0) + following:#x}(%rip)", text)


def whole_name(register: str) -> str:
    """The 64-bit or widest register that a name is part of."""
    name = register.lstrip("%")
    if match := re.fullmatch(r"r(\d+)[dwb]?", name):
        return f"r{match[1]}"
    if match := re.fullmatch(r"[xyz]mm(\d+)", name):
        return f"v{match[1]}"
    if match := re.fullmatch(r"[re]?([abcd])x|([abcd])[lh]", name):
        return f"r{match[1] or match[2]}x"
    if match := re.fullmatch(r"[re]?([sd]i|[sb]p)l?", name):
        return f"r{match[1]}"
    return name


def _is_constant(steps: Sequence[Step], place: int, name: str) -> bool:
    """Whether a register has the same value at that place in each iteration."""
    writer = _last_writer(steps, place, name)
    return writer < 0 or _reloads(steps[writer])


def _reloads(step: Step) -> bool:
    """A pointer that unoptimized code takes from its place on the stack again and again."""
    return step.text.startswith("mov") and any(_SLOT.fullmatch(name) for name in step.reads)


def _reached(steps: Sequence[Step], start: int) -> set[int]:
    """Loads whose address depends on the result of instruction ``start``, around the loop."""
    return _users(steps, start)[1]


def _users(steps: Sequence[Step], start: int) -> tuple[set[int], set[int]]:
    """Instructions that depend on the result of one, around the loop; loads whose address does."""
    seen: set[int] = set()
    by_address: set[int] = set()
    ahead = [start]
    while ahead:
        here = ahead.pop()
        for user in range(len(steps)):
            used = steps[here].writes & (steps[user].reads | steps[user].address)
            if not any(_last_writer(steps, user, name) == here for name in used):
                continue
            if steps[user].loads and steps[user].address & used:
                by_address.add(user)
            if user not in seen:
                seen.add(user)
                ahead.append(user)
    return seen, by_address


def _last_writer(steps: Sequence[Step], user: int, name: str) -> int:
    count = len(steps)
    for back in range(1, count + 1):
        place = (user - back) % count
        if name in steps[place].writes:
            return place
    return -1


@lru_cache(_KEPT_TEXTS)
def _step(text: str) -> Step:
    plain = _plain(text)
    operands = _operands(plain)
    mnemonic = plain.split()[0] if plain.split() else ""
    slots = [_SLOT.fullmatch(part) is not None for part in operands]
    memory = [part for part, slot in zip(operands, slots, strict=True) if "(" in part and not slot]
    address = frozenset(whole_name(r) for part in memory for r in _REGISTER.findall(part))
    plain_registers = [
        [part] if slot else [] if "(" in part else [whole_name(r) for r in _REGISTER.findall(part)]
        for part, slot in zip(operands, slots, strict=True)
    ]
    is_lea = mnemonic.startswith("lea")
    writes: set[str] = set()
    writes_last = _writes_last(plain)
    if operands and writes_last:
        writes = set(plain_registers[-1])
    reads = {name for names in plain_registers[:-1] for name in names}
    overwrites = mnemonic.startswith(_PLAIN_MOVES) or (
        mnemonic.startswith("v") and len(operands) > 2 and "fm" not in mnemonic
    )
    if operands and not (overwrites and writes_last):
        reads |= set(plain_registers[-1])
    if is_lea:
        reads |= address
    if _ZEROES.fullmatch(plain):
        reads = set()
    elif mnemonic in _EXTENDS_RAX:
        reads, writes = {"rax"}, {"rdx"}
    elif _WIDE.match(mnemonic) and len(operands) == 1:
        reads |= {"rax", *(("rdx",) if "div" in mnemonic else ())}
        writes, writes_last = {"rax", "rdx"}, False
    stores = writes_last and bool(operands) and operands[-1] in memory
    loads = bool(memory) and not is_lea and not (stores and mnemonic.startswith(("mov", "vmov")))
    return Step(
        plain, frozenset() if is_lea else address - {"rip"}, frozenset(reads), frozenset(writes),
        loads, stores,
    )  # fmt: skip


def _writes_last(plain: str) -> bool:
    return not plain.startswith((*_READS_ONLY, "j", "nop", "call", "ret", "pause"))


def _operands(plain: str) -> list[str]:
    """Operands at the commas outside of parentheses."""
    words = plain.split(None, 1)
    if len(words) < 2:
        return []
    parts, depth, part = [], 0, ""
    for letter in words[1].split("#")[0].split("<")[0]:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += letter
    return [*parts, part.strip()]


def _plain(text: str) -> str:
    """The instruction without prefixes."""
    words = text.split()
    while words and (words[0] in {"lock", "notrack", "bnd", "rep", "repz"} or words[0][0] == "{"):
        words = words[1:]
    return " ".join(words)
