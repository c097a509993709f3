"""Each rule speaks on the rows that show its case, and is silent without them."""

from dataclasses import replace

import pytest

from moe_prof.explain import RULES, explain
from moe_prof.explain.finding import Told
from tests.moe_prof.explain.made import counted, row, session

THREADS = row("threads", 2.0)
WAITING = (THREADS, row("spin_fraction", 0.4))


def busy(*times):
    """Working time by thread."""
    return tuple(row("busy_time", t, thread=str(i), unit="s") for i, t in enumerate(times))


def phases(**times):
    """Working time by phase."""
    return tuple(row("phase_time", t, phase=name, unit="s") for name, t in times.items())


def instructions(**counts):
    """Counted instructions by phase."""
    return tuple(row("instructions", n, phase=name) for name, n in counts.items())


OTHERS = (
    row("cpus_used_by_others", 1.3, variant="", unit="CPUs"),
    row("cpus_shared", 2.0, variant="", unit="CPUs"),
)
FUSED = {"variant": "fused"}
MODEL = {"collector": "model", "provenance": "modelled"}
ALONE = {
    "wrong_result": [row("rel_rmse", None, status="out_of_bounds", source="wrong")],
    "crowded": [*WAITING, *OTHERS],
    "noisy": [row("time", 1.0), row("time_ci_low", 0.8), row("time_ci_high", 1.2)],
    "impossible": [row("insn per cycle", 40.0, status="out_of_bounds")],
    "multiplexed": [row("cycles", 1e9, mux_pct=40.0, status="multiplexed")],
    "too_short": [row("time_elapsed", 0.004, scope="process")],
    "whole_process": counted(1e9, 1e9),
    "summed_cycles": counted(40e9, 40e9),
    "modelled_edge": [row("Bad_Speculation", 0.3, source="upper bound", **MODEL)],
    "oversubscribed": [row("threads", 4.0, status="out_of_bounds"), row("spin_fraction", 0.4)],
    "serial_share": [*WAITING, *busy(1.0, 0.05)],
    "imbalance": [*WAITING, *busy(1.0, 0.5)],
    "even_waiting": [*WAITING, *busy(1.0, 1.0)],
    "parallel_efficiency": [THREADS, row("time", 1.0), row("cpu_time", 1.1)],
    "ipc_of_spinning": [row("IPC", 0.2), row("spin_fraction", 0.8)],
    "counted_only": [row("instructions", 1e6)],
    "hot_phase": instructions(router=2e4, gate_up=6e5, down=3.8e5),
    "verdict": [
        row("verdict", None, source="l2_bound"), row("verdict_evidence", None, source="so it is"),
    ],
    "instruction_bound": [row("Retiring", 0.75), row("IPC", 4.7)],
    "branch_bound": [row("Bad_Speculation", 0.3)],
    "frontend_bound": [row("Frontend_Bound", 0.3)],
    "memory_bound": [
        row("Backend_Bound.Memory_Bound", 0.5), row("Backend_Bound.Core_Bound", 0.1),
    ],
    "memory_latency": counted(10e9, 1e9, misses=30e6, references=50e6),
    "core_bound": [row("Backend_Bound.Core_Bound", 0.5), row("Backend_Bound.Memory_Bound", 0.1)],
    "weights_leave_cache": [
        THREADS, row("time", 20e-6),
        row("ceiling_read_l2", 100e9, variant="", scenario="", thread="2"),
    ],
    "fusing_result": [
        row("speedup_over_small_ops", 1.3, **FUSED),
        row("speedup_over_small_ops_ci_low", 1.2, **FUSED),
        row("speedup_over_small_ops_ci_high", 1.4, **FUSED),
    ],
    "weights_dominate": [
        row("weight_bytes", 9e6, variant="", unit="bytes"),
        row("memory_bytes", 10e6, variant="small_ops", unit="bytes"),
    ],
    "exposed_communication": [row("exposed_communication_share", 0.3, **FUSED)],
    "hot_expert": [
        row("load_max_over_mean", 3.0, variant="", phase="experts"), row("time", 1.0, **FUSED),
    ],
    "waiting_for_rank": [
        row("ranks", 3.0, variant=""),
        *(
            row(f"wait_for_rank_{peer}", 1e-3 if peer == 2 else 1e-5, thread=f"rank {rank}",
                phase="wait_dispatch", unit="s", **FUSED)
            for rank in range(3) for peer in range(3) if rank != peer
        ),
    ],
    "hot_router": phases(router=0.4, gate_up=0.6),
    "hot_exp": phases(activation=0.2, gate_up=0.8),
    "tiny_buckets": [
        row("microkernel", None, source="qs8_gemm_16x16c4", scenario="16,64,64,256,2"),
        row("time", 1.0, scenario="16,64,64,256,2"),
    ],
    "denormals": [row("instructions", 1e9), row("assists.fp", 1e7)],
    "page_faults": [row("page-faults", 1e6), row("task-clock", 1.0, unit="s")],
}  # fmt: skip
MEMORY = "Backend_Bound.Memory_Bound"
PAIRS = {
    "other_conditions": (session(row("time", 1.0)), session(row("time", 1.0), run_id="b", seed=1)),
    "clock_changed": (
        session(row("time", 1.0), row("ceiling_clock", 3e9, variant="", thread="1")),
        session(row("time", 1.0), row("ceiling_clock", 2e9, variant="", thread="1"), run_id="b"),
    ),
    "ipc_fell_while_spinning": (
        session(*counted(30e9, 70e9)), session(*counted(90e9, 20e9), run_id="b"),
    ),
    "instructions_of_waiting": (
        session(*counted(60e9, 14e9)), session(*counted(107e9, 22e9), run_id="b"),
    ),
    "rate_rose_misses_fell": (
        session(*counted(1e9, 1e9, misses=4e6, references=180e6)),
        session(*counted(1e9, 1e9, misses=2.5e6, references=37e6), run_id="b"),
    ),
    "ipc_misleads": (
        session(*counted(4e9, 12e9, time_s=2.0)), session(*counted(1e9, 1e9), run_id="b"),
    ),
    "vectorised": (
        session(*counted(1e9, 4e9), row(MEMORY, 0.1)),
        session(*counted(1e9, 1e9), row(MEMORY, 0.5), run_id="b"),
    ),
}  # fmt: skip


def rules_of(*sessions):
    """Names of the rules that speak."""
    return {finding.rule for finding in explain(sessions)}


@pytest.mark.parametrize("name", ALONE)
def test_rule_speaks_on_its_rows(name):
    """A rule on one stage names its case, with evidence."""
    findings = [f for f in explain([session(*ALONE[name])]) if f.rule == name]
    assert len(findings) == 1
    assert set(findings[0].evidence) <= set(ALONE[name])


@pytest.mark.parametrize("name", PAIRS)
def test_rule_speaks_on_its_pair(name):
    """A rule on two sessions names its case."""
    assert name in rules_of(*PAIRS[name])


def test_every_rule_is_tested():
    """A new rule needs a case of its own."""
    assert [rule.name for rule in RULES if rule.name not in {**ALONE, **PAIRS}] == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_rule_is_silent_without_rows(rule):
    """Sessions of a row that says nothing give no finding."""
    before = session(row("something", 1.0))
    after = session(row("something", 1.0), run_id="b")
    assert rule.name not in rules_of(before, after)


CALM = (
    THREADS, row("spin_fraction", 0.02), *busy(1.0, 0.98), row("time", 1.0), row("cpu_time", 1.95),
    row("Retiring", 0.4), row("Bad_Speculation", 0.05), row("Frontend_Bound", 0.1),
    row("Backend_Bound.Memory_Bound", 0.2), row("Backend_Bound.Core_Bound", 0.2),
    row("IPC", 2.0), *phases(router=0.01, activation=0.02, gate_up=0.9),
)  # fmt: skip


def test_nothing_stands_out():
    """Figures of a healthy run give not one finding, and the same twice neither."""
    again = session(*CALM, run_id="b", folder="second")
    assert explain([session(*CALM), again]) == ()


def test_no_finding_without_evidence():
    """A rule cannot say anything without rows."""
    with pytest.raises(ValueError, match="without evidence"):
        Told("so it is", ())


@pytest.mark.parametrize(
    ("rule", "rows"),
    [
        ("ipc_of_spinning", counted(10e9, 1e9, misses=30e6, references=50e6)),
        ("ipc_of_spinning", counted(1e9, 0.2e9, misses=1e3, references=1e6)),
        ("ipc_of_spinning", [row("IPC", 0.2, **MODEL), row("spin_fraction", 0.8)]),
        ("instruction_bound", counted(1e9, 2e9)),
        ("summed_cycles", counted(5e9, 5e9)),
        ("whole_process", counted(1e9, 1e9, scope="roi")),
        ("even_waiting", [*WAITING, *OTHERS, *busy(1.0, 1.0)]),
        ("core_bound", [row("Backend_Bound.Core_Bound", 0.4), row("Retiring", 0.55)]),
        (
            "waiting_for_rank",
            [
                row("ranks", 3.0, variant=""),
                *(
                    row(f"wait_for_rank_{peer}", 1e-3, thread="rank 0", phase="wait_dispatch",
                        unit="s", **FUSED)
                    for peer in (1, 2)
                ),
            ],
        ),
        ("hot_expert", [row("load_max_over_mean", 1.2, variant="", phase="experts")]),
        ("branch_bound", [row("Bad_Speculation", 0.3, **MODEL)]),
    ],
)  # fmt: skip
def test_lookalikes_are_told_apart(rule, rows):
    """Stalls, one thread, models, the loop alone, other programs: not this rule's case."""
    assert rule not in rules_of(session(*rows))


@pytest.mark.parametrize(
    ("rule", "before", "after"),
    [
        # waiting that went away is no vectorisation
        ("vectorised", counted(103e9, 22e9), counted(63e9, 14e9)),
        # more work at a high IPC is work
        ("instructions_of_waiting", counted(60e9, 14e9), counted(80e9, 60e9)),
        # misses rose with their rate
        (
            "rate_rose_misses_fell",
            counted(1e9, 1e9, misses=4e6, references=180e6),
            counted(1e9, 1e9, misses=9e6, references=90e6),
        ),
    ],
)
def test_changes_that_are_something_else(rule, before, after):
    """The rule on two stages is silent where its condition only seems to hold."""
    assert rule not in rules_of(session(*before), session(*after, run_id="b"))


def test_equal_findings_are_one():
    """Two stages of which the same holds are named together."""
    rows = (row("Retiring", 0.7, variant="a"), row("Retiring", 0.8, variant="b"))
    (finding,) = explain([session(*rows)])
    assert (finding.stages, len(finding.evidence)) == (("a", "b"), 2)


def test_modelled_rows_make_a_finding_likely():
    """Certainty follows from the rows' provenance."""
    (measured,) = explain([session(row("Retiring", 0.7))])
    (modelled,) = explain([session(row("Retiring", 0.7, **MODEL))])
    assert (measured.certainty, modelled.certainty) == ("certain", "likely")


def test_one_sample_is_no_certainty():
    """It may have been disturbed; several are measured values."""
    times = (row("time", 1.0, n=1), row("cpu_time", 1.1), THREADS)
    (single,) = explain([session(*times)])
    (several,) = explain([session(row("time", 1.0, n=9), *times[1:])])
    assert single.rule == several.rule == "parallel_efficiency"
    assert (single.certainty, several.certainty) == ("likely", "certain")


def test_a_program_without_a_cause_says_what_is_missing():
    """With its own advice; a stage has other rows to go by."""
    rows = [
        row("verdict", None, source="unknown", scope="process"),
        row("verdict_evidence", None, source="it was cut off", scope="process"),
        row("verdict_advice", None, source="more time", scope="process"),
    ]
    (found,) = explain([session(*rows)])
    assert (found.rule, found.certainty, found.advice) == ("verdict", "possible", "more time")
    assert found.text.endswith("not found when it was measured: it was cut off.")
    assert explain([session(*(replace(one, scope="roi") for one in rows))]) == ()


def test_counts_say_where_the_work_is():
    """Without a clock the phases of the counted instructions speak, and no bound is promised."""
    before = session(row("instructions", 4e6), *instructions(gate_up=4e6))
    after = session(*ALONE["counted_only"], *ALONE["hot_phase"], run_id="b")
    found = {finding.rule: finding for finding in explain([before, after])}
    assert found["hot_phase"].text.startswith("60.0 % of its instructions are in gate_up, 2.0 %")
    assert found["vectorised"].advice.startswith("see where the remaining ones are")


def test_hot_phase_by_instructions_is_likely():
    """A phase's instructions may take longer than others': the time is not certain."""
    rows = (row("instructions", 1e6), *instructions(router=4e5, gate_up=6e5))
    found = {finding.rule: finding for finding in explain([session(*rows)])}
    assert "takes 40.0 % of the instructions" in found["hot_router"].text
    assert found["hot_router"].certainty == "likely"


def test_programs_are_not_mixed():
    """Fewer instructions of another program, or of other arguments, are no change."""
    argvs = [("topdown", "--", path) for path in ("/tmp/a", "/tmp/b", "new/a")]
    sessions = [
        session(*counted(1e9, count, scope="process"), argv=argv, scenario="", run_id=str(count))
        for argv, count in zip(argvs, (8e9, 2e9, 3e9), strict=True)
    ]
    assert "vectorised" not in rules_of(*sessions[:2])
    assert "vectorised" in rules_of(*sessions)


def test_scenarios_are_not_mixed():
    """Stages of different inputs are never before and after."""
    before, after = counted(1e9, 4e9), counted(1e9, 1e9)
    moved = [row(r.metric, r.value, scenario="S4", scope=r.scope) for r in after]
    assert "vectorised" not in rules_of(session(*before), session(*moved, run_id="b"))


def test_counts_by_cpu_are_added_up():
    """perf stat -A prints a row a CPU; their sum is what the rules see."""
    rows = [row("cycles", 6e9, cpu=f"CPU{i}", scope="system") for i in range(4)]
    assert "summed_cycles" in rules_of(session(*rows, row("time_elapsed", 1.0, scope="process")))
