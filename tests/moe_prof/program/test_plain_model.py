"""Bounds of loops without a scheduling model: chains by latencies, issue by length."""

import pytest

from moe_prof.analysis.program_demands import Machine, ProgramEvidence
from moe_prof.program.plain_model import chain_cycles, latency_cycles, with_loops
from moe_prof.program.speeds import LoopSpeed

COUNT = ("sub $0x1,%rdx", "jne 10")
SUM = ("addsd %xmm1,%xmm0", *COUNT)
FOUR_SUMS = (*(f"addsd %xmm8,%xmm{n}" for n in range(4)), *COUNT)
HORNER = ("vmulsd %xmm1,%xmm0,%xmm0", "vaddsd %xmm2,%xmm0,%xmm0", *COUNT)
CHASE = ("mov (%rax),%rax", *COUNT)
HASH = ("xor (%rsi,%rdx,1),%rax", "imul %rcx,%rax", "add $0x8,%rdx", "cmp %rdi,%rdx", "jne 10")
SIMPLE = (
    "lea (%rax,%rcx,4),%r8", "xor %r8,%r9", "and $0xff,%r8", "add %r8,%r10", "or %r9,%r11",
    *COUNT,
)  # fmt: skip


@pytest.mark.parametrize(
    ("texts", "cycles"),
    [(SUM, 3), (FOUR_SUMS, 3), (HORNER, 6), (CHASE, 5), (HASH, 4), (SIMPLE, 1)],
)
def test_chains(texts, cycles):
    """By hand: the register that waits longest for itself, loads only where an address waits."""
    assert chain_cycles(texts) == pytest.approx(cycles, abs=0.01)


def test_latencies():
    """Of the beginning of the name; plain integer work takes a cycle."""
    found = [latency_cycles(text) for text in ("vfmadd231ps", "divsd", "imul", "add", "", "paddd")]
    assert found == [4, 13, 3, 1, 1, 1]


def evidence(texts, cycles_each, *, clock_hz=3e9, share=1.0):
    """A program of one loop that takes so many cycles an iteration."""
    e = ProgramEvidence(wall_s=1.0, user_s=1.0, sys_s=0.0, cpus=1,
                        machine=Machine(clock_hz=clock_hz, width=4))  # fmt: skip
    return with_loops(e, (LoopSpeed("p", 0x10, clock_hz / cycles_each, share, texts),))


def test_what_explains_the_cycles_is_named():
    """A chain, the issue width, and neither: other bounds are not guessed."""
    assert (evidence(SUM, 3).loop_bound, evidence(SUM, 3).loop_cycles) == ("dependency", 3e9)
    assert evidence(SIMPLE, 1.6).loop_bound == "issue"
    assert evidence(SIMPLE, 4).loop_bound is None
    assert evidence(SUM, 30).loop_cycles is None


def test_cold_loops_do_not_stand_for_the_program():
    """Nor is anything said where the clock is not known."""
    assert evidence(SUM, 3, share=0.2).loop_bound is None
    unknown = ProgramEvidence(wall_s=1.0, user_s=1.0, sys_s=0.0, cpus=1)
    assert with_loops(unknown, ()) == unknown
