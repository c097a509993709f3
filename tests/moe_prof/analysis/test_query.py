"""Looking values up in tidy rows."""

from __future__ import annotations

from moe_prof.analysis.query import RowIndex
from moe_prof.rows import unavailable
from tests.moe_prof.topdown.made import row


def test_the_last_row_of_a_metric_counts():
    """A better value that came later replaces the first."""
    index = RowIndex([row("IPC", 1.0), row("IPC", 2.0)])
    assert index.value("scalar", "IPC") == 2.0


def test_missing_is_none():
    """No row, and a row without a value."""
    index = RowIndex([unavailable("IPC", "1", "no PMU", collector="t", variant="scalar")])
    assert (index.value("scalar", "IPC"), index.value("scalar", "time")) == (None, None)
    assert (index.text("scalar", "IPC"), index.text("scalar", "time")) == ("no PMU", "")


def test_repetitions_and_intervals_are_left_out():
    """They are single samples, not the metric's value."""
    index = RowIndex([row("time", 3.0), row("time", 1.0, repeat=0), row("time", 2.0, time_s=0.1)])
    assert index.value("scalar", "time") == 3.0


def test_variants_in_order_of_appearance():
    """Rows of the machine have no variant."""
    rows = [row("clock", 1e9, ""), row("time", 1.0, "packed"), row("time", 1.0, "scalar")]
    assert RowIndex([*rows, rows[1]]).variants == ["packed", "scalar"]


def test_phase_and_thread_are_keys():
    """A thread's or phase's value is not the variant's."""
    index = RowIndex([row("t", 1.0, thread="0"), row("t", 2.0, phase="down"), row("t", 3.0)])
    assert (
        index.value("scalar", "t"),
        index.value("scalar", "t", thread="0"),
        index.value("scalar", "t", phase="down"),
    ) == (3.0, 1.0, 2.0)


def test_values_by_thread():
    """Without phases, sums, other variants and missing values."""
    rows = [
        row("busy", 1.0, thread="0"), row("busy", 2.0, thread="1"), row("busy", 3.0),
        row("busy", 4.0, thread="0", phase="down"), row("busy", 5.0, "packed", thread="0"),
        row("busy", None, thread="2", source="x"),
    ]  # fmt: skip
    assert RowIndex(rows).by_thread("scalar", "busy") == {"0": 1.0, "1": 2.0}


def test_values_by_phase_keep_the_rows_order():
    """Sums over threads only."""
    rows = [
        row("t", 1.0, phase="router"), row("t", 2.0, phase="down"),
        row("t", 9.0, phase="down", thread="0"), row("t", 7.0),
    ]  # fmt: skip
    assert list(RowIndex(rows).phases("scalar", "t").items()) == [("router", 1.0), ("down", 2.0)]


def test_a_part_of_the_machine_never_hides_the_whole():
    """Rows of one kind of cores, before and after the total."""
    part, total = row("instructions", 1.0, cpu="cpu_atom"), row("instructions", 5.0)
    assert RowIndex([part, total]).value("scalar", "instructions") == 5.0
    assert RowIndex([total, part]).value("scalar", "instructions") == 5.0


def test_a_part_of_the_machine_stands_in_for_a_missing_whole():
    """Top-down nodes of performance cores, the first ones named."""
    rows = [
        row("Retiring", None, source="no"), row("Retiring", 0.4, cpu="cpu_core"),
        row("Retiring", 0.1, cpu="cpu_atom"),
    ]  # fmt: skip
    assert RowIndex(rows).value("scalar", "Retiring") == 0.4
