"""Instructions and cycles of each int8 microkernel's inner loop, beside its theoretical bounds.

Compiles the microkernels of every x86 path, finds the loop that multiplies, and prints its
instructions per turn, multiply-adds per instruction, and multiply-adds per cycle: as the multiplier
allows, as loads from L1 allow, as llvm-mca simulates the loop on a CPU of the path; then the part
of the multiplier's rate that is left, with the weights in L1 and in L2. ``--layer`` counts whole
layers of the AMX path instead (layer_counts.py). Nothing is measured or run.

llvm-mca's figures for tiles mean nothing, so tiles are counted: a product takes as many cycles as
it has rows, loads two lines a cycle, a chain of products 52 cycles each. Source: Intel 64 and IA-32
Architectures Optimization Reference Manual, Sapphire Rapids' tile instructions; for the other rates
uops.info.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import layer_counts
from benchmarks.compiled_loops import (
    L2_BYTES_PER_CYCLE,
    compiled,
    loads_of,
    loop_with_most,
    occurrences,
)
from moe_prof.collectors import llvm_mca
from moe_prof.collectors.hotloop import HotLoop
from moe_prof.collectors.llvm_mca import Mca
from moe_prof.errors import MoeProfError, UnavailableError
from moe_prof.kernels.build import SOURCE_DIR
from moe_prof.scenario import parse

PACKED = SOURCE_DIR / "cpp" / "packed"
_PAGE_COLUMNS = 100
_NOTES = (
    "instr.: of one turn of the inner loop. multiplier, loads: MAC/cycle that the multiplying "
    "instruction at its full rate and the loop's loads from L1 allow.",
    "L1, L2: the part of the multiplier's rate that all bounds leave, weights there. L2 gives "
    f"{L2_BYTES_PER_CYCLE} bytes a cycle, each of which serves as many MAC as there are rows.",
    "llvm-mca's CPUs: znver3, alderlake, sapphirerapids. It gives 512-bit products one port, as "
    "client cores have; servers with a second 512-bit unit have two, which the bound counts, and "
    "there its figure is no bound.",
    "Tiles are counted (products + loads of a turn), since llvm-mca has no figures for them: a "
    "product takes a cycle per row, loads two lines a cycle, the next product of an accumulator "
    "follows after 52 cycles.",
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
        loads: from L1 per cycle; for tiles, lines.
        cpu: llvm-mca's name of a CPU that has it; "" where its model knows nothing.
        one_port: that model has fewer multiplying ports than the CPUs that are meant.
    """

    isa: str
    flags: tuple[str, ...]
    pattern: str
    mnemonic: str
    macs: int
    per_cycle: int
    loads: int
    cpu: str
    one_port: bool = False

    @property
    def peak(self) -> int:
        """Multiply-adds per cycle."""
        return self.macs * self.per_cycle


MULTIPLIERS = (
    # vpmaddwd adds its pairs on the same ports: two instructions for 32 exact products.
    Multiplier("avx2", ("-march=x86-64-v3",), "qs8_gemm_?x*.cpp", "vpmaddubsw", 32, 1, 2, "znver3"),
    Multiplier(
        "avx_vnni", ("-march=x86-64-v3", "-mavxvnni"), "qu8s8_gemm_?x*.cpp", "vpdpbusd", 32, 2, 3,
        "alderlake",
    ),
    Multiplier(
        "avx512_vnni", ("-march=x86-64-v4", "-mavx512vnni"), "qu8s8_gemm_?x*.cpp", "vpdpbusd", 64,
        2, 2, "sapphirerapids", one_port=True,
    ),
    Multiplier(
        "amx_int8", layer_counts.FLAGS, "qu8s8_gemm_*.cpp", "tdpbusd", 1024, 1, 2, "",
    ),
)  # fmt: skip
TILE_ROWS = 16
CHAIN_CYCLES = 52


@dataclass(frozen=True, slots=True)
class Line:
    """One microkernel's inner loop; rates are multiply-adds per cycle.

    Attributes:
        rows: of activations.
        instructions / macs: per turn.
        loads: as loads from L1 allow.
        simulated: by llvm-mca, or for tiles as the chains of products allow; None with the reason
            in ``note``.
        binding: ``simulated`` is a bound of the CPUs that are meant.
    """

    isa: str
    kernel: str
    rows: int
    instructions: int
    macs: int
    peak: int
    loads: float
    simulated: float | None
    binding: bool
    note: str

    @property
    def share(self) -> float | None:
        """Part of the multiplier's rate with the weights in L1, 0..1."""
        if self.simulated is None:
            return None
        bounds = (self.peak, self.loads, *((self.simulated,) if self.binding else ()))
        return float(min(bounds)) / self.peak

    @property
    def share_from_l2(self) -> float | None:
        """The same with the weights in L2."""
        if self.share is None:
            return None
        return min(self.share, L2_BYTES_PER_CYCLE * self.rows / self.peak)


def rows_of(name: str) -> int:
    """The most rows of a kernel, from its name: moe_qu8s8_gemm_<rows>x..."""
    return int(name.partition("_gemm_")[2].partition("x")[0])


def tile_line(name: str, loop: HotLoop, multiplier: Multiplier) -> Line:
    """Tiles, by count: multiplier, loads and chains work at the same time."""
    rows = rows_of(name)
    products = [i.text.split()[1] for i in loop.instructions if i.text.startswith("tdp")]
    of_rows = {operands.split(",")[1] for operands in products}
    chains = {operands.split(",")[2] for operands in products}
    loaded = [i.text.rpartition(",")[2] for i in loop.instructions if i.text.startswith("tileload")]
    tile_rows = min(rows, TILE_ROWS)
    lines = sum(tile_rows if tile in of_rows else TILE_ROWS for tile in loaded)
    macs = len(products) * tile_rows * multiplier.macs
    chain = macs / (len(products) / len(chains) * CHAIN_CYCLES)
    note = f"{len(products)} + {len(loaded)} loads, chains {chain:.0f}"
    return Line(
        multiplier.isa, name, rows, len(loop.instructions), macs, multiplier.peak,
        macs / lines * multiplier.loads, chain, True, note,
    )  # fmt: skip


def vector_line(
    name: str, loop: HotLoop, multiplier: Multiplier, *, mca: Mca | str, folder: Path
) -> Line:
    """Vectors, with llvm-mca; mca: the tool, or why there is none."""
    macs = occurrences(loop, multiplier.mnemonic) * multiplier.macs
    simulated, note = None, ""
    if isinstance(mca, str):
        note = mca
    else:
        try:
            found = llvm_mca.run(mca, multiplier.cpu, loop, folder=folder, name=name)
            simulated = macs / found.simulated_cycles
            note = f"{simulated:.1f}, {found.bound}"
        except UnavailableError as error:
            note = str(error)
    return Line(
        multiplier.isa, name, rows_of(name), len(loop.instructions), macs, multiplier.peak,
        macs / loads_of(loop) * multiplier.loads, simulated, not multiplier.one_port, note,
    )  # fmt: skip


def lines_of(multiplier: Multiplier, mca: Mca | str, folder: Path) -> list[Line]:
    """The path's microkernels, by rows.

    Raises:
        UnavailableError: the compiler or objdump is missing.
    """
    sources = sorted((PACKED / multiplier.isa).glob(multiplier.pattern))
    lines = []
    for name, code in compiled(sources, multiplier.flags, folder).items():
        loop = loop_with_most(name, code, multiplier.mnemonic)
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
    headings = ("path", "rows", "instr.", "MAC/instr.", "multiplier", "loads", "L1", "L2")
    for heading in headings:
        made.add_column(heading, justify="left" if heading == "path" else "right", no_wrap=True)
    made.add_column("llvm-mca, what binds", no_wrap=True)
    for line in lines:
        shares = (
            "-" if part is None else f"{part:.0%}" for part in (line.share, line.share_from_l2)
        )
        made.add_row(
            line.isa, str(line.rows), str(line.instructions),
            f"{line.macs / line.instructions:.1f}", str(line.peak), f"{line.loads:.0f}", *shares,
            line.note,
        )  # fmt: skip
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; returns the exit code."""
    parser = argparse.ArgumentParser(prog="instruction_table", description=__doc__)
    names = [multiplier.isa for multiplier in MULTIPLIERS]
    parser.add_argument("--isa", nargs="+", choices=names, default=names, help="paths (all)")
    parser.add_argument(
        "--layer", nargs="+", metavar="SCENARIO", help="count these layers of the AMX path instead"
    )
    options = parser.parse_args(argv)
    console = Console(width=_PAGE_COLUMNS)
    notes: tuple[str, ...] = _NOTES
    found = llvm_mca.find_mca()
    mca = found if isinstance(found, Mca) else found.reason
    try:
        with tempfile.TemporaryDirectory() as folder:
            if options.layer:
                scenarios = [parse(text) for text in options.layer]
                costs = layer_counts.costs(Path(folder))
                made, notes = layer_counts.table(scenarios, costs), layer_counts.NOTES
            else:
                chosen = [m for m in MULTIPLIERS if m.isa in options.isa]
                lines = [line for m in chosen for line in lines_of(m, mca, Path(folder))]
                made = table(lines)
    except MoeProfError as error:
        sys.stderr.write(f"instruction_table: {error}\n")
        return error.exit_code
    console.print(made)
    for note in notes:
        console.print(note, style="dim")
    return 0


if __name__ == "__main__":
    sys.exit(main())
