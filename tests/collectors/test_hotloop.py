"""Innermost loops from executed backward branches."""

from __future__ import annotations

import shutil

import pytest

from moe_prof.collectors import hotloop
from moe_prof.collectors.callgrind_format import CallgrindProfile, FunctionKey, parse
from moe_prof.collectors.disassembly import Instruction
from moe_prof.collectors.disassembly import parse as parse_objdump
from moe_prof.collectors.hotloop import HotLoop, address_ranges, hottest_functions, loops_of
from moe_prof.errors import InputError, UnavailableError
from tests.collectors.fixture_files import recorded

F = FunctionKey("/o", "f.c", "f")


@pytest.fixture
def profile() -> CallgrindProfile:
    """A recorded profile."""
    return parse(recorded("callgrind/roi.out"))


@pytest.fixture
def dot(profile) -> HotLoop:
    """The one loop of the recorded function."""
    function, counts = hottest_functions(profile)[0]
    code = parse_objdump(recorded("callgrind/roi.dot.objdump"))
    (loop,) = loops_of(function, code, counts, total=profile.body["Ir"])
    return loop


def code_of(*lines: tuple[int, str, int | None]) -> list[Instruction]:
    """Instructions from (address, text, target)."""
    return [Instruction(address, text, target) for address, text, target in lines]


def test_the_hottest_function_comes_first(profile):
    """dot has 280320 of 280746 instructions; main is below the threshold."""
    assert [(f.name, sum(c.values())) for f, c in hottest_functions(profile)] == [("dot", 280320)]


def test_the_recorded_loop_is_found(dot):
    """From the target of the closing branch up to the branch."""
    assert (dot.function, dot.start, dot.end, len(dot.instructions)) == ("dot", 0x1550, 0x1567, 7)


def test_iterations_are_exact(dot):
    """40 dot products of length 1000."""
    assert dot.iterations == 40000


def test_the_share_is_of_all_instructions(dot):
    """7 instructions, 40000 times, of 280746."""
    assert dot.share == 7 * 40000 / 280746


def test_instructions_are_in_order_with_text_and_count(dot):
    """The first one of the loop."""
    first = dot.instructions[0]
    assert (first.address, first.text, first.count) == (0x1550, "movsbl (%rdi,%rax,1),%ecx", 40000)


def nested(inner: int, outer: int) -> list[HotLoop]:
    """Loops of a nest with the given executions."""
    code = code_of(
        (0, "outer", None), (4, "inner", None), (8, "jne 4 <f>", 4), (12, "jne 0 <f>", 0)
    )
    counts = {0: outer, 4: inner, 8: inner, 12: outer}
    return loops_of(F, code, counts, total=2 * inner + 2 * outer)


def test_a_nest_is_two_loops():
    """Inner and outer, told apart."""
    assert [(loop.start, loop.end, loop.innermost) for loop in nested(100, 10)] == [
        (0, 12, False),
        (4, 8, True),
    ]


def test_an_instruction_belongs_to_its_smallest_loop():
    """The shares of a nest add up to everything, without counting the inner part twice."""
    outer, inner = nested(100, 10)
    assert ([i.text for i in outer.instructions], outer.share + inner.share) == (
        ["outer", "jne 0 <f>"],
        1.0,
    )


def test_a_loop_that_never_ran_is_not_there():
    """Without its inner loop's executions, the outer one is innermost."""
    assert [(loop.start, loop.innermost) for loop in nested(0, 10)] == [(0, True)]


def test_a_rare_way_back_does_not_stretch_the_loop():
    """An exception at the end of the function that jumps back to the loop's head."""
    code = code_of((0, "a", None), (4, "jne 0 <f>", 0), (8, "rare", None), (12, "jmp 0 <f>", 0))
    (loop,) = loops_of(F, code, {0: 100, 4: 100, 8: 1, 12: 1}, total=202)
    assert (loop.start, loop.end) == (0, 4)


def test_two_ways_back_to_one_head_are_one_loop():
    """A continue statement makes no second loop."""
    code = code_of((0, "a", None), (4, "je 0 <f>", 0), (8, "b", None), (12, "jne 0 <f>", 0))
    (loop,) = loops_of(F, code, {0: 100, 4: 100, 8: 60, 12: 60}, total=320)
    assert (loop.start, loop.end, loop.iterations) == (0, 12, 100)


def test_the_usual_path_leaves_rare_instructions_out():
    """A branch that one iteration in ten takes is not part of the loop's throughput."""
    code = code_of((0, "a", None), (4, "rare", None), (8, "jne 0 <f>", 0))
    (loop,) = loops_of(F, code, {0: 100, 4: 10, 8: 100}, total=210)
    assert [i.text for i in loop.usual_path] == ["a", "jne 0 <f>"]


def test_calls_inside_are_named():
    """A throughput model cannot follow them."""
    code = code_of((0, "call 90 <g>", 0x90), (4, "jne 0 <f>", 0))
    (loop,) = loops_of(F, code, {0: 10, 4: 10}, total=20)
    assert loop.calls == ("call 90 <g>",)


def test_another_binary_is_noticed():
    """Counted addresses that are no instruction starts."""
    code = code_of((0, "a", None), (4, "jne 0 <f>", 0))
    with pytest.raises(InputError, match="rebuilt"):
        loops_of(F, code, {0: 10, 3: 10, 4: 10}, total=30)


def test_cold_parts_are_ranges_of_their_own():
    """A part of a function that lies far away is not disassembled through."""
    assert address_ranges([0x1000, 0x90000, 0x1010]) == [(0x1000, 0x1010), (0x90000, 0x90000)]


@pytest.mark.skipif(shutil.which("objdump") is None, reason="objdump is not installed")
def test_a_profile_without_addresses_is_unavailable(tmp_path):
    """--dump-instr=yes was forgotten."""
    text = "events: Ir\nob=/o\nfl=a.c\nfn=f\n1 9\ntotals: 9\n"
    with pytest.raises(UnavailableError, match="--dump-instr"):
        hotloop.find(parse(text), x86=True, folder=tmp_path)


def test_without_objdump_it_is_unavailable(profile, tmp_path, monkeypatch):
    """The reason and the remedy are in the error."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnavailableError, match="binutils"):
        hotloop.find(profile, x86=True, folder=tmp_path)


@pytest.mark.skipif(shutil.which("objdump") is None, reason="objdump is not installed")
def test_a_binary_that_is_gone_is_a_note(profile, tmp_path):
    """The profile's program no longer exists: no loops, and a note that says so."""
    found = hotloop.find(profile, x86=True, folder=tmp_path)
    assert (found.loops, "/build/roi" in found.notes[0]) == ((), True)
