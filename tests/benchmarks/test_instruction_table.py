"""The instruction table: which loop it takes, and how it counts."""

import pytest

from benchmarks import instruction_table as table

TEXT = """
kernel.o:     file format elf64-x86-64

Disassembly of section .text:

0000000000000000 <moe_qu8s8_gemm_2x16c4__avx_vnni>:
   0:\txor    %eax,%eax
   2:\t{vex} vpdpbusd %ymm1,%ymm2,%ymm4
   6:\tvpbroadcastd (%r9,%rax,1),%ymm2
   a:\t{vex} vpdpbusd %ymm1,%ymm2,%ymm4
   e:\t{vex} vpdpbusd %ymm0,%ymm2,%ymm3
  12:\tcmp    %rcx,%rax
  14:\tjne    6 <moe_qu8s8_gemm_2x16c4__avx_vnni+0x6>
  16:\tadd    $0x1,%rdx
  18:\t{vex} vpdpbusd %ymm0,%ymm2,%ymm3
  1c:\tjne    16 <moe_qu8s8_gemm_2x16c4__avx_vnni+0x16>
  1e:\tret

0000000000000020 <moe_qu8s8_gemm_5x32c64__amx_int8>:
  20:\ttileloadd (%rax,%rdi,1),%tmm4
  26:\ttileloadd (%rcx,%rdx,1),%tmm6
  2c:\ttdpbusd %tmm6,%tmm4,%tmm0
  31:\tjb     20 <moe_qu8s8_gemm_5x32c64__amx_int8>
  33:\tret
"""
VECTORS, TILES = "moe_qu8s8_gemm_2x16c4__avx_vnni", "moe_qu8s8_gemm_5x32c64__amx_int8"
BY_ISA = {multiplier.isa: multiplier for multiplier in table.MULTIPLIERS}


def loop_of(name, mnemonic):
    """The loop that the table takes from the text above."""
    return table.multiplying_loop(name, table.functions_of(TEXT)[name], mnemonic)


def test_functions_are_told_apart():
    """Each function has its own instructions."""
    found = table.functions_of(TEXT)
    assert {name: len(code) for name, code in found.items()} == {VECTORS: 11, TILES: 5}


def test_loop_with_most_products_is_taken():
    """The remainder's loop and what stands outside of loops do not count."""
    loop = loop_of(VECTORS, "vpdpbusd")
    assert (loop.start, loop.end, table.products(loop, "vpdpbusd")) == (0x6, 0x14, 2)


def test_function_without_products_has_no_loop():
    """Another instruction's loops are none."""
    assert loop_of(VECTORS, "vpmaddubsw") is None


def test_absent_simulator_leaves_cycles_open(tmp_path):
    """Instructions are counted without llvm-mca; cycles and share are missing, not zero."""
    line = table.vector_line(
        VECTORS, loop_of(VECTORS, "vpdpbusd"), BY_ISA["avx_vnni"], mca="not here", folder=tmp_path
    )
    assert (line.rows, line.instructions, line.macs) == (2, 5, 64)
    assert (line.cycles, line.share, line.note) == (None, None, "not here")


@pytest.mark.parametrize(
    ("name", "cycles", "share", "binds"),
    [(TILES, 16, 5 / 16, "loads"), (TILES.replace("5x", "16x"), 16, 1, "products"),
     (TILES.replace("5x", "32x"), 16, 1, "products")],
)  # fmt: skip
def test_tiles_are_counted(name, cycles, share, binds):
    """A product of r rows takes r cycles beside two loads of eight; a tile has 16 rows at most."""
    line = table.tile_line(name, loop_of(TILES, "tdpbusd"), BY_ISA["amx_int8"])
    assert (line.cycles, line.share) == (cycles, share)
    assert line.note == f"1 products, 2 loads: {binds} bind"


def test_table_keeps_units_and_missing_values(tmp_path):
    """A missing rate is a dash."""
    line = table.vector_line(
        VECTORS, loop_of(VECTORS, "vpdpbusd"), BY_ISA["avx_vnni"], mca="not here", folder=tmp_path
    )
    made = table.table([line])
    assert [column.header for column in made.columns][2:5] == ["instr.", "MAC/instr.", "MAC/cycle"]
    assert list(made.columns[4].cells) == ["-"]
