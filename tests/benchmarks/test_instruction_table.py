"""The instruction table: which loop it takes, and how it counts."""

import pytest

from benchmarks import instruction_table as table
from benchmarks import layer_counts
from benchmarks.compiled_loops import demand_of, functions_of, loop_with_most, occurrences
from moe_prof.scenario import parse

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
    return loop_with_most(name, functions_of(TEXT)[name], mnemonic)


def test_functions_are_told_apart():
    """Each function has its own instructions."""
    found = functions_of(TEXT)
    assert {name: len(code) for name, code in found.items()} == {VECTORS: 11, TILES: 5}


def test_loop_with_most_products_is_taken():
    """The remainder's loop and what stands outside of loops do not count."""
    loop = loop_of(VECTORS, "vpdpbusd")
    assert (loop.start, loop.end, occurrences(loop, "vpdpbusd")) == (0x6, 0x14, 2)


def test_function_without_products_has_no_loop():
    """Another instruction's loops are none."""
    assert loop_of(VECTORS, "vpmaddubsw") is None


def test_absent_simulator_leaves_cycles_open(tmp_path):
    """Instructions and loads are counted without llvm-mca; shares are missing, not zero."""
    line = table.vector_line(
        VECTORS, loop_of(VECTORS, "vpdpbusd"), BY_ISA["avx_vnni"], mca="not here", folder=tmp_path
    )
    assert (line.rows, line.instructions, line.macs) == (2, 5, 64)
    assert (line.simulated, line.share, line.share_from_l2) == (None, None, None)
    assert (line.loads, line.note) == (64 * 3, "not here")


@pytest.mark.parametrize(
    ("rows", "lines", "share", "share_from_l2"),
    [(5, 21, 5 / 52, 5 / 52), (16, 32, 16 / 52, 16 / 52), (32, 32, 16 / 52, 16 / 52)],
)
def test_tiles_are_counted(rows, lines, share, share_from_l2):
    """One product of r cycles, a tile of r rows and one of 16 loaded, a chain of 52 cycles."""
    name = TILES.replace("5x", f"{rows}x")
    line = table.tile_line(name, loop_of(TILES, "tdpbusd"), BY_ISA["amx_int8"])
    macs = min(rows, 16) * 1024
    assert (line.macs, line.loads, line.simulated) == (macs, macs / lines * 2, macs / 52)
    assert (line.share, line.share_from_l2) == (share, share_from_l2)


def test_model_with_fewer_ports_does_not_bind():
    """llvm-mca's figure is shown, but where its CPU has one port less it takes nothing away."""
    line = table.Line("avx512_vnni", VECTORS, 2, 9, 512, 128, 200.0, 64.0, False, "")
    assert (line.share, line.share_from_l2) == (1, 48 * 2 / 128)


SILU = """
0000000000000000 <moe_silu>:
   0:\tvmovups (%rax),%zmm1
   4:\tvmulps (%rdx){1to16},%zmm1,%zmm2
   8:\tvscalefps %zmm2,%zmm1,%zmm1
   c:\tvdivps %zmm1,%zmm2,%zmm3
  10:\tvmovups %zmm3,(%rcx)
  14:\tjne    0 <moe_silu>
  16:\tret
"""


def test_demand_of_a_loop():
    """Operations on two ports, the divider, two loads and one store a cycle; the divider binds."""
    demand = demand_of(loop_with_most("moe_silu", functions_of(SILU)["moe_silu"], "vdivps"))
    assert (demand.vectors, demand.divider, demand.loads, demand.stores) == (3, 10, 1, 1)
    assert (demand.cycles, demand.bound, demand.issue) == (10, "divider", 1)


@pytest.mark.parametrize(
    ("rows", "from_l2", "cycles"),
    [(1, False, 16), (2, False, 32), (2, True, 128 / 3), (3, False, 26), (16, False, 32),
     (16, True, 128 / 3), (32, False, 64), (32, True, 64)],
)  # fmt: skip
def test_block_takes_what_binds(rows, from_l2, cycles):
    """One step of 64 k and 32 channels, as the comment in rows__amx_int8.h has it."""
    assert layer_counts.block_cycles(rows, 64, 32, from_l2=from_l2) == pytest.approx(cycles)
    assert layer_counts.block_cycles(rows, 65, 33, from_l2=from_l2) == pytest.approx(4 * cycles)


def test_layer_is_summed_over_experts():
    """S3: sixteen experts of 32 rows and the shared one of 128; every value is counted once."""
    scenario = parse("S3")
    assert layer_counts.buckets(scenario) == [32] * 16 + [128]
    one = {kernel: layer_counts.Cost(1.0, "vectors") for kernel in layer_counts._KERNELS}
    layer = layer_counts.layer_cycles(scenario, one)
    assert layer.macs == 640 * 3 * 256 * 128
    assert layer.tiles_l1 == layer.macs / 1024
    assert layer.phases["SiLU"] == 640 * 128
    assert layer.phases["quantize x"] == 2 * 128 * 256
    assert layer.phases["router"] == 128 * 256 * 16


def test_large_router_goes_by_tiles():
    """S4's router multiplies by tiles and bounds every score; groups and few experts do not."""
    assert layer_counts.router_by_tiles(parse("S4"))
    assert not layer_counts.router_by_tiles(parse("S3"))
    assert not layer_counts.router_by_tiles(parse("deepseek-v3@32"))


def test_table_keeps_units_and_missing_values(tmp_path):
    """A missing rate is a dash."""
    line = table.vector_line(
        VECTORS, loop_of(VECTORS, "vpdpbusd"), BY_ISA["avx_vnni"], mca="not here", folder=tmp_path
    )
    made = table.table([line])
    headers = [column.header for column in made.columns]
    assert headers[2:8] == ["instr.", "MAC/instr.", "multiplier", "loads", "L1", "L2"]
    assert [list(column.cells) for column in made.columns[6:8]] == [["-"], ["-"]]
