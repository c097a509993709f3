"""Counts of a whole program: misses scaled loop by loop, and what samples complete."""

from dataclasses import replace

from moe_prof.collectors import callgrind_format
from moe_prof.collectors.hotloop import CountedInstruction, HotLoop
from moe_prof.collectors.simulate import LoopAnalysis, LoopDemand
from moe_prof.program import sampled_loops
from moe_prof.program.counting import (
    Counted,
    code_misses,
    plain_name,
    share_of,
    with_misses,
)
from moe_prof.program.speeds import LoopSpeed, Stream, spread
from moe_prof.program.whole import Factors, parts_at_most, scale_of

BODY = tuple(
    CountedInstruction(address, "add", 1_000_000, None, False, False) for address in (0x10, 0x14)
)
LOOP = HotLoop("f", "/p", 0x10, 0x14, True, BODY, 1_000_000, 0.9, ())
ANALYSIS = LoopAnalysis(LOOP, 1_000_000.0, None, "")
BASE = Counted(instructions=2e6, loops=(ANALYSIS,))
SPEED = LoopSpeed("/p", 0x10, 1e9, 0.9, ("add $0x8,%rax", "jne 10"), (Stream(0.125, 64 << 20),))


def profile(events, *costs):
    """A profile of the loop's two instructions."""
    lines = [f"{address} {' '.join(map(str, cost))}" for address, cost in costs]
    text = "\n".join(
        ["# callgrind format", "positions: instr", f"events: {events}", "ob=/p", "fl=f.c", "fn=f",
         *lines]
    )  # fmt: skip
    return callgrind_format.parse(text + "\n")


LIGHT = profile("Ir", ("0x10", (1_000_000,)), ("0x14", (1_000_000,)))


def test_misses_are_scaled_to_all_executions():
    """A simulation of a tenth of the loop gives a tenth of its misses."""
    part = profile(
        "Ir Bcm Bim D1mr D1mw DLmr DLmw",
        ("0x10", (100_000, 500, 0, 1000, 0, 10, 0)), ("0x14", (100_000, 0, 0, 0, 0, 0, 0)),
    )  # fmt: skip
    found = with_misses(BASE, LIGHT, part, None)
    assert (found.mispredictions, found.l1_misses, found.l2_misses) == (5000, 10_000, 100)
    assert found.l3_misses is None


def test_simulations_that_ended_are_not_scaled():
    """Their totals hold, start-up included."""
    whole = profile(
        "Ir Bcm Bim D1mr D1mw DLmr DLmw",
        ("0x10", (1_000_000, 5, 1, 30, 3, 2, 1)), ("0x20", (400, 50, 0, 0, 400, 0, 0)),
    )  # fmt: skip
    found = with_misses(replace(BASE, whole_misses=True), LIGHT, whole, whole)
    assert (found.mispredictions, found.l1_misses, found.l3_misses) == (56, 433, 3)


def test_a_loop_that_was_hardly_simulated_says_nothing():
    """A few executions are no steady state."""
    part = profile("Ir Bcm Bim", ("0x10", (100, 50, 0)))
    assert with_misses(BASE, LIGHT, part, None).mispredictions is None


def test_whole_from_the_speed_of_a_loop():
    """A loop of 10^9 iterations a second for 0.9 of 2 s has run 1800 times what was seen."""
    assert scale_of(LIGHT, (SPEED,), 2.0) == 1800.0
    assert scale_of(LIGHT, (replace(SPEED, start=0x20),), 2.0) is None


def test_whole_from_loops_that_take_turns():
    """The cases of a switch make several loops of one, whose counter goes through them all."""
    assert scale_of(LIGHT, (replace(SPEED, share=0.3, together=0.9),), 2.0) == 1800.0


def test_lines_by_the_memory_that_a_loop_goes_over():
    """Lines come from beyond a cache that cannot hold it."""
    lines = 0.125 * 1e9 * 0.9 * 2.0
    assert sampled_loops.lines_beyond((SPEED,), 2.0, 32 << 20) == lines
    assert sampled_loops.lines_beyond((SPEED,), 2.0, 128 << 20) == 0
    assert sampled_loops.lines_beyond((SPEED,), 2.0, None) is None


def test_a_small_table_beside_a_large_stream_costs_no_lines():
    """Each access has its own memory."""
    both = replace(SPEED, streams=(Stream(0.125, 64 << 20), Stream(1.0, 28)))
    assert sampled_loops.lines_beyond((both,), 2.0, 32 << 10) == 0.125 * 1e9 * 0.9 * 2.0


def test_the_parts_of_a_program_by_its_loops():
    """A loop of 2.5 cycles an instruction is no more than twice as fast as that on a fast core."""
    light = profile("Ir", ("0x10", (10**9,)), ("0x14", (10**9,)))
    assert parts_at_most(light, 2.0, None) == 8.0
    slow = LoopDemand(
        port_cycles=4e9, dependency_cycles=0.0, simulated_cycles=4e9, coverage=1.0,
        uops_per_instruction=1.0, slots_per_instruction=1.0, cpu="znver3",
    )  # fmt: skip
    assert parts_at_most(light, 2.0, slow) == 4.0
    assert parts_at_most(light, 0.1, slow) == 1.0


def test_samples_complete_only_what_is_missing():
    """Counted instructions stay; misses of simulations that were cut off are replaced."""
    seen = Counted(instructions=7.0, loops=(ANALYSIS,), l1_misses=3.0)
    cut = replace(BASE, l1_misses=1.0)
    assert sampled_loops.completed(cut, seen, (SPEED,)).l1_misses == 3.0
    assert sampled_loops.completed(cut, seen, (SPEED,)).instructions == 2e6
    assert sampled_loops.completed(cut, seen, (replace(SPEED, share=0.2),)).l1_misses == 1.0
    assert sampled_loops.completed(Counted(), seen, (SPEED,)).instructions == 7.0


def test_spread_leaves_strays_out():
    """Two arrays far apart count both, a single stray address does not."""
    near = [range_start + step for range_start in (0, 1 << 40) for step in range(0, 1000, 10)]
    assert spread([*near, 1 << 50]) == 2 * 990
    assert spread([]) == 0


def test_a_program_runs_no_less_than_was_counted():
    """A register that begins anew makes a loop seem slow; the next loop's speed counts."""
    slow = replace(SPEED, iterations_per_s=1e5)
    assert scale_of(LIGHT, (slow,), 2.0) is None
    assert scale_of(LIGHT, (slow, SPEED), 2.0) == 1800.0


def test_the_part_holds_the_function_of_most_samples():
    """By its plain name: recursion, arguments and the compiler's copies have endings."""
    assert share_of(LIGHT, "f") == 1.0
    assert share_of(LIGHT, "f(int)") == 1.0
    assert share_of(LIGHT, "g") == 0.0
    assert share_of(LIGHT, "") == 0.0
    assert [plain_name(name) for name in ("sort'2", "sort.part.0", "sort(int*)", "sort@plt")] == [
        "sort"
    ] * 4


def test_code_beyond_the_cache_comes_anew_each_time():
    """Four lines of which two fit: the most executed ones stay."""
    costs = [(f"{0x40 * line:#x}", (times,)) for line, times in enumerate((9, 100, 7, 100))]
    assert code_misses(profile("Ir", *costs), 2) == 16.0
    assert code_misses(profile("Ir", *costs), 4) == 0.0


def test_code_misses_stand_in_for_a_simulation_that_gave_nothing():
    """And are scaled with all else."""
    many = profile("Ir", *((f"{0x40 * line:#x}", (10,)) for line in range(600)))
    found = with_misses(Counted(), many, None, None, factors=Factors((), 3.0))
    assert found.fetch_misses == (600 - 512) * 10 * 3
