"""Tables from hand-made rows: marks of provenance, dashes for what is missing, whole cells."""

from __future__ import annotations

import io

import pytest
from rich.console import Console, RenderableType

from moe_prof.analysis.query import RowIndex
from moe_prof.kernels import PHASES
from moe_prof.kernels.table import BY_NAME
from moe_prof.render.tables import (
    COUNTER_COLUMNS,
    TOPDOWN_COLUMNS,
    counters_table,
    phase_table,
    stage_table,
    topdown_table,
)
from moe_prof.rows import unavailable
from tests.moe_prof.topdown.made import row

MARKUP = "./[red]mine[/red].so"


def text(renderable: RenderableType, width: int = 100) -> str:
    """What a plain page of that width shows."""
    out = io.StringIO()
    Console(file=out, width=width, no_color=True, highlight=False).print(renderable)
    return out.getvalue()


def lines(renderable: RenderableType, width: int = 100) -> list[list[str]]:
    """The words of each line, without the rules below titles and the lines between blocks."""
    shown = text(renderable, width).splitlines()
    return [line.split() for line in shown if line.strip() and "─" not in line]


def modelled(metric: str, value: float, variant: str = "scalar", **more: object):
    """A modelled row."""
    return row(metric, value, variant, provenance="modelled", **more)


def test_a_common_mark_stands_in_the_title():
    """All values of the column are modelled, so the cells need no mark."""
    index = RowIndex([modelled("IPC", 2.0), modelled("IPC", 3.0, "packed")])
    titles, scalar, packed = lines(topdown_table(index, ["scalar", "packed"]))
    assert titles[-3:] == ["IPC", "m", "instr/MAC"]
    assert (scalar[-2:], packed[-2:]) == (["2.00", "-"], ["3.00", "-"])


def test_mixed_marks_stand_in_the_cells():
    """One measured, one modelled: the title has none."""
    index = RowIndex([row("IPC", 2.0), modelled("IPC", 3.0, "packed")])
    titles, scalar, packed = lines(topdown_table(index, ["scalar", "packed"]))
    assert titles[-2:] == ["IPC", "instr/MAC"]
    assert (scalar[-2:], packed[-3:]) == (["2.00", "-"], ["3.00", "m", "-"])


def test_measured_columns_have_no_mark():
    """Nothing to warn of."""
    titles, scalar = lines(topdown_table(RowIndex([row("IPC", 2.0)]), ["scalar"]))
    assert (titles[-2:], scalar[-2:]) == (["IPC", "instr/MAC"], ["2.00", "-"])


def test_simulated_columns_are_marked():
    """By an s."""
    index = RowIndex([row("instructions_per_mac", 4.5, provenance="simulated")])
    titles, scalar = lines(topdown_table(index, ["scalar"]))
    assert (titles[-2:], scalar[-1]) == (["instr/MAC", "s"], "4.50")


def test_missing_values_are_dashes():
    """A variant without any row, and one whose rows have reasons."""
    index = RowIndex([unavailable("IPC", "1", "no PMU", collector="t", variant="scalar")])
    assert lines(topdown_table(index, ["scalar", "packed"]))[1:] == [
        ["scalar", *"--------"], ["packed", *"--------"],
    ]  # fmt: skip


def test_impossible_values_carry_an_exclamation_mark():
    """In the cell, whatever the column's mark."""
    index = RowIndex([modelled("IPC", 9.0, status="out_of_bounds"), modelled("IPC", 3.0, "packed")])
    _, scalar, packed = lines(topdown_table(index, ["scalar", "packed"]))
    assert (scalar[-2], packed[-2]) == ("9.00!", "3.00")


def test_a_real_zero_is_no_dash():
    """0 % was found, not missed."""
    index = RowIndex([row("Bad_Speculation", 0.0, level=1, unit="slots")])
    assert lines(topdown_table(index, ["scalar"]))[1][:3] == ["scalar", "-", "0.0"]


def test_nodes_are_percent_of_slots():
    """In the order of the tree."""
    nodes = ("Retiring", "Bad_Speculation", "Frontend_Bound", "Backend_Bound",
             "Backend_Bound.Memory_Bound", "Backend_Bound.Core_Bound")  # fmt: skip
    rows = [row(name, value / 100) for value, name in enumerate(nodes, start=10)]
    assert lines(topdown_table(RowIndex(rows), ["scalar"]))[1][1:7] == [
        "10.0", "11.0", "12.0", "13.0", "14.0", "15.0",
    ]  # fmt: skip


STAGE_ROWS = [
    row("isa", None, source="avx2"), row("threads", 2.0), row("time", 2e-3),
    row("time_ci_low", 1.9e-3), row("time_ci_high", 2.1e-3), row("speedup", 3.0),
    row("speedup_over_autovec", 1.5), modelled("roofline_fraction", 0.25),
    modelled("roofline_fraction_path", 0.5), row("spin_fraction", 0.125),
]  # fmt: skip


def test_a_stage():
    """Path, threads, time with half of its interval's width, speedups, roofline, waiting."""
    titles, scalar = lines(stage_table(RowIndex(STAGE_ROWS), ["scalar"]))
    assert titles[:4] == ["variant", "path", "T", "time"]
    assert " ".join(scalar) == "scalar avx2 2 2.00 ms 5.0 % 3.00x 1.50x 25.0 % 50.0 % 12.5 %"


def test_a_stage_that_never_ran():
    """Dashes, and the reason of its missing path is not taken for a path."""
    rows = [
        unavailable(name, "1", "it crashed", collector="t", variant="scalar")
        for name in ("isa", "time", "speedup")
    ]
    assert lines(stage_table(RowIndex(rows), ["scalar"]))[1] == ["scalar", *"---------"]


def test_without_an_interval_there_is_a_dash():
    """Too few samples."""
    rows = [r for r in STAGE_ROWS if not r.metric.startswith("time_ci")]
    assert lines(stage_table(RowIndex(rows), ["scalar"]))[1][5] == "-"


def test_counters_without_values_are_left_out():
    """A column that nobody has only costs width."""
    index = RowIndex([row("instructions", 5e6, provenance="simulated"), row("cycles", None)])
    titles, scalar = lines(counters_table(index, ["scalar"]))
    assert (titles, scalar) == (["variant", "instr.", "s"], ["scalar", "5.00", "M"])


def test_phases_are_shares_of_the_working_time():
    """In the given order; a phase that a variant lacks is a dash."""
    index = RowIndex([row("phase_time", 3.0, phase="down"), row("phase_time", 1.0, phase="router")])
    titles, scalar = lines(phase_table(index, ["scalar"], ["router", "bucket", "down"]))
    assert titles == ["variant", "router", "bucket", "down"]
    assert " ".join(scalar) == "scalar 25.0 % - 75.0 %"


def test_variants_without_phases_are_left_out():
    """No row of dashes, and no table without rows."""
    assert phase_table(RowIndex([]), ["scalar"], PHASES).row_count == 0


@pytest.mark.parametrize("table", [counters_table, stage_table, topdown_table])
def test_names_are_no_markup(table):
    """A library's path in brackets is shown as it is."""
    index = RowIndex([row("instructions", 5.0, MARKUP)])
    assert MARKUP in text(table(index, [MARKUP]))


def test_names_in_the_phase_table_are_no_markup():
    """The same there."""
    index = RowIndex([row("phase_time", 3.0, MARKUP, phase="down")])
    assert MARKUP in text(phase_table(index, [MARKUP], ["down"]))


@pytest.mark.parametrize("table", [stage_table, topdown_table])
def test_a_long_name_folds_and_figures_stay_whole(table):
    """A deep path does not cut the numbers off."""
    name = "./" + "deep/" * 20 + "mine.so"
    rows = [row(r.metric, r.value, name, source=r.source) for r in STAGE_ROWS]
    shown = text(table(RowIndex([*rows, row("IPC", 2.34, name)]), [name]))
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= 100
    assert ("2.34" in shown) or ("3.00x" in shown)


WIDTHS = (100, 80, 60)
NAME = max(BY_NAME, key=len)
WIDEST = [
    row("isa", None, NAME, source="avx512_vnni"),
    row("threads", 1024.0, NAME, status="out_of_bounds"),
    row("time", 123.4e-6, NAME), row("time_ci_low", 1e-9, NAME), row("time_ci_high", 1e-3, NAME),
    row("speedup", 123456.0, NAME),
    row("speedup_over_autovec", None, NAME, status="below_threshold"),
    modelled("roofline_fraction", 12.345, NAME, status="out_of_bounds"),
    modelled("roofline_fraction_path", 0.9999, NAME), row("spin_fraction", 1.0, NAME),
    *(modelled(column.metric, 0.99999, NAME, status="out_of_bounds") for column in TOPDOWN_COLUMNS),
    *(row(column.metric, 123.4e6, NAME, provenance="simulated") for column in COUNTER_COLUMNS
      if column.metric not in {c.metric for c in TOPDOWN_COLUMNS}),
    *(row("phase_time", 1.0, NAME, phase=phase) for phase in PHASES),
]  # fmt: skip


def phases_table(index, variants):
    """The phases as the other tables are called."""
    return phase_table(index, variants, PHASES)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("table", [counters_table, stage_table, topdown_table, phases_table])
def test_every_figure_is_whole_on_any_width(table, width):
    """All cells with unit and mark, all titles, the name beside each, and no longer line."""
    wide = lines(table(RowIndex(WIDEST), [NAME]), 1000)
    shown = text(table(RowIndex(WIDEST), [NAME]), width)
    assert max(map(len, shown.splitlines())) <= width
    assert "…" not in shown
    narrow = lines(table(RowIndex(WIDEST), [NAME]), width)
    titles = [word for line in narrow[0::2] for word in line[1:]]
    cells = [word for line in narrow[1::2] for word in line[1:]]
    assert {line[0] for line in narrow[1::2]} == {NAME}
    assert (titles, cells) == (wide[0][1:], wide[1][1:])


def test_columns_share_a_block_where_they_fit():
    """A page of 100 columns shows a usual stage in one line."""
    assert len(lines(stage_table(RowIndex(STAGE_ROWS), ["scalar"]))) == 2


@pytest.mark.parametrize("width", WIDTHS)
def test_a_long_name_folds_on_any_width(width):
    """Names fold, figures do not: the cells are those of a wide page."""
    name = "./" + "deep/" * 20 + "mine.so"
    index = RowIndex([row("IPC", 2.34, name), row("Retiring", 0.999, name)])
    shown = text(topdown_table(index, [name]), width)
    assert max(map(len, shown.splitlines())) <= width
    assert "99.9" in shown
    assert "2.34" in shown
    assert "…" not in shown


def test_noise_takes_the_place_of_a_speedup():
    """Words, not a dash: the figure was had and says nothing."""
    index = RowIndex([row("time", 1e-3), row("speedup", None, status="below_threshold")])
    assert "too noisy" in text(stage_table(index, ["scalar"]))


def test_more_threads_than_cpus_are_marked():
    """With the mark of the impossible."""
    index = RowIndex([row("time", 1e-3), row("threads", 99.0, status="out_of_bounds")])
    assert "99!" in text(stage_table(index, ["scalar"]))
