"""Instructions and cycles of each int8 microkernel's inner loop, beside its multiplier's rate.

Compiles the microkernels of every x86 path, finds the loop that multiplies, and prints its
instructions per turn, multiply-adds per instruction, llvm-mca's multiply-adds per cycle on a CPU of
the path, and their share of what the multiplier allows. Nothing is measured or run.

llvm-mca's figures for tiles mean nothing, so tiles are counted: a product takes as many cycles as
it has rows, a load eight, both at once. Source: Intel 64 and IA-32 Architectures Optimization
Reference Manual, Sapphire Rapids' tile instructions; for the other rates uops.info.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from moe_prof.collectors import disassembly, llvm_mca
from moe_prof.collectors.callgrind_format import FunctionKey
from moe_prof.collectors.disassembly import Instruction
from moe_prof.collectors.hotloop import HotLoop, loops_of
from moe_prof.collectors.llvm_mca import Mca
from moe_prof.errors import MoeProfError, UnavailableError
from moe_prof.kernels.build import SOURCE_DIR
from moe_prof.kernels.compiler import find_compiler

PACKED = SOURCE_DIR / "cpp" / "packed"
_FLAGS = ("-std=c++17", "-O3", "-ffp-contract=off", "-fPIC", "-c")
_FUNCTION = re.compile(r"^[0-9a-f]+ <(moe_\w+)>:$\n(.*?)(?=^$|\Z)", re.MULTILINE | re.DOTALL)
_PAGE_COLUMNS = 100
_NOTES = (
    "instr.: of one turn of the inner loop. bound: the multiplying instruction at its full rate.",
    "llvm-mca gives 512-bit products one port, as client cores have; servers with a second 512-bit "
    "unit have two, which the bound counts.",
    "Tiles are counted, since llvm-mca has no figures for them: a product takes a cycle per row, a "
    "load 8; what stands around the loop is left out.",
)


@dataclass(frozen=True, slots=True)
class Multiplier:
    """What multiplies on one path.

    Attributes:
        isa: the path.
        flags: that its sources are compiled with.
        pattern: of the sources that hold its products.
        mnemonic: of the multiplying instruction.
        macs: exact int8 multiply-adds of one; for tiles, of one row.
        per_cycle: such instructions per cycle; for tiles, rows.
        cpu: llvm-mca's name of a CPU that has it; "" where its model knows nothing.
    """

    isa: str
    flags: tuple[str, ...]
    pattern: str
    mnemonic: str
    macs: int
    per_cycle: int
    cpu: str

    @property
    def peak(self) -> int:
        """Multiply-adds per cycle."""
        return self.macs * self.per_cycle


MULTIPLIERS = (
    # vpmaddwd adds its pairs on the same ports: two instructions for 32 exact products.
    Multiplier("avx2", ("-march=x86-64-v3",), "qs8_gemm_?x*.cpp", "vpmaddubsw", 32, 1, "znver3"),
    Multiplier(
        "avx_vnni", ("-march=x86-64-v3", "-mavxvnni"), "qu8s8_gemm_?x*.cpp", "vpdpbusd", 32, 2,
        "alderlake",
    ),
    Multiplier(
        "avx512_vnni", ("-march=x86-64-v4", "-mavx512vnni"), "qu8s8_gemm_?x*.cpp", "vpdpbusd", 64,
        2, "sapphirerapids",
    ),
    Multiplier(
        "amx_int8", ("-march=x86-64-v4", "-mavx512vnni", "-mamx-tile", "-mamx-int8"),
        "qu8s8_gemm_*.cpp", "tdpbusd", 1024, 1, "",
    ),
)  # fmt: skip
_TILE_ROWS = 16
_TILE_LOAD_CYCLES = 8


@dataclass(frozen=True, slots=True)
class Line:
    """One microkernel's inner loop.

    Attributes:
        rows: of activations.
        instructions / macs: per turn.
        cycles: per turn, None with the reason in ``note``.
    """

    isa: str
    kernel: str
    rows: int
    instructions: int
    macs: int
    cycles: float | None
    peak: int
    note: str

    @property
    def share(self) -> float | None:
        """Part of the multiplier's rate, 0..1."""
        return None if self.cycles is None else self.macs / self.cycles / self.peak


def functions_of(text: str) -> dict[str, tuple[Instruction, ...]]:
    """The instructions of each microkernel in objdump's text."""
    return {match[1]: disassembly.parse(match[2]) for match in _FUNCTION.finditer(text)}


def multiplying_loop(name: str, code: Sequence[Instruction], mnemonic: str) -> HotLoop | None:
    """The innermost loop with the most multiplying instructions, None when there is none."""
    once = {instruction.address: 1 for instruction in code}
    loops = loops_of(FunctionKey("", "", name), code, once, total=len(code))
    inner = [loop for loop in loops if loop.innermost and products(loop, mnemonic)]
    return max(inner, key=lambda loop: products(loop, mnemonic), default=None)


def products(loop: HotLoop, mnemonic: str) -> int:
    """How many instructions of the loop multiply."""
    return sum(mnemonic in instruction.text.split()[:2] for instruction in loop.instructions)


def rows_of(name: str) -> int:
    """The most rows of a kernel, from its name: moe_qu8s8_gemm_<rows>x..."""
    return int(name.partition("_gemm_")[2].partition("x")[0])


def tile_line(name: str, loop: HotLoop, multiplier: Multiplier) -> Line:
    """Tiles, by count: the multiplier and the loads work at the same time."""
    rows = rows_of(name)
    tiles = products(loop, multiplier.mnemonic)
    loads = sum(i.text.startswith("tileloadd") for i in loop.instructions)
    tile_rows = min(rows, _TILE_ROWS)
    cycles = max(tiles * tile_rows / multiplier.per_cycle, loads * _TILE_LOAD_CYCLES)
    bound = "loads" if loads * _TILE_LOAD_CYCLES > tiles * tile_rows else "products"
    return Line(
        multiplier.isa, name, rows, len(loop.instructions), tiles * tile_rows * multiplier.macs,
        cycles, multiplier.peak, f"{tiles} products, {loads} loads: {bound} bind",
    )  # fmt: skip


def vector_line(
    name: str, loop: HotLoop, multiplier: Multiplier, *, mca: Mca | str, folder: Path
) -> Line:
    """Vectors, by llvm-mca; mca: the tool, or why there is none."""
    cycles, note = None, ""
    if isinstance(mca, str):
        note = mca
    else:
        try:
            found = llvm_mca.run(mca, multiplier.cpu, loop, folder=folder, name=name)
            cycles, note = found.simulated_cycles, f"{multiplier.cpu}: {found.bound} binds"
        except UnavailableError as error:
            note = str(error)
    macs = products(loop, multiplier.mnemonic) * multiplier.macs
    return Line(
        multiplier.isa, name, rows_of(name), len(loop.instructions), macs, cycles, multiplier.peak,
        note,
    )  # fmt: skip


def lines_of(multiplier: Multiplier, mca: Mca | str, folder: Path) -> list[Line]:
    """The path's microkernels, by rows.

    Raises:
        UnavailableError: the compiler or objdump is missing.
    """
    compiler = find_compiler()
    lines = []
    for source in sorted((PACKED / multiplier.isa).glob(multiplier.pattern)):
        out = folder / f"{source.stem}.o"
        _output([*compiler.argv, *_FLAGS, *multiplier.flags, "-o", str(out), str(source)])
        text = _output(["objdump", "-d", "--no-show-raw-insn", "--wide", "-M", "att", str(out)])
        for name, code in functions_of(text).items():
            loop = multiplying_loop(name, code, multiplier.mnemonic)
            if loop is None:
                continue
            if multiplier.cpu:
                lines.append(vector_line(name, loop, multiplier, mca=mca, folder=folder))
            else:
                lines.append(tile_line(name, loop, multiplier))
    return sorted(lines, key=lambda line: line.rows)


def table(lines: Sequence[Line]) -> Table:
    """The one table."""
    made = Table(box=None, pad_edge=False)
    for heading in ("path", "rows", "instr.", "MAC/instr.", "MAC/cycle", "bound", "share"):
        made.add_column(heading, justify="left" if heading == "path" else "right", no_wrap=True)
    made.add_column("cycles from")
    for line in lines:
        rate = "-" if line.cycles is None else f"{line.macs / line.cycles:.1f}"
        share = "-" if line.share is None else f"{line.share:.0%}"
        made.add_row(
            line.isa, str(line.rows), str(line.instructions),
            f"{line.macs / line.instructions:.1f}", rate, str(line.peak), share, line.note,
        )  # fmt: skip
    return made


def _output(argv: Sequence[str]) -> str:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except OSError as error:
        raise UnavailableError(f"{argv[0]} cannot be run: {error.strerror}") from error
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()[:1] or ["no message"]
        raise UnavailableError(f"{argv[0]} failed: {said[0]}")
    return done.stdout


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; returns the exit code."""
    parser = argparse.ArgumentParser(prog="instruction_table", description=__doc__)
    names = [multiplier.isa for multiplier in MULTIPLIERS]
    parser.add_argument("--isa", nargs="+", choices=names, default=names, help="paths (all)")
    options = parser.parse_args(argv)
    found = llvm_mca.find_mca()
    mca = found if isinstance(found, Mca) else found.reason
    try:
        with tempfile.TemporaryDirectory() as folder:
            lines = [
                line
                for multiplier in MULTIPLIERS
                if multiplier.isa in options.isa
                for line in lines_of(multiplier, mca, Path(folder))
            ]
    except MoeProfError as error:
        sys.stderr.write(f"instruction_table: {error}\n")
        return error.exit_code
    console = Console(width=_PAGE_COLUMNS)
    console.print(table(lines))
    for note in _NOTES:
        console.print(note, style="dim")
    return 0


if __name__ == "__main__":
    sys.exit(main())
