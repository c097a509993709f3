"""Figures from rows: what they show, and that they show nothing where there is nothing."""

from __future__ import annotations

import pytest

from moe_prof import figures
from moe_prof.analysis.accuracy import CASES, SCHEMES, ScaleError
from moe_prof.analysis.query import RowIndex
from moe_prof.figures.slots import slot_shares
from tests.moe_prof.report import made_sessions as made
from tests.moe_prof.topdown.made import row

ROWS = made.timing_rows() + made.topdown_rows()
FROM_ROWS = {
    "speedups": figures.speedups, "slots": figures.slots, "phases": figures.phases,
    "threads": figures.threads, "counters": figures.counters,
}  # fmt: skip


def texts(figure) -> set[str]:
    """All texts of a figure's first axes."""
    axes = figure.axes[0]
    return {
        *(label.get_text() for label in axes.get_yticklabels()),
        *(text.get_text() for text in axes.texts),
    }


@pytest.mark.parametrize("draw", FROM_ROWS.values(), ids=FROM_ROWS)
def test_nothing_to_show_is_none(draw):
    """No rows, and rows of other metrics."""
    assert draw([]) is None
    assert draw([row("rel_rmse", 0.1)]) is None


@pytest.mark.parametrize("draw", FROM_ROWS.values(), ids=FROM_ROWS)
def test_variants_are_named(draw):
    """In the order asked for."""
    labels = [t.get_text() for t in draw(ROWS).axes[0].get_yticklabels()]
    assert any("scalar" in label for label in labels)
    assert any("packed" in label for label in labels)
    assert all(
        "scalar" not in t.get_text() for t in draw(ROWS, ["packed"]).axes[0].get_yticklabels()
    )


def test_speedups_show_values_and_intervals():
    """The value as text, and a line from end to end of its interval."""
    figure = figures.speedups(ROWS)
    ends = [tuple(line.get_xdata()) for line in figure.axes[0].lines]
    assert {"1.00x", "40.0x"} <= texts(figure)
    assert pytest.approx((38.0, 42.0)) in ends


def test_a_missing_speedup_is_no_point():
    """A variant without one is left out, not drawn at 0."""
    rows = [row("speedup", 2.0, "a"), row("speedup", None, "b", status="not_supported")]
    assert texts(figures.speedups(rows)) == {"a", "2.00x"}


def test_slots_take_level_2_where_all_parts_are_known():
    """Else the node itself, so that the bar's sum stays."""
    rows = [
        row("Retiring", 0.5, level=1), row("Backend_Bound", 0.5, level=1),
        row("Backend_Bound.Memory_Bound", 0.2), row("Backend_Bound.Core_Bound", 0.3),
        row("Retiring.Light_Operations", 0.4), row("Retiring.Heavy_Operations", None),
    ]  # fmt: skip
    assert slot_shares(RowIndex(rows), "scalar") == {
        "Retiring": 0.5, "Backend_Bound.Memory_Bound": 0.2, "Backend_Bound.Core_Bound": 0.3,
    }  # fmt: skip


def test_slots_of_another_path_name_it():
    """Where the path that was timed could not be modelled."""
    rows = [*ROWS, row("modelled_isa", None, "packed", source="avx2")]
    assert "packed (avx2)" in texts(figures.slots(rows))


def test_scale_errors_show_both_schemes():
    """One point a case and scheme."""
    errors = [
        ScaleError(scheme, case, 0.1, 0.1, 0.1) for case in CASES for scheme in SCHEMES
    ]  # fmt: skip
    axes = figures.scale_errors(errors).axes[0]
    assert [len(line.get_xdata()) for line in axes.lines] == [len(CASES)] * len(SCHEMES)
    assert figures.scale_errors([]) is None


def span(begin_s, length_s, phase, thread, name="packed"):
    """A step of one thread."""
    return row("phase_span", length_s, name, unit="s", time_s=begin_s, phase=phase, thread=thread)


TIMELINE = [
    row("timeline_time", 1e-3, "packed", unit="s"),
    span(0.0, 2e-4, "down", "0"), span(5e-4, 5e-4, "router", "0"), span(0.0, 1e-3, "router", "1"),
]  # fmt: skip


def test_a_timeline_shows_each_thread_over_time():
    """Steps where they were, phases in the order of the layer, the rest waiting."""
    figure = figures.timeline(TIMELINE, "packed")
    (axes,) = figure.axes
    _, labels = axes.get_legend_handles_labels()
    assert labels == ["router", "down", "waiting"]
    assert [t.get_text() for t in axes.get_yticklabels()] == ["T0", "T1"]
    assert axes.get_xlabel() == "ms since the forward's begin"
    boxes = {
        tuple(round(float(value), 3) for value in path.get_extents().intervalx)
        for steps in axes.collections for path in steps.get_paths()
    }  # fmt: skip
    assert boxes == {(0.0, 0.2), (0.5, 1.0), (0.0, 1.0)}


def test_no_timeline_without_steps():
    """Of another variant, or without the forward's time."""
    assert figures.timeline(TIMELINE, "scalar") is None
    assert figures.timeline(TIMELINE[1:], "packed") is None
