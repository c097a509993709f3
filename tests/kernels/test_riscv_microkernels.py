"""The microkernels of RISC-V by themselves, in an emulator, against plain loops in C++."""

import pytest

from moe_prof.kernels.target import VECTOR_BITS
from tests.kernels.riscv_builds import compile_microkernels, run


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The kernels and their checks in one static program."""
    return compile_microkernels(tmp_path_factory.mktemp("riscv"))


@pytest.mark.parametrize("vector_bits", VECTOR_BITS)
def test_vector_kernels_are_right_at_every_length(program, vector_bits):
    """Tails, extremes and order of every kernel, elements behind tails and masks set to ones."""
    done = run(
        program, vector_bits=vector_bits, MOE_IME_GATE_UP="rvv", MOE_IME_DOWN="rvv"
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("qs8_gemm_8x16__rvv: 790 checks, 0 failed")


def test_matrix_kernels_are_right(program):
    """The products by vmadot, carried out by a handler, for every number of rows and tail of k."""
    done = run(program)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("qs8_gemm_8x16c8__ime: 790 checks, 0 failed")


@pytest.mark.parametrize(
    ("gate_up", "down", "name"),
    [("ime", "rvv", "qs8_gemm_8x16c8__ime+rvv"), ("rvv", "ime", "qs8_gemm_8x16__rvv+ime")],
)
def test_mixed_choices_are_right(program, gate_up, down, name):
    """Gate and up by one, down by the other: both tables are checked."""
    done = run(program, MOE_IME_GATE_UP=gate_up, MOE_IME_DOWN=down)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{name}: 790 checks, 0 failed")
