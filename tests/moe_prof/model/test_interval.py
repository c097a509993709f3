"""The interval model against figures worked out by hand."""

from dataclasses import replace

import pytest

from moe_prof.model.interval import Bandwidth, Core, Events, LoopBound, breakdown

CORE = Core("test core", width=4, mispredict_penalty_cycles=10, l2_latency_cycles=20, source="test")
BANDWIDTH = Bandwidth(l2=64e9, l3=32e9, memory=16e9)
EVENTS = Events(
    instructions=2000,
    branch_mispredictions=5,
    l1i_misses=1,
    l1d_misses=100,
    l2_misses=10,
    l3_misses=0,
)
LOOP = LoopBound(port_cycles=800, dependency_cycles=300, coverage=1.0)


def answer(events=EVENTS, loop=LOOP, working_s=1e-6, core=CORE):
    """The model's answer at 1 GHz, so that cycles are nanoseconds."""
    return breakdown(
        core, events, working_s=working_s, clock_hz=1e9, bandwidth=BANDWIDTH, loop=loop
    )


def test_level_one_by_hand():
    """1000 cycles x 4 slots: 2000 uops retire, 70 cycles are lost, the rest stalls."""
    result = answer()
    values = [node.value for node in result.nodes if node.level == 1]
    assert values == pytest.approx([0.5, 0.05, 0.02, 0.43])


def test_level_one_sums_to_one():
    """Every slot is somewhere."""
    values = [node.value for node in answer().nodes if node.level == 1]
    assert sum(values) == pytest.approx(1.0, abs=1e-12)


def test_level_two_divides_backend_by_demand():
    """Ports need 300 cycles beyond full width, misses 100 at L2 and 20 at L3 rate."""
    result = answer()
    assert (result.core_cycles, result.memory_cycles) == pytest.approx((300, 120))
    assert result.value("Backend_Bound.Memory_Bound") == pytest.approx(0.43 * 120 / 420)
    assert result.value("Backend_Bound.Core_Bound") == pytest.approx(0.43 * 300 / 420)


def test_longer_chain_is_the_core_bound():
    """The larger of the two loop bounds counts."""
    assert answer(loop=LoopBound(600, 900, 1.0)).core_cycles == pytest.approx(400)


def test_partly_covered_loop_is_compared_with_its_own_uops():
    """A loop with half of the instructions needs half of the full-width cycles."""
    assert answer(loop=LoopBound(300, 0, 0.5)).core_cycles == pytest.approx(50)


def test_ipc_is_instructions_over_working_cycles():
    """2000 instructions in 1000 cycles."""
    assert answer().ipc == pytest.approx(2.0)


def test_no_loop_bound_leaves_level_two_missing():
    """Without a throughput model level 2 says what it needs."""
    node = answer(loop=None).nodes[4]
    assert (node.value, node.note) == (None, "needs a throughput model of the hot loop")


def test_unexplained_stalls_leave_level_two_missing():
    """Demands that explain too little of the stall give no division of it."""
    events = replace(EVENTS, l1d_misses=1, l2_misses=0)
    result = answer(events=events, loop=LoopBound(0, 0, 1.0))
    assert result.value("Backend_Bound.Core_Bound") is None
    assert "explain only" in result.nodes[5].note


def test_missing_cache_counts_leave_level_two_missing():
    """A miss count that was not simulated is not taken as zero."""
    events = replace(EVENTS, l1d_misses=None, l2_misses=None, l3_misses=None)
    assert answer(events=events).nodes[4].note == "needs cache misses"


def test_more_uops_than_slots_gives_no_numbers():
    """A retiring share above one is a contradiction, not a result."""
    result = answer(working_s=0.4e-6)
    assert all(node.value is None for node in result.nodes)
    assert "125% of the slots" in result.warnings[0]


def test_penalties_beyond_the_free_slots_are_scaled_and_said():
    """Overlapping penalties share what is left, and the answer warns."""
    result = answer(events=replace(EVENTS, branch_mispredictions=500))
    assert sum(n.value for n in result.nodes if n.level == 1) == pytest.approx(1.0)
    assert result.value("Backend_Bound") == pytest.approx(0.0)
    assert "scaled to fit" in result.warnings[0]


def test_uops_per_instruction_enter_retiring():
    """1.5 uops an instruction fill three quarters of the slots."""
    events = replace(EVENTS, uops_per_instruction=1.5, uops_known=True)
    assert answer(events=events).value("Retiring") == pytest.approx(0.75)


def test_seed_figures_are_consistent_with_the_definition():
    """The seed's IPC of 4.7 on a 6 wide core means 78 % retiring at one uop an instruction.

    It reports 75 %: compare-and-branch pairs retire as one uop, which is 0.96 uops an instruction.
    """
    core = replace(CORE, width=6)
    events = Events(4700, 0, 0, 0, 0, 0)
    result = answer(core=core, events=events, loop=None)
    assert result.value("Retiring") == pytest.approx(0.783, abs=1e-3)


@pytest.mark.parametrize("field", ["working_s", "clock_hz"])
def test_rejects_times_that_are_not_positive(field):
    """A time of zero would divide by zero."""
    arguments = {"working_s": 1e-6, "clock_hz": 1e9} | {field: 0.0}
    with pytest.raises(ValueError, match="positive"):
        breakdown(CORE, EVENTS, bandwidth=BANDWIDTH, loop=LOOP, **arguments)
