"""Issue slots from micro-operations."""

from __future__ import annotations

import pytest

from moe_prof.collectors.fusion import issue_slots
from moe_prof.collectors.llvm_mca_format import McaInstruction, parse
from tests.collectors.fixture_files import recorded

INTEL, AMD, ARM = ("SPRPort00",), ("Zn4ALU0",), ("N2UnitB",)


def op(text: str, uops: int = 1, *, load: bool = False, store: bool = False) -> McaInstruction:
    """One instruction of a listing."""
    return McaInstruction(text, uops, 1, 0.5, load, store, False)


@pytest.mark.parametrize(
    ("instruction", "slots"),
    [
        (op("addl (%rdi), %eax", 2, load=True), 1),
        (op("addl (%rdi,%rax), %eax", 2, load=True), 1),
        (op("vpaddd (%rdi), %ymm0, %ymm1", 2, load=True), 1),
        (op("vpaddd (%rdi,%rax), %ymm0, %ymm1", 2, load=True), 2),
        (op("vpdpbusd (%rdi,%rax), %ymm0, %ymm1", 2, load=True), 1),
        (op("movl %eax, (%rdi)", 2, store=True), 1),
        (op("addl %eax, (%rdi)", 4, load=True, store=True), 2),
        (op("vextracti128 $1, %ymm0, %xmm1", 1), 1),
        (op("divl %ecx", 10), 10),
    ],
)
def test_intel_micro_fusion(instruction, slots):
    """A load and its operation, a store's two parts; not when un-laminated."""
    assert issue_slots([instruction], INTEL)[0] == slots


def test_a_compare_and_its_jump_share_a_slot():
    """On both makers' cores."""
    pair = [op("cmpq %rax, %rdx"), op("jne .L1")]
    assert [issue_slots(pair, core)[0] for core in (INTEL, AMD)] == [1, 1]


def test_an_addition_and_a_jump_fuse_on_intel_only():
    """AMD fuses compare and test."""
    pair = [op("addq $1, %rax"), op("jne .L1")]
    assert [issue_slots(pair, core)[0] for core in (INTEL, AMD)] == [1, 2]


def test_an_unconditional_jump_does_not_fuse():
    """Only conditional ones do."""
    assert issue_slots([op("cmpq %rax, %rdx"), op("jmp .L1")], INTEL)[0] == 2


def test_what_stands_between_prevents_fusion():
    """The two must be neighbours."""
    code = [op("cmpq %rax, %rdx"), op("movl %eax, %ebx"), op("jne .L1")]
    assert issue_slots(code, INTEL)[0] == 3


def test_amd_counts_a_load_and_its_operation_once_already():
    """Two macro-operations stay two."""
    assert issue_slots([op("vpaddd (%rdi), %ymm0, %ymm1", 2, load=True)], AMD)[0] == 2


def test_other_cores_are_left_alone():
    """And the note says so."""
    slots, note = issue_slots([op("cmp w0, w1"), op("b.ne .L1")], ARM)
    assert (slots, "no fusion rules" in note) == (2, True)


def test_a_recorded_loop():
    """Seven micro-operations, six slots: the closing compare and jump are one."""
    report = parse(recorded("llvm_mca/dot-14.json"))
    assert issue_slots(report.listing, report.resources)[0] == 6
