"""The verdict on any program: each planted cause from played measurements, else ``unknown``."""

from dataclasses import replace

import pytest

from moe_prof.analysis.program_demands import Machine, ProgramEvidence, demands
from moe_prof.analysis.program_verdict import judge_program, needs_more

MACHINE = Machine(
    clock_hz=4e9, width=6, penalty_cycles=15.0, latency_s=(4e-9, 25e-9, 100e-9),
    bandwidth=(100e9, 80e9, 30e9), l3_bytes=32 << 20,
)  # fmt: skip
ONE = ProgramEvidence(
    wall_s=1.02, user_s=1.0, sys_s=0.01, cpus=2, minor_faults=60, max_rss_bytes=2 << 20,
    polling=0.0, own_share=1.0, shared_line=0.0, instructions=8e9, loop_bound="dispatch",
    loop_cycles=1e8, mispredictions=1e4, l1_misses=1e4, l2_misses=1e3, l3_misses=1e3,
    machine=MACHINE,
)  # fmt: skip
"""One thread that works for a second; nothing stands out."""
TWO = replace(
    ONE, active_threads=2, most_threads=3, runnable=2.0, single_share=0.0, own_share=0.0,
    user_s=2.0,
)  # fmt: skip
"""Two threads that work all the time."""
CHAIN = replace(ONE, pointer_share=0.9, instructions=1e8)
PART = replace(
    ONE, instructions=None, part_instructions=1e9, loop_cycles=None, l1_misses=0.0, l2_misses=0.0,
    l3_misses=0.0,
)  # fmt: skip
HELPED = replace(ONE, most_threads=3, loop_cycles=3.9e9, loop_bound="dependency")
CASES = [
    ("too_short", replace(ONE, wall_s=0.004, user_s=0.002, sys_s=0.001)),
    ("oversubscribed", replace(TWO, active_threads=16, most_threads=17, runnable=14.0)),
    ("page_fault_bound", replace(ONE, user_s=0.1, sys_s=1.4, minor_faults=800_000)),
    ("syscall_bound", replace(ONE, user_s=0.3, sys_s=1.0)),
    ("spin_bound", replace(TWO, polling=0.5)),
    ("serial_bound", replace(TWO, polling=0.5, locking=0.9)),
    (
        "serial_bound",
        replace(TWO, active_threads=4, most_threads=5, runnable=3.6, polling=0.6, locking=0.8),
    ),
    ("oversubscribed", replace(TWO, active_threads=4, most_threads=5, runnable=3.6, locking=0.1)),
    # two threads of which one is ready at a time: in locks, or asleep for other reasons
    ("serial_bound", replace(TWO, user_s=1.0, runnable=1.05, voluntary=2600, blocked=0.07)),
    ("serial_bound", replace(TWO, user_s=1.0, runnable=1.05, voluntary=2600, locking=0.05)),
    ("unknown", replace(TWO, user_s=1.0, runnable=1.05, voluntary=2600, blocked=0.0)),
    ("unknown", replace(TWO, user_s=1.0, runnable=1.4, voluntary=2600, blocked=0.07)),
    ("spin_bound", replace(TWO, polling=0.5, own_polling=0.5, locking=0.3)),
    ("imbalance", replace(TWO, runnable=1.2, busiest=1.7, main_is_busiest=False)),
    ("imbalance", replace(TWO, polling=0.4, busiest=1.7)),
    ("serial_bound", replace(TWO, runnable=1.2, busiest=1.7, single_share=0.7)),
    ("serial_bound", replace(TWO, polling=0.4, busiest=1.7, own_share=0.9)),
    ("false_sharing", replace(TWO, shared_line=0.9)),
    ("denormals", replace(ONE, flushed_s=0.2)),
    ("instruction_bound", replace(ONE, loop_cycles=3.5e9)),
    ("instruction_bound", replace(ONE, loop_cycles=3e9, loop_bound="ports", loop_slots=0.8)),
    ("port_bound", replace(ONE, loop_cycles=3e9, loop_bound="ports", loop_slots=0.2)),
    ("dependency_bound", replace(ONE, loop_cycles=3.9e9, loop_bound="dependency")),
    ("branch_bound", replace(ONE, mispredictions=90e6, loop_cycles=1e9)),
    ("l2_bound", replace(CHAIN, l1_misses=200e6)),
    ("l3_bound", replace(CHAIN, l1_misses=30e6, l2_misses=30e6)),
    (
        "dram_latency_bound",
        replace(CHAIN, max_rss_bytes=300 << 20, l1_misses=8e6, l2_misses=8e6, l3_misses=8e6),
    ),
    (
        "dram_bandwidth_bound",
        replace(
            ONE, max_rss_bytes=300 << 20, l1_misses=3e8, l2_misses=3e8, l3_misses=3e8,
        ),
    ),
    # a chain of additions along an array that is fetched ahead of them
    (
        "dependency_bound",
        replace(
            ONE, max_rss_bytes=300 << 20, l1_misses=1.2e8, l2_misses=1.2e8, l3_misses=1.2e8,
            walking=1.0, loop_cycles=3.7e9, loop_bound="dependency",
        ),
    ),
    # independent random accesses: far from the bandwidth, but stalled
    (
        "dram_latency_bound",
        replace(ONE, max_rss_bytes=300 << 20, l1_misses=2e7, l2_misses=2e7, l3_misses=2e7),
    ),
    ("unknown", ONE),
    ("unknown", replace(ONE, instructions=None)),
    ("unknown", replace(ONE, loop_cycles=3.9e9, machine=Machine())),
    ("unknown", replace(ONE, wall_s=2.0, user_s=0.06, sys_s=0.0, runnable=0.03)),
    # mispredictions that a simple simulated predictor sees in code that does not stall
    ("instruction_bound", replace(ONE, mispredictions=60e6, loop_cycles=3.8e9)),
    # misses in a program too small for main memory are first touches
    ("l3_bound", replace(CHAIN, l1_misses=30e6, l2_misses=30e6, l3_misses=20e6)),
    # flushing changes little: the numbers are no denormals
    ("dependency_bound", replace(ONE, flushed_s=0.95, loop_cycles=3.9e9, loop_bound="dependency")),
    # the system's own functions say more than the number of faults (huge pages are few)
    ("page_fault_bound", replace(ONE, user_s=0.3, sys_s=1.0, faulting=0.9)),
    ("syscall_bound", replace(ONE, user_s=0.3, sys_s=1.0, minor_faults=900_000, faulting=0.1)),
    # first touches beside a longer computation
    ("dependency_bound", replace(ONE, user_s=1.0, sys_s=0.7, faulting=0.95, loop_cycles=3.9e9,
                                 loop_bound="dependency")),
    # threads that call the system to wait are no heavy users of it
    ("spin_bound", replace(TWO, user_s=1.0, sys_s=1.0, polling=0.5, yielding=0.45)),
    ("spin_bound", replace(TWO, polling=0.2, yielding=0.2)),
    ("unknown", replace(TWO, polling=0.2)),
    # equal threads asleep in a lock, one at a time; asleep elsewhere nobody knows why
    ("serial_bound", replace(TWO, active_threads=4, most_threads=5, runnable=1.1, blocked=0.7)),
    ("unknown", replace(TWO, active_threads=4, most_threads=5, runnable=1.1, blocked=0.1)),
    ("unknown", replace(TWO, active_threads=4, most_threads=5, runnable=1.1)),
    # one thread does all the work, the others poll for it in loops of their own
    ("spin_bound", replace(TWO, polling=0.5, own_polling=0.49, busiest=1.98, own_share=0.9)),
    ("spin_bound", replace(TWO, polling=0.5, own_polling=0.49, busiest=1.98,
                           main_is_busiest=False)),
    ("serial_bound", replace(TWO, polling=0.4, own_polling=0.4, busiest=1.7, own_share=0.9)),
    # one of them runs, on the CPU where both queue, though another is idle; or none is
    ("serial_bound", replace(TWO, wall_s=0.65, user_s=0.59, runnable=1.94, voluntary=188,
                             blocked=0.01, idle_cpus=1.0, loop_cycles=2.3e9, loop_bound="ports")),
    ("unknown", replace(TWO, wall_s=2.0, user_s=0.6, runnable=1.95, voluntary=180,
                           blocked=0.0, idle_cpus=0.1, loop_cycles=2.3e9, loop_bound="ports",
                           instructions=1e9)),
    ("serial_bound", replace(TWO, active_threads=4, most_threads=5, runnable=3.4, voluntary=900,
                             wall_s=1.0, user_s=1.0, blocked=0.2, idle_cpus=0.9)),
    ("unknown", replace(TWO, active_threads=4, most_threads=5, runnable=3.3, voluntary=768,
                        wall_s=0.31, user_s=0.23, sys_s=0.05, blocked=0.09, idle_cpus=0.1)),
    # more threads than CPUs, that sleep in locks: two causes; many that are ready are one
    ("unknown", replace(TWO, active_threads=4, most_threads=5, runnable=2.6, blocked=0.15,
                        loop_cycles=7.9e9, loop_bound="dependency")),
    ("oversubscribed",
     replace(TWO, active_threads=12, most_threads=13, runnable=9.0, blocked=0.15)),
    # code that the L1 does not hold
    ("frontend_bound", replace(ONE, instructions=2e9, loop_cycles=None, fetch_misses=150e6)),
    ("unknown", replace(ONE, fetch_misses=1e6)),
    # a penalty of twice the best case still outweighs all else; beside other work it does not
    ("branch_bound", replace(ONE, instructions=1e9, loop_cycles=None, mispredictions=60e6)),
    ("unknown", replace(ONE, instructions=8e9, loop_cycles=1.5e9, mispredictions=60e6)),
    # a part of the program: stalls that outweigh its instructions, never the instructions
    ("branch_bound", replace(PART, mispredictions=80e6)),
    ("unknown", replace(PART, mispredictions=5e6)),
    ("unknown", replace(PART, loop_cycles=9e8, loop_bound="dependency")),
    ("unknown", replace(PART, part_instructions=None, mispredictions=80e6)),
    # a model that asks for more cycles than there were; by the real ones the slots are full
    ("instruction_bound",
     replace(ONE, instructions=17e9, loop_cycles=5.9e9, loop_bound="ports", loop_slots=0.56)),
    # a simulated predictor misses the ends of short inner loops; there is no time for its stalls
    ("port_bound",
     replace(ONE, instructions=9e9, loop_cycles=2.6e9, loop_bound="ports", loop_slots=0.4,
             mispredictions=250e6)),
    # far more threads than CPUs want to run, wherever the system lets them
    ("oversubscribed",
     replace(TWO, active_threads=65, most_threads=65, runnable=25.4, voluntary=756_000, wall_s=4.7,
             user_s=0.6, sys_s=3.8, idle_cpus=1.1)),
    # a team that is given work now and then, and sleeps; a pool that nobody used; a timer
    ("serial_bound", replace(HELPED, spells=16, spells_s=0.003, spells_over=0.9)),
    ("dependency_bound", replace(HELPED, spells=2, spells_s=0.03, spells_over=0.9)),
    ("dependency_bound", replace(HELPED, spells=7, spells_s=0.03, spells_over=0.02)),
    ("dependency_bound", replace(HELPED, spells=20, spells_s=0.001, spells_over=0.9)),
    # a runtime's threads that poll more than the one works, which others keep off its CPU
    ("serial_bound", replace(TWO, polling=0.75, busiest=1.9, own_share=0.9)),
    # a first run that something else slowed down
    ("dependency_bound", replace(ONE, flushed_s=0.6, user_again_s=0.61, loop_cycles=3.9e9,
                                 loop_bound="dependency")),
    # two that hand over a token by locks: none of them works; of a queue for a lock one does
    ("spin_bound", replace(TWO, polling=0.91, locking=0.45, busiest=1.1)),
    ("spin_bound", replace(TWO, runnable=1.0, polling=0.9, locking=0.27, busiest=1.1)),
    ("serial_bound", replace(TWO, polling=0.5, locking=0.45, busiest=1.1)),
    # all of them poll, also the one that does what little work there is
    ("spin_bound", replace(TWO, polling=0.96, own_polling=0.95, busiest=1.88, own_share=0.9,
                           main_is_busiest=False)),
    # sleeping threads beside one that works are no team
    ("instruction_bound", replace(ONE, most_threads=9, loop_cycles=3.5e9)),
]  # fmt: skip


@pytest.mark.parametrize(("cause", "evidence"), CASES)
def test_cause(cause, evidence):
    """The planted cause is named, with a reason and something to try."""
    verdict = judge_program(evidence)
    assert verdict.cause == cause
    assert verdict.evidence
    assert verdict.advice


MEASURED = [
    ("branch_bound", {"Bad_Speculation": 0.4, "Retiring": 0.4}),
    ("frontend_bound", {"Frontend_Bound": 0.5, "Retiring": 0.3}),
    ("instruction_bound", {"Retiring": 0.8}),
]


@pytest.mark.parametrize(("cause", "slots"), MEASURED)
def test_measured_slots_decide(cause, slots):
    """Top-down nodes of hardware counters name the cause by themselves."""
    assert judge_program(replace(ONE, slots=slots)).cause == cause


def test_measured_core_bound_is_divided_by_the_loops():
    """Slots say core bound, the throughput model which of its two causes."""
    core = replace(ONE, slots={"Backend_Bound.Core_Bound": 0.6}, loop_bound="dependency")
    assert judge_program(core).cause == "dependency_bound"
    assert judge_program(replace(core, loop_bound="ports")).cause == "port_bound"


def test_measured_memory_bound_is_divided_by_misses():
    """Slots say memory bound, the misses which level."""
    slots = {"Backend_Bound.Memory_Bound": 0.6, "Backend_Bound.Core_Bound": 0.1}
    assert judge_program(replace(CHAIN, slots=slots, l1_misses=50e6)).cause == "l2_bound"


def test_simulation_is_spared_where_threads_tell():
    """What its threads do is enough for some causes."""
    assert not needs_more(replace(TWO, polling=0.5))
    assert needs_more(ONE)


def test_demands_leave_out_what_is_not_known():
    """A missing count asks for nothing, rather than for 0 cycles."""
    bare = replace(
        ONE, loop_cycles=None, mispredictions=None, l1_misses=None, l2_misses=None, l3_misses=None
    )
    assert demands(bare) == []
