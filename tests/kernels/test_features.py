"""Reading CPU features and deciding which paths run."""

import pytest

from moe_prof.errors import UsageError
from moe_prof.kernels.features import (
    BY_NAME,
    CpuFeatures,
    check_supported,
    missing,
    parse_cpuinfo,
    supported,
)

X86 = """processor\t: 0
vendor_id\t: AuthenticAMD
model name\t: AMD EPYC 7763 64-Core Processor
flags\t\t: fpu sse2 avx avx2 fma f16c bmi1 bmi2 abm movbe

processor\t: 1
model name\t: other
flags\t\t: fpu
"""
ARM = "processor\t: 0\nFeatures\t: fp asimd asimddp i8mm\nCPU part\t: 0xd40\n"
RISCV = "processor\t: 0\nhart\t\t: 0\nisa\t\t: rv64imafdcv_zba_zbb\nuarch\t\t: spacemit,x60\n"


@pytest.mark.parametrize(
    ("text", "machine", "model", "flag"),
    [
        (X86, "x86_64", "AMD EPYC 7763 64-Core Processor", "avx2"),
        (ARM, "aarch64", "0xd40", "i8mm"),
        (RISCV, "riscv64", "spacemit,x60", "rv64imafdcv_zba_zbb"),
    ],
)
def test_cpuinfo_of_each_architecture_is_read(text, machine, model, flag):
    """Model and flags come from the keys of x86, Arm and RISC-V; the first CPU counts."""
    cpu = parse_cpuinfo(text, machine)
    assert (cpu.model, flag in cpu.flags, cpu.machine) == (model, True, machine)


def test_letters_of_a_riscv_cpu_are_features():
    """The string of RISC-V extensions is taken apart, so that a path can ask for one of them."""
    cpu = parse_cpuinfo(RISCV, "riscv64")
    assert {"v", "c", "zba", "zbb"} <= cpu.flags
    assert supported(cpu) == ("native", "ime", "rvv", "portable")
    bare = parse_cpuinfo("isa\t: rv64imafdc\n", "riscv64")
    assert missing(BY_NAME["rvv"], bare) == ("v",)


def test_empty_cpuinfo_has_no_flags():
    """Nothing readable means no features, not an error."""
    assert parse_cpuinfo("", "x86_64") == CpuFeatures("x86_64", "", frozenset())


def test_avx2_runs_on_a_cpu_with_its_features():
    """All paths run on a CPU that has the flags, best first."""
    assert supported(parse_cpuinfo(X86, "x86_64")) == ("native", "avx2", "portable")


def test_avx2_does_not_run_on_another_architecture():
    """The x86 path is missing its CPU elsewhere."""
    cpu = parse_cpuinfo(ARM, "aarch64")
    assert missing(BY_NAME["avx2"], cpu) == ("a x86_64 CPU",)


def test_missing_features_are_named():
    """A refusal names each missing flag and the paths that do run."""
    cpu = CpuFeatures("x86_64", "old", frozenset({"avx2", "fma", "bmi1", "abm", "movbe"}))
    with pytest.raises(UsageError, match="lacks f16c, bmi2; paths that run here: native, portable"):
        check_supported("avx2", cpu)
