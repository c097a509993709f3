"""Verdicts: each cause from the figures that show it, and ``unknown`` from figures that do not."""

import pytest

from moe_prof.analysis.verdict import Evidence, judge

BUSY = Evidence(threads=2, usable_cpus=2, waiting=0.02, busiest=1.0, serial=0.5)


def with_(**changes):
    """Evidence of two busy threads, with changes."""
    fields = {name: getattr(BUSY, name) for name in Evidence.__slots__}
    return Evidence(**(fields | changes))


CASES = [
    ("oversubscribed", with_(threads=3, waiting=0.4)),
    ("serial_bound", with_(waiting=0.48, serial=0.98, busiest=1.96)),
    ("imbalance", with_(waiting=0.3, serial=0.6, busiest=1.4)),
    ("spin_bound", with_(waiting=0.4, serial=0.5, busiest=1.0)),
    ("branch_bound", with_(measured=True, bad_speculation=0.3, retiring=0.4)),
    ("frontend_bound", with_(frontend=0.4, retiring=0.3)),
    ("instruction_bound", with_(retiring=0.75, core=0.2, memory=0.004)),
    ("l2_bound", with_(retiring=0.2, memory=0.6, core=0.1, level="l2")),
    ("l3_bound", with_(retiring=0.2, memory=0.6, core=0.1, level="l3")),
    ("dram_bandwidth_bound", with_(retiring=0.1, memory=0.7, core=0.1, level="memory")),
    (
        "dependency_bound",
        with_(retiring=0.2, core=0.6, memory=0.1, loop_bound="dependency"),
    ),
    (
        "port_bound",
        with_(retiring=0.4, core=0.5, memory=0.1, loop_bound="ports"),
    ),
    ("port_bound", with_(roofline=0.9, roofline_limit="compute", retiring=0.6)),
    ("l2_bound", with_(roofline=0.9, roofline_limit="memory", level="l2")),
    ("port_bound", with_(retiring=0.55, cycles=100.0, loop_cycles=80.0, loop_bound="ports")),
    ("dependency_bound", with_(cycles=100.0, loop_cycles=60.0, loop_bound="dependency")),
    ("instruction_bound", with_(cycles=100.0, loop_cycles=90.0, loop_bound="dispatch")),
    ("unknown", with_(cycles=100.0, loop_cycles=40.0, loop_bound="ports")),
    ("unknown", with_()),
    ("unknown", with_(retiring=0.3, memory=0.2, core=0.1)),
    ("unknown", with_(bad_speculation=0.3, retiring=0.4)),
    ("unknown", with_(memory=0.6, level="l1", retiring=0.2)),
]


@pytest.mark.parametrize(("cause", "evidence"), CASES)
def test_cause(cause, evidence):
    """The planted cause is named, and nothing else."""
    assert judge(evidence).cause == cause


CROWDED = {"shared_cpus": 2.0, "others": 1.3}


@pytest.mark.parametrize(
    "waiting",
    [
        {"waiting": 0.48, "serial": 0.98, "busiest": 1.96},
        {"waiting": 0.3, "serial": 0.6, "busiest": 1.4},
        {"waiting": 0.4},
    ],
)
def test_other_programs_excuse_waiting(waiting):
    """No verdict on waiting that others can cause; the reason and a team that fits are named."""
    verdict = judge(with_(**waiting, **CROWDED))
    assert verdict.cause == "unknown"
    assert "other programs kept 1.3 of 2 CPUs busy" in verdict.evidence
    assert "--threads 1" in verdict.advice


def test_other_programs_excuse_nothing_else():
    """Slots of working threads are the kernel's own."""
    assert judge(with_(retiring=0.75, **CROWDED)).cause == "instruction_bound"


def test_own_surplus_threads_are_no_crowd():
    """Fifty times more threads than CPUs wait whoever else is there."""
    assert judge(with_(threads=99, waiting=0.1, **CROWDED)).cause == "oversubscribed"


def test_a_small_surplus_must_be_seen_waiting():
    """Nine threads on eight CPUs: bound by it only where they wait; not told apart in a crowd."""
    few = {"threads": 9, "usable_cpus": 8, "retiring": 0.75}
    assert judge(with_(**(few | {"waiting": 0.1}))).cause == "instruction_bound"
    assert judge(with_(**(few | {"waiting": 0.4}))).cause == "oversubscribed"
    crowd = {"shared_cpus": 8.0, "others": 2.0, "waiting": 0.4}
    assert judge(with_(**(few | crowd))).cause == "unknown"


def test_one_thread_does_not_wait_for_others():
    """Waiting of a single thread is no sign of bad sharing."""
    assert judge(with_(threads=1, waiting=0.5, serial=1.0)).cause == "unknown"


def test_evidence_carries_the_figures():
    """A verdict quotes what it rests on."""
    verdict = judge(with_(retiring=0.75, instructions_per_mac=4.5))
    assert "75.0 %" in verdict.evidence
    assert "4.5 instructions per multiply-accumulate" in verdict.evidence
