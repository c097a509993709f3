"""Which of LLVM's models stands for a core."""

from __future__ import annotations

import pytest

from moe_prof.collectors.scheduling_models import ModelChoice, Target, choose
from moe_prof.machine.microarchitecture import CORES

LLVM_14 = (
    "haswell", "skylake", "skylake-avx512", "cascadelake", "icelake-server", "sapphirerapids",
    "znver1", "znver2", "znver3", "neoverse-n2", "cortex-a57",
)  # fmt: skip
LLVM_19 = (*LLVM_14, "graniterapids", "znver4", "znver5", "neoverse-v1", "spacemit-x60")


def name(core: str | None, known: tuple[str, ...], version: int) -> str | None:
    """The name chosen for a core."""
    return choose(Target("x86_64", core), known=known, version=version).name


def test_a_core_with_its_own_model_is_taken():
    """No note is needed."""
    choice = choose(Target("x86_64", "znver3"), known=LLVM_14, version=14)
    assert choice == ModelChoice("znver3", "")


def test_llvm_14_has_no_znver4():
    """The relative is named, and that it is one."""
    choice = choose(Target("x86_64", "znver4"), known=LLVM_14, version=14)
    assert choice == ModelChoice("znver3", "llvm 14 has no model of znver4, znver3 stands in")


def test_a_name_with_a_lent_model_is_not_taken():
    """LLVM 14 accepts sapphirerapids, and computes with Skylake's tables."""
    assert name("sapphirerapids", LLVM_14, 14) == "icelake-server"


@pytest.mark.parametrize(
    ("core", "chosen"),
    [
        ("sapphirerapids", "sapphirerapids"),
        ("graniterapids", "sapphirerapids"),
        ("znver4", "znver4"),
        ("znver5", "znver4"),
        ("neoverse-v1", "neoverse-v1"),
    ],
)
def test_llvm_19(core, chosen):
    """Models of its own for some, the predecessor's for the others."""
    assert name(core, LLVM_19, 19) == chosen


def test_an_unknown_core_has_no_model():
    """No core is guessed."""
    choice = choose(Target("x86_64", None), known=LLVM_19, version=19)
    assert (choice.name, "unknown" in choice.note) == (None, True)


def test_a_core_without_relative_has_no_model():
    """An out-of-order core would not stand for an in-order one."""
    choice = choose(Target("riscv64", "spacemit-x60"), known=LLVM_19, version=19)
    assert choice == ModelChoice(
        None, "llvm 19 has no scheduling model of spacemit-x60 or a relative"
    )


def test_a_name_that_this_build_does_not_list_is_not_taken():
    """An LLVM built without a target."""
    assert name("znver3", ("haswell",), 19) is None


@pytest.mark.parametrize("core", CORES, ids=lambda core: core.name)
def test_every_known_core_has_a_row(core):
    """A core that is added to the machine's table is added here."""
    everything = tuple(c.compiler_name for c in CORES) + LLVM_19
    assert name(core.compiler_name, everything, 99) is not None


@pytest.mark.parametrize(
    ("architecture", "x86"), [("x86_64", True), ("AMD64", True), ("aarch64", False)]
)
def test_att_syntax_is_for_x86(architecture, x86):
    """The target knows its syntax."""
    assert Target(architecture, None).is_x86 == x86
