"""The loops of a path's kernels as the compiler built them, and what they ask of a core.

Compiles sources, reads objdump's text, finds a function's loop by what it must hold, and counts its
loads, stores and vector operations. Nothing is measured or run.

Sources of the costs: Intel 64 and IA-32 Architectures Optimization Reference Manual (Sapphire
Rapids: 512-bit vectors on two ports, two loads and one store of a line a cycle, six instructions a
cycle, 48 bytes a cycle from L2); uops.info (operations of an instruction, the divider).
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from moe_prof.collectors import disassembly
from moe_prof.collectors.callgrind_format import FunctionKey
from moe_prof.collectors.disassembly import Instruction
from moe_prof.collectors.hotloop import CountedInstruction, HotLoop, loops_of
from moe_prof.errors import UnavailableError
from moe_prof.kernels.compiler import find_compiler

L2_BYTES_PER_CYCLE = 48

_FLAGS = ("-std=c++17", "-O3", "-ffp-contract=off", "-fPIC", "-c")
_FUNCTION = re.compile(r"^[0-9a-f]+ <(moe_\w+)>:$\n(.*?)(?=^$|\Z)", re.MULTILINE | re.DOTALL)
_MEMORY = re.compile(r"\([^)]*\)")
_MOVES = ("vmov", "vpbroadcast", "vbroadcast", "prefetch")
_VECTOR_PORTS, _LOADS, _STORES, _INSTRUCTIONS = 2, 2, 1, 6
_OPERATIONS = {"vscalefps": 2, "vpmovdb": 2, "vdivps": 3}  # others are one
_DIVIDER_CYCLES = 10  # vdivps of 512 bits


def compiled(sources: Iterable[Path], flags: Sequence[str], folder: Path) -> dict[
    str, tuple[Instruction, ...]
]:  # fmt: skip
    """The instructions of each function of the sources.

    Raises:
        UnavailableError: the compiler or objdump is missing, or failed.
    """
    compiler = find_compiler()
    found: dict[str, tuple[Instruction, ...]] = {}
    for source in sources:
        out = folder / f"{source.stem}.o"
        _output([*compiler.argv, *_FLAGS, *flags, "-o", str(out), str(source)])
        text = _output(["objdump", "-d", "--no-show-raw-insn", "--wide", "-M", "att", str(out)])
        found |= functions_of(text)
    return found


def functions_of(text: str) -> dict[str, tuple[Instruction, ...]]:
    """The instructions of each microkernel in objdump's text."""
    return {match[1]: disassembly.parse(match[2]) for match in _FUNCTION.finditer(text)}


def loop_with_most(name: str, code: Sequence[Instruction], mnemonic: str) -> HotLoop | None:
    """The innermost loop with the most instructions of one kind, None when there is none."""
    once = {instruction.address: 1 for instruction in code}
    loops = loops_of(FunctionKey("", "", name), code, once, total=len(code))
    inner = [loop for loop in loops if loop.innermost and occurrences(loop, mnemonic)]
    return max(inner, key=lambda loop: occurrences(loop, mnemonic), default=None)


def occurrences(loop: HotLoop, mnemonic: str) -> int:
    """How many instructions of the loop are of that kind."""
    return sum(mnemonic in instruction.text.split()[:2] for instruction in loop.instructions)


def loads_of(loop: HotLoop) -> int:
    """Instructions of the loop that read memory."""
    return sum(_reads(instruction) for instruction in loop.instructions)


@dataclass(frozen=True, slots=True)
class Demand:
    """What one turn of a loop asks of a core with two 512-bit units, in cycles of each part."""

    vectors: float
    divider: float
    loads: float
    stores: float
    issue: float

    @property
    def cycles(self) -> float:
        """What binds."""
        return max(self.vectors, self.divider, self.loads, self.stores, self.issue)

    @property
    def bound(self) -> str:
        """Its name."""
        parts = ("vectors", "divider", "loads", "stores", "issue")
        return max(parts, key=lambda part: float(getattr(self, part)))


def demand_of(loop: HotLoop) -> Demand:
    """Counted from the instructions, all of 512 bits."""
    operations, divisions = 0, 0
    for instruction in loop.instructions:
        mnemonic = instruction.text.split()[0]
        divisions += mnemonic == "vdivps"
        if mnemonic.startswith("v") and not mnemonic.startswith(_MOVES):
            operations += _OPERATIONS.get(mnemonic, 1)
    stores = sum(_writes(instruction) for instruction in loop.instructions)
    return Demand(
        operations / _VECTOR_PORTS, divisions * _DIVIDER_CYCLES, loads_of(loop) / _LOADS,
        stores / _STORES, len(loop.instructions) / _INSTRUCTIONS,
    )  # fmt: skip


def _writes(instruction: CountedInstruction) -> bool:
    words = instruction.text.split()
    return words[0].startswith(("vmov", "vpmov", "mov")) and words[-1].endswith(")")


def _reads(instruction: CountedInstruction) -> bool:
    mnemonic = next(word for word in instruction.text.split() if not word.startswith("{"))
    if mnemonic.startswith(("lea", "nop", "prefetch")):
        return False
    return _MEMORY.search(instruction.text) is not None and not _writes(instruction)


def _output(argv: Sequence[str]) -> str:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except OSError as error:
        raise UnavailableError(f"{argv[0]} cannot be run: {error.strerror}") from error
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()[:1] or ["no message"]
        raise UnavailableError(f"{argv[0]} failed: {said[0]}")
    return done.stdout
