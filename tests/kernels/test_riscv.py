"""The variants of RISC-V in the static drivers, under an emulator, against the scalar baseline."""

import json
import re
import shutil
import struct
import subprocess

import pytest

from moe_prof.errors import UsageError
from moe_prof.kernels.elf import foreign_reason, machine_of
from moe_prof.kernels.table import BY_NAME
from moe_prof.kernels.target import VECTOR_BITS, target
from tests.kernels.riscv_builds import RISCV64, built, run

ODD_SHAPES = (
    (1, 1, 1, 1, 1), (1, 9, 31, 5, 2), (1, 33, 96, 257, 3), (1, 100, 33, 9, 9),
    (2, 31, 9, 5, 2), (5, 96, 100, 3, 1), (9, 33, 31, 9, 3), (33, 100, 33, 31, 4),
)  # fmt: skip


def result(variant, shape, *options, isa=None, vector_bits=256, **environment):
    """What the driver says after one forward of the variant, checked against scalar."""
    isa = isa or BY_NAME[variant].isas[0]
    args = (*shape, 1, "--json", "--variant", variant, *options)
    done = run(built().driver(isa), *args, vector_bits=vector_bits, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def assert_within_table(answer, variant):
    """Equal to the baseline within what the table states of the variant."""
    spec = BY_NAME[variant]
    assert answer["variant"] == variant
    assert answer["isa"] == spec.isas[0]
    assert answer["rel_rmse"] <= spec.rel_rmse
    assert answer["worst_error"] <= spec.worst_token


@pytest.mark.parametrize("shape", ODD_SHAPES, ids=str)
def test_portable_has_the_bits_of_scalar(shape):
    """Standard C++ keeps the order of the baseline on this architecture too."""
    checksum = {
        variant: result(variant, shape, "--threads", 2, isa="portable")["checksum"]
        for variant in ("scalar", "portable")
    }
    assert checksum["portable"] == checksum["scalar"]


@pytest.mark.parametrize("vector_bits", VECTOR_BITS)
@pytest.mark.parametrize("shape", ODD_SHAPES, ids=str)
def test_rvv_at_every_length(shape, vector_bits):
    """Odd sizes, with elements behind tails and masks set to ones."""
    answer = result("rvv", shape, vector_bits=vector_bits)
    assert_within_table(answer, "rvv")
    assert answer["microkernel"].endswith("16__rvv")


def test_rvv_has_the_same_bits_at_every_length():
    """The length of the registers changes no value."""
    sums = {result("rvv", (9, 96, 33, 9, 3), vector_bits=n)["checksum"] for n in VECTOR_BITS}
    assert len(sums) == 1


@pytest.mark.parametrize(
    "shape", [(1, 100, 33, 9, 3), (5, 33, 96, 5, 2), (40, 33, 31, 9, 3)], ids=str
)
def test_dispatched_by_vectors_with_several_threads(shape):
    """One token, few tokens and many, by one thread and by three: the same bits."""
    alone = result("rvv-dispatched", shape, "--threads", 1)
    assert_within_table(alone, "rvv-dispatched")
    team = result("rvv-dispatched", shape, "--threads", 3)
    assert team["checksum"] == alone["checksum"]


@pytest.mark.parametrize("shape", ODD_SHAPES, ids=str)
def test_ime(shape):
    """Odd sizes by vmadot, which a handler of the tests carries out."""
    answer = result("ime", shape)
    assert_within_table(answer, "ime")
    assert answer["microkernel"].endswith("16c8__ime")


@pytest.mark.parametrize("gate_up", ["ime", "rvv"])
@pytest.mark.parametrize("down", ["ime", "rvv"])
@pytest.mark.parametrize("tokens", [1, 6])
def test_choices_of_ime_and_rvv_give_the_same_bits(tokens, gate_up, down):
    """int8 products are exact, so that the choice by matrix changes no value."""
    shape = (tokens, 33, 40, 5, 2)
    mixed = result("ime", shape, MOE_IME_GATE_UP=gate_up, MOE_IME_DOWN=down)
    assert mixed["checksum"] == result("ime", shape)["checksum"]
    assert mixed["microkernel"].split("__")[1].startswith(gate_up)


def test_ime_refuses_other_lengths_of_vectors():
    """vmadot's tile has another shape there: the driver says what it wants."""
    done = run(built().driver("ime"), 1, 9, 9, 2, 1, 1, vector_bits=512)
    assert done.returncode == 2
    assert "this CPU lacks vector registers of 256 bits" in done.stderr


@pytest.mark.parametrize("variable", ["MOE_IME_GATE_UP", "MOE_IME_DOWN"])
def test_misspelt_choice_is_refused(variable):
    """Else the comparison of the four would measure one of them twice."""
    done = run(built().driver("ime"), 1, 9, 9, 2, 1, 1, **{variable: "vector"})
    assert done.returncode == 2
    assert done.stderr == f"moe_bench: {variable}=vector: choose ime or rvv\n"


def test_front_names_what_a_variant_lacks():
    """The driver that chooses the path says what the CPU has not, not that the name is unknown."""
    done = run(built().front, 1, 9, 9, 2, 1, 1, "--variant", "ime")
    assert done.returncode == 2
    assert done.stderr == (
        "moe_bench: variant 'ime' cannot run: for path ime this CPU lacks SpacemiT's matrix "
        "extension (vmadot)\n"
    )


def test_board_without_the_matrix_extension_is_told():
    """The driver for boards tries the instruction; here nothing carries it out."""
    done = run(built().folder / "moe_bench-ime", 1, 9, 9, 2, 1, 1)
    assert done.returncode == 2
    assert "lacks SpacemiT's matrix extension (vmadot)" in done.stderr


def test_cpu_without_vectors_is_told():
    """No illegal instruction kills the driver on a CPU without V."""
    argv = [RISCV64.command()[0], str(built().driver("rvv")), *"199211"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "path rvv cannot run: this CPU lacks vectors of version 1.0 (V)" in done.stderr


def words_of(program):
    """Mnemonics and raw instruction words of each function of the path's products."""
    objdump = shutil.which("riscv64-linux-gnu-objdump") or shutil.which("llvm-objdump-19")
    if objdump is None:
        pytest.skip("no objdump for riscv64 (binutils-riscv64-linux-gnu)")
    text = subprocess.run([objdump, "-d", str(program)], capture_output=True, text=True, check=True)
    functions = re.findall(r"<(moe_qs8_gemm\w+)>:\n(.*?)\n\n", text.stdout, re.DOTALL)
    return {
        name: re.findall(r"^ *[0-9a-f]+:\s+([0-9a-f]{4,8})\s+(\S+)", body, re.MULTILINE)
        for name, body in functions
    }


def test_products_are_vector_instructions():
    """The loop of eight rows widens the weights once for eight multiply-adds of 16 outputs."""
    code = words_of(built().driver("rvv"))["moe_qs8_gemm_8x16__rvv"]
    mnemonics = [mnemonic for _, mnemonic in code]
    assert mnemonics.count("vwmacc.vx") == 8 * mnemonics.count("vsext.vf2")
    assert not any(re.match(r"vs[1248]r|vl[1248]re", mnemonic) for mnemonic in mnemonics)  # spills


@pytest.mark.parametrize(("rows", "products"), [(1, 16), (4, 4), (8, 8)])
def test_products_are_matrix_instructions(rows, products):
    """vmadot as the extension encodes it, on even registers; as often as the kernel is written."""
    code = words_of(built().driver("ime"))[f"moe_qs8_gemm_{rows}x16c8__ime"]
    words = [int(word, 16) for word, _ in code if len(word) == 8]
    found = [word for word in words if word & 0xFE00707F == 0xE200302B]
    assert len(found) == products
    assert all(word >> 7 & 1 == 0 for word in found)


def test_target_is_static_and_named():
    """Drivers run on any board with that architecture; here they are told from this machine's."""
    driver = built().driver("rvv")
    assert machine_of(driver) == "riscv64"
    assert foreign_reason(driver, "riscv64") is None
    assert "is built for riscv64, this machine is" in foreign_reason(driver)
    header = driver.read_bytes()[:4096]
    table, size, count = struct.unpack_from("<Q14xHH", header, 32)
    kinds = {struct.unpack_from("<I", header, table + size * i)[0] for i in range(count)}
    interpreter = 3
    assert interpreter not in kinds


def test_unknown_target_is_refused():
    """A target that the project has no toolchain for is named, with those that it has."""
    with pytest.raises(UsageError, match="unknown target 'sparc'; known: riscv64"):
        target("sparc")
