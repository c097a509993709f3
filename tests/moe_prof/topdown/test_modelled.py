"""Top-down rows from hand-made simulated counts and times."""

from __future__ import annotations

from dataclasses import replace

import pytest

from moe_prof.collectors.base import Availability
from moe_prof.model.interval import NODES
from moe_prof.topdown.modelled import model, simulated_rows
from tests.moe_prof.topdown.made import COUNTS, PLATFORM, SUBJECT, demand, simulated

LEVEL1 = [name for name, level in NODES if level == 1]


def rows_by_metric(modelled):
    """The rows of a variant by metric."""
    return {row.metric: row for row in modelled.rows}


def test_every_node_is_there_and_modelled():
    """The whole tree in slots, with its level, marked as modelled."""
    found = rows_by_metric(model(SUBJECT, simulated(demand=demand()), PLATFORM))
    assert {
        (name, found[name].level, found[name].unit, found[name].provenance) for name, _ in NODES
    } == {(name, level, "slots", "modelled") for name, level in NODES}


def test_level_one_sums_to_one():
    """All slots are given to one of the four nodes."""
    found = rows_by_metric(model(SUBJECT, simulated(), PLATFORM))
    assert sum(found[name].value for name in LEVEL1) == pytest.approx(1.0)


def test_level_two_sums_to_the_backend():
    """Memory and core divide what the backend has."""
    found = rows_by_metric(model(SUBJECT, simulated(demand=demand()), PLATFORM))
    parts = (found["Backend_Bound.Memory_Bound"].value, found["Backend_Bound.Core_Bound"].value)
    assert sum(parts) == pytest.approx(found["Backend_Bound"].value)


def test_retiring_and_ipc_follow_from_counts_and_time():
    """2000 instructions in 1000 cycles of a core that is 4 wide."""
    found = rows_by_metric(model(SUBJECT, simulated(), PLATFORM))
    assert (found["Retiring"].value, found["IPC"].value) == pytest.approx((0.5, 2.0))


def test_working_cycles_are_a_row():
    """The verdict compares the hot loops' cycles with them."""
    row = rows_by_metric(model(SUBJECT, simulated(), PLATFORM))["working_cycles"]
    assert (row.value, row.unit, row.provenance) == (1000.0, "cycles", "modelled")


def test_validity_stands_in_every_node():
    """The model, the core and each node's own limit."""
    found = rows_by_metric(model(SUBJECT, simulated(), PLATFORM))
    assert found["Bad_Speculation"].source.startswith("interval model, testlake: upper bound")


def test_without_a_throughput_model_level_two_has_its_reason():
    """None and what is missing, not zero."""
    row = rows_by_metric(model(SUBJECT, simulated(), PLATFORM))["Backend_Bound.Core_Bound"]
    assert (row.value, row.provenance, row.status) == (None, "unavailable", "not_supported")
    assert "needs a throughput model" in row.source


NO_OBJDUMP = Availability("objdump", False, "objdump is not installed", "apt install binutils")
NO_MCA = Availability("llvm_mca", False, "llvm-mca is not installed", "apt install llvm")


@pytest.mark.parametrize(
    ("tools", "words"),
    [
        ((NO_OBJDUMP,), ": objdump is not installed; apt install binutils ("),
        ((NO_MCA,), ": llvm-mca is not installed; apt install llvm ("),
        ((NO_OBJDUMP, replace(NO_MCA, reason="no objdump", remedy="")), "apt install binutils ("),
    ],
)
def test_level_two_names_the_tool_that_is_missing(tools, words):
    """What stands in the way and what would change it, once."""
    made = simulated(tools=(*simulated().tools, *tools))
    row = rows_by_metric(model(SUBJECT, made, PLATFORM))["Backend_Bound.Memory_Bound"]
    assert row.source.startswith("needs a throughput model of the hot loop: ")
    assert words in row.source
    assert row.source.endswith("(interval model, testlake)")


def test_counts_are_simulated_rows():
    """Beside the tree, under callgrind's name."""
    found = rows_by_metric(model(SUBJECT, simulated(), PLATFORM))
    row = found["instructions"]
    assert (row.value, row.provenance, row.collector) == (2000.0, "simulated", "callgrind")


def test_instructions_per_mac():
    """2000 instructions for 1000 useful products."""
    found = rows_by_metric(model(SUBJECT, simulated(), PLATFORM))
    assert (found["instructions_per_mac"].value, found["instructions_per_mac"].unit) == (2.0, "1")


def test_no_products_no_instructions_per_mac():
    """A forward without tokens is not divided by zero."""
    rows = simulated_rows("s", "scalar", simulated(), "", macs=0)
    assert "instructions_per_mac" not in {row.metric for row in rows}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"core": None, "reasons": ("the core is not known",)}, "the core is not known"),
        ({"clock_hz": None, "reasons": ("no clock",)}, "no clock"),
        ({"core": None, "clock_hz": None, "reasons": ("no core", "no clock")}, "no core; no clock"),
    ],
)
def test_a_missing_figure_of_the_machine_leaves_the_reason(changes, reason):
    """No core or no clock: no tree, but the counts remain."""
    found = model(SUBJECT, simulated(), replace(PLATFORM, **changes))
    tree = {row.metric: row for row in found.rows if row.unit == "slots" or row.metric == "IPC"}
    assert {(row.value, row.provenance, row.source) for row in tree.values()} == {
        (None, "unavailable", reason)
    }
    assert set(tree) == {*(name for name, _ in NODES), "IPC"}
    assert rows_by_metric(found)["instructions"].value == 2000.0


def test_a_variant_that_cannot_be_simulated_has_only_reasons():
    """Tree, IPC and counts, all with the caller's reason."""
    found = model(SUBJECT, None, PLATFORM, "compiled inside Python")
    assert {(row.value, row.source) for row in found.rows} == {(None, "compiled inside Python")}
    assert {row.metric for row in found.rows} == {
        *(name for name, _ in NODES), "IPC", "instructions", "instructions_per_mac",
    }  # fmt: skip
    assert found.result is None


def test_a_failed_simulation_tells_its_tools_reason():
    """What the tool says goes before the caller's general reason, with the remedy."""
    tool = Availability("callgrind", False, "valgrind is not installed", "apt install valgrind")
    failed = simulated(counts=None, tools=(tool,))
    found = model(SUBJECT, failed, PLATFORM, "every path uses instructions that valgrind lacks")
    assert {row.source for row in found.rows} == {"valgrind is not installed; apt install valgrind"}


def test_an_impossible_share_is_no_value():
    """More instructions than slots: no tree and no IPC, with the reason."""
    many = simulated(counts=replace(COUNTS, instructions=8000.0))
    found = rows_by_metric(model(SUBJECT, many, PLATFORM))
    assert {found[name].value for name, _ in NODES} == {None}
    assert (found["IPC"].value, found["IPC"].provenance) == (None, "unavailable")
    assert found["IPC"].source.startswith("8 would be impossible")


def test_no_working_time_is_a_reason():
    """Threads that only wait have no cycles to divide."""
    found = model(replace(SUBJECT, waiting=1.0), simulated(), PLATFORM)
    assert rows_by_metric(found)["Retiring"].source == "no thread was seen working"


def test_a_count_that_was_not_simulated_is_no_zero():
    """Callgrind without its branch simulation."""
    lacking = simulated(counts=replace(COUNTS, branch_mispredictions=None))
    row = rows_by_metric(model(SUBJECT, lacking, PLATFORM))["branch_mispredictions"]
    assert (row.value, row.provenance) == (None, "unavailable")


@pytest.mark.parametrize(
    ("threads", "waiting", "cpu_s", "busy_s", "expected"),
    [
        (1, None, None, None, 1.0),
        (2, None, None, None, 2.0),
        (2, 0.25, None, None, 1.5),
        (2, 0.25, 1.2, None, 1.2),
        (2, 0.25, 1.9, None, 1.5),
        (4, 0.0, 2.0, None, 2.0),
        (2, 0.998, 1.9, 0.8, 0.8),
        (2, 0.998, 0.7, 0.8, 0.7),
    ],
)
def test_working_time(threads, waiting, cpu_s, busy_s, expected):
    """Wall time x threads x (1 - waiting), at least the timers' busy time, at most CPU time."""
    subject = replace(
        SUBJECT, time_s=1.0, threads=threads, waiting=waiting, cpu_s=cpu_s, busy_s=busy_s
    )
    assert subject.working_s == pytest.approx(expected)
