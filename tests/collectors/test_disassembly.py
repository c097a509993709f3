"""objdump's text: mnemonics, targets, remarks."""

from __future__ import annotations

from pathlib import Path

import pytest

from moe_prof.collectors.disassembly import Instruction, argv, parse
from moe_prof.errors import InputError
from tests.collectors.fixture_files import recorded


def one(text: str) -> Instruction:
    """The instruction in one line of objdump's text."""
    return parse(f"  401000:\t{text}\n")[0]


def test_a_recorded_function_is_read_whole():
    """All 19 instructions of a recorded function."""
    code = parse(recorded("callgrind/roi.dot.objdump"))
    assert (len(code), code[0].address, code[-1].text) == (19, 0x1540, "ret")


def test_a_branch_has_its_target():
    """The closing branch of the recorded loop."""
    code = {i.address: i for i in parse(recorded("callgrind/roi.dot.objdump"))}
    assert (code[0x1567].is_branch, code[0x1567].target) == (True, 0x1550)


def test_a_template_in_the_target_is_no_trouble():
    """Angle brackets inside the symbol's name."""
    found = one("jne    4010a0 <void f<int, g<long> >(int)+0x20>")
    assert found.target == 0x4010A0


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("vmovss 0x2ef4(%rip),%xmm0        # 2004 <c>", "vmovss 0x2ef4(%rip),%xmm0"),
        ("add    x0, x0, #0x40", "add x0, x0, #0x40"),
        ("b.ne\t4004 <f+0x4>  // b.any", "b.ne 4004 <f+0x4>"),
        ("lea    0x0(,%rax,4),%rdx", "lea 0x0(,%rax,4),%rdx"),
    ],
)
def test_remarks_are_cut(text, clean):
    """objdump's remarks go, immediates with a number sign stay."""
    assert one(text).text == clean


@pytest.mark.parametrize(
    "text",
    [
        "jmp    401000 <f>",
        "jne    401000 <f>",
        "notrack jmp *%rax",
        "loop   401000 <f>",
        "b.ne   401000 <f>",
        "cbnz   w0, 401000 <f>",
        "tbz    w0, #3, 401000 <f>",
        "bnez   a5,401000 <f>",
        "bltu   a5,a4,401000 <f>",
        "j      401000 <f>",
    ],
)
def test_branches_of_three_architectures(text):
    """x86, aarch64 and RISC-V jumps."""
    assert one(text).is_branch


@pytest.mark.parametrize("text", ["ret", "add $0x1,%rax", "bswap %eax", "bl 40 <f>", "call 40 <f>"])
def test_what_is_no_branch(text):
    """Calls, returns and names that begin alike."""
    assert not one(text).is_branch


@pytest.mark.parametrize("text", ["call   1050 <expf@plt>", "call   *%rax", "bl 40 <f>", "syscall"])
def test_calls(text):
    """Calls of functions and of the system."""
    assert one(text).is_call


def test_a_prefix_is_not_the_mnemonic():
    """Braces and prefixes are skipped."""
    assert [one("{vex} vpdpbusd %ymm0,%ymm1,%ymm2").mnemonic, one("lock incl (%rax)").mnemonic] == [
        "vpdpbusd",
        "incl",
    ]


def test_att_syntax_is_asked_for_on_x86_only():
    """aarch64's objdump would refuse the option."""
    binary = Path("/x")
    assert ("-M" in argv(binary, 0, 9, x86=True), "-M" in argv(binary, 0, 9, x86=False)) == (
        True,
        False,
    )


@pytest.mark.parametrize("text", ["", "a.out: file format elf64-x86-64\n", "garbage\n"])
def test_text_without_instructions_is_an_error(text):
    """An empty range is refused, not read as an empty function."""
    with pytest.raises(InputError, match="no instructions"):
        parse(text)


def test_jumps_in_a_file_without_symbols():
    """objdump gives the bare address; constants of other instructions stay what they are."""
    text = "  401618:\tmov    $0x10,%eax\n  40161e:\tjne    0x401610\n  401620:\tbnd jmp 0x401600\n"
    found = parse(text)
    assert [one.target for one in found] == [None, 0x401610, 0x401600]
    assert found[1].text == "jne 401610 <?>"
    assert found[0].text == "mov $0x10,%eax"
