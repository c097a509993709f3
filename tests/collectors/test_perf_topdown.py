"""Top-down nodes from recorded-format outputs of Intel, AMD and Arm, and their checks."""

from __future__ import annotations

from pathlib import Path

import pytest

from moe_prof.collectors.perf_parse import parse
from moe_prof.collectors.perf_topdown import Node, counterpart, nodes

FOLDER = Path(__file__).parents[1] / "fixtures" / "perf"
LEVEL1 = ("Retiring", "Bad_Speculation", "Frontend_Bound", "Backend_Bound")


def of_file(name: str, *, pmu: str | None = None, scope: str = "") -> dict[str, Node]:
    """Nodes of a recorded output by name, for one PMU and scope."""
    report = parse((FOLDER / name).read_text(encoding="utf-8"))
    assert report.warnings == ()
    return {
        node.name: node
        for node in nodes(report)
        if node.at.pmu in (pmu, "cpu") and node.at.scope == scope
    }


def rounded(found: dict[str, Node]) -> dict[str, float | None]:
    """Values to four places."""
    return {
        name: None if node.value is None else round(node.value, 4) for name, node in found.items()
    }


def test_intel_slot_counts_to_level_2() -> None:
    """Each count over slots; the second child of a node is the difference."""
    assert rounded(of_file("spr_slots.csv")) == {
        "Retiring": 0.75,
        "Bad_Speculation": 0.008,
        "Frontend_Bound": 0.036,
        "Backend_Bound": 0.206,
        "Retiring.Light_Operations": 0.7,
        "Retiring.Heavy_Operations": 0.05,
        "Bad_Speculation.Branch_Mispredicts": 0.006,
        "Bad_Speculation.Machine_Clears": 0.002,
        "Frontend_Bound.Fetch_Latency": 0.02,
        "Frontend_Bound.Fetch_Bandwidth": 0.016,
        "Backend_Bound.Memory_Bound": 0.005,
        "Backend_Bound.Core_Bound": 0.201,
    }


def test_table_of_62_with_level_2_and_colours() -> None:
    """The hard-coded table, its first cell coloured."""
    found = of_file("topdown_61_level2.txt")

    assert rounded(found)["Retiring"] == 0.752
    assert rounded(found)["Backend_Bound.Core_Bound"] == 0.201
    assert found["Backend_Bound.Core_Bound"].perf_name == "Core bound"
    assert found["Backend_Bound.Core_Bound"].level == 2


def test_table_of_json_metrics() -> None:
    """The table of 6.4 and later names columns ``%  tma_...``."""
    found = of_file("topdown_612.txt")

    assert tuple(rounded(found).values()) == (0.752, 0.008, 0.035, 0.205)
    assert found["Retiring"].perf_name == "tma_retiring"


def test_json_form_of_metrics() -> None:
    """perf's tma_ formulas are taken in preference to the raw counts beside them."""
    assert rounded(of_file("topdown_612_metric.json")) == {
        "Retiring": 0.751,
        "Bad_Speculation": 0.0085,
        "Frontend_Bound": 0.0351,
        "Backend_Bound": 0.2054,
    }


def test_missing_cell_of_a_per_core_table() -> None:
    """A blank cell is a missing node; its neighbours keep their columns."""
    found = of_file("topdown_5x_cores.txt", scope="S0-D0-C1")

    assert rounded(found) == {
        "Retiring": 0.162,
        "Bad_Speculation": None,
        "Frontend_Bound": 0.365,
        "Backend_Bound": 0.316,
    }
    assert found["Bad_Speculation"].status == "not_counted"


def test_hybrid_pmus_stay_apart() -> None:
    """Each PMU has its own tree."""
    assert rounded(of_file("hybrid.txt", pmu="cpu_core"))["Retiring"] == 0.425
    assert rounded(of_file("hybrid.txt", pmu="cpu_atom"))["Retiring"] == 0.192


def test_zen4_metrics_keep_amds_names() -> None:
    """Pipeline metrics with SMT contention as the fifth node of level 1."""
    found = of_file("zen4_pipeline.txt")

    assert rounded(found) == {
        "Retiring": 0.6,
        "Bad_Speculation": 0.02,
        "Frontend_Bound": 0.15,
        "Backend_Bound": 0.218,
        "SMT_Contention": 0.012,
        "Bad_Speculation.Branch_Mispredicts": 0.018,
        "Frontend_Bound.Fetch_Latency": 0.06,
        "Frontend_Bound.Fetch_Bandwidth": 0.09,
        "Backend_Bound.Memory_Bound": 0.098,
        "Backend_Bound.Core_Bound": 0.12,
        "Retiring.Fastpath": 0.594,
        "Retiring.Microcode": 0.006,
        "Bad_Speculation.Pipeline_Restarts": 0.002,
    }
    assert found["Backend_Bound.Memory_Bound"].perf_name == "backend_bound_memory"
    assert found["Retiring"].status == "multiplexed"


def test_zen5_counts_use_eight_slots_a_cycle() -> None:
    """Without metrics the dispatch counts give the same tree."""
    found = rounded(of_file("zen5_counts.csv"))

    assert tuple(found[name] for name in LEVEL1) == (0.6, 0.02, 0.2, 0.17)
    assert found["SMT_Contention"] == 0.01
    assert found["Backend_Bound.Memory_Bound"] == 0.051
    assert found["Frontend_Bound.Fetch_Latency"] == 0.1
    assert found["Bad_Speculation.Branch_Mispredicts"] == 0.015


def test_zen5_metrics_in_slots_and_ops() -> None:
    """Newer units ``%slots`` and ``%ops`` are percent."""
    found = rounded(of_file("zen5_pipeline.txt"))

    assert tuple(found[name] for name in LEVEL1) == (0.6, 0.02, 0.2, 0.17)


def test_given_width_wins_over_a_guess() -> None:
    """The caller can say how wide the core is."""
    report = parse("100;;ls_not_halted_cyc;9;100.00;;\n240;;ex_ret_ops;9;100.00;;\n")

    assert nodes(report) == ()
    assert nodes(report, slots_per_cycle=8)[0].value == 0.3


def test_arm_percent_of_slots() -> None:
    """Arm's metric group."""
    found = of_file("arm_topdown.txt")

    assert tuple(rounded(found).values()) == (0.523, 0.004, 0.068, 0.405)
    assert found["Retiring"].at.running_pct == 15.4


def test_core_slot_counts_before_ice_lake() -> None:
    """Four counts per core; the back end is what is left."""
    report = parse(
        "S0-D0-C0;2;1000;;topdown-total-slots;9;100.00;;\n"
        "S0-D0-C0;2;500;;topdown-slots-issued;9;100.00;;\n"
        "S0-D0-C0;2;450;;topdown-slots-retired;9;100.00;;\n"
        "S0-D0-C0;2;200;;topdown-fetch-bubbles;9;100.00;;\n"
        "S0-D0-C0;2;30;;topdown-recovery-bubbles;9;100.00;;\n"
    )

    assert [(n.name, round(n.value or 0, 4), n.at.scope) for n in nodes(report)] == [
        ("Retiring", 0.45, "S0-D0-C0"),
        ("Bad_Speculation", 0.08, "S0-D0-C0"),
        ("Frontend_Bound", 0.2, "S0-D0-C0"),
        ("Backend_Bound", 0.27, "S0-D0-C0"),
    ]


def test_impossible_value_is_kept_and_marked() -> None:
    """143 % stays 1.43, with the reason."""
    report = parse("core,cpus,retiring,bad speculation,\nS0-C0,2,143.0,-0.1,\n")

    assert [(n.value, n.status, n.note) for n in nodes(report)] == [
        (1.43, "out_of_bounds", "143.0 % of slots is impossible"),
        (-0.001, "out_of_bounds", "-0.1 % of slots is impossible"),
    ]


@pytest.mark.parametrize(("backend", "status"), [("31.6", "ok"), ("42.6", "out_of_bounds")])
def test_level_1_must_add_up(backend: str, status: str) -> None:
    """A sum of 111 % marks all four nodes; nothing is rescaled."""
    report = parse(
        f"retiring,bad speculation,frontend bound,backend bound,\n16.2,15.7,36.5,{backend},\n"
    )

    found = nodes(report)
    assert [n.status for n in found] == [status] * 4
    assert found[3].value == float(backend) / 100


def test_fractions_without_a_percent_sign() -> None:
    """Early JSON metrics print fractions under capitalised names."""
    report = parse("5;;cycles;9;100.00;0.30;Retiring\n;;;;;0.25;Frontend_Bound\n")

    assert [(n.name, n.value) for n in nodes(report)] == [
        ("Retiring", 0.3),
        ("Frontend_Bound", 0.25),
    ]


def test_hard_coded_comments_in_csv_are_percent() -> None:
    """Up to 6.3 the percent sign of these four is lost in CSV."""
    report = parse("5;;x-retiring;9;100.00;30.0;retiring\n5;;x-bad;9;100.00;10.0;bad speculation\n")

    assert [n.value for n in nodes(report)] == [0.3, 0.1]


def test_uncounted_slots_give_missing_nodes_with_the_reason() -> None:
    """No slots, no fractions."""
    report = parse(
        "<not supported>;;slots;0;100.00;;\n<not supported>;;topdown-retiring;0;100.00;;\n"
    )

    assert [(n.name, n.value, n.status, n.note) for n in nodes(report)] == [
        ("Retiring", None, "not_supported", "topdown-retiring: not supported")
    ]


@pytest.mark.parametrize(
    ("metric", "name"),
    [
        ("tma_memory_bound", "Backend_Bound.Memory_Bound"),
        ("frontend bound", "Frontend_Bound"),
        ("backend_bound_by_memory", "Backend_Bound.Memory_Bound"),
        ("retiring_from_microcode", "Retiring.Microcode"),
        ("tma_l3_bound", None),
        ("tma_backend_bound_aux", None),
        ("insn per cycle", None),
    ],
)
def test_counterpart(metric: str, name: str | None) -> None:
    """Only nodes of level 1 and 2 have a counterpart."""
    assert counterpart(metric) == name
