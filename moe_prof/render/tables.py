"""Tables that several commands show, each a pure function from tidy rows to a rich renderable.

A mark says how a value came about: none for measured, ``s`` simulated, ``m`` modelled. It stands in
the column's title when it holds for the whole column, else behind the value. A missing value is a
dash, an impossible one carries ``!``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich import box
from rich.table import Table
from rich.text import Text

from moe_prof.analysis.query import RowIndex
from moe_prof.rows import Row
from moe_prof.units import count_text, digits_text, share_text, time_text

MISSING = "-"
MARKS = {"measured": "", "simulated": "s", "modelled": "m", "unavailable": ""}
LEGEND = (
    "m modelled, s simulated (exact counts, no time), - not to be had here (the rows of --format "
    "json say why), ! impossible; all others measured"
)


@dataclass(frozen=True, slots=True)
class Column:
    """One metric as a column: title, metric and how a value is written."""

    title: str
    metric: str
    form: Callable[[float], str]


def _times(value: float) -> str:
    return f"{digits_text(value)}x"


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"


STAGE_COLUMNS: tuple[Column, ...] = (
    Column("speedup", "speedup", _times),
    Column("/autovec", "speedup_over_autovec", _times),
    Column("roofline", "roofline_fraction", share_text),
    Column("of path", "roofline_fraction_path", share_text),
    Column("waiting", "spin_fraction", share_text),
)
TOPDOWN_COLUMNS: tuple[Column, ...] = (
    Column("retiring", "Retiring", _percent),
    Column("bad", "Bad_Speculation", _percent),
    Column("front", "Frontend_Bound", _percent),
    Column("back", "Backend_Bound", _percent),
    Column("= mem", "Backend_Bound.Memory_Bound", _percent),
    Column("+ core", "Backend_Bound.Core_Bound", _percent),
    Column("IPC", "IPC", "{:.2f}".format),
    Column("instr/MAC", "instructions_per_mac", digits_text),
)


COUNTER_COLUMNS: tuple[Column, ...] = (
    Column("instr.", "instructions", count_text),
    Column("/MAC", "instructions_per_mac", digits_text),
    Column("cycles", "cycles", count_text),
    Column("IPC", "IPC", "{:.2f}".format),
    Column("br miss", "branch-misses", count_text),
    Column("br miss", "branch_mispredictions", count_text),
    Column("c. refs", "cache-references", count_text),
    Column("c. miss", "cache-misses", count_text),
    Column("L1D miss", "l1d_misses", count_text),
    Column("L2 miss", "ll_misses", count_text),
    Column("CPU", "task-clock", time_text),
    Column("faults", "page-faults", count_text),
    Column("switch", "context-switches", count_text),
)


def counters_table(index: RowIndex, variants: Sequence[str]) -> Table:
    """Events of one forward; columns without any value are left out."""
    table = _table("variant")
    columns = [
        column
        for column in COUNTER_COLUMNS
        if any(index.value(variant, column.metric) is not None for variant in variants)
    ]
    cells = _columns(table, index, variants, columns)
    for variant in variants:
        table.add_row(Text(variant), *cells[variant])
    return table


def stage_table(index: RowIndex, variants: Sequence[str]) -> Table:
    """Time with its 95 % interval, speedups, roofline share and waiting of each variant."""
    table = _table("variant", "path")
    for title in ("T", "time", "95 % +-"):
        table.add_column(title, justify="right", no_wrap=True)
    cells = _columns(table, index, variants, STAGE_COLUMNS)
    for variant in variants:
        time = index.row(variant, "time")
        threads = index.value(variant, "threads")
        path = index.text(variant, "isa") if index.value(variant, "threads") else MISSING
        table.add_row(
            Text(variant),
            Text(path),
            MISSING if threads is None else f"{threads:.0f}",
            MISSING if time is None or time.value is None else time_text(time.value),
            _interval(index, variant),
            *cells[variant],
        )
    return table


def topdown_table(index: RowIndex, variants: Sequence[str]) -> Table:
    """The top-down tree of each variant, in percent of issue slots, with IPC."""
    table = _table("variant")
    cells = _columns(table, index, variants, TOPDOWN_COLUMNS)
    for variant in variants:
        table.add_row(Text(variant), *cells[variant])
    return table


def phase_table(index: RowIndex, variants: Sequence[str], phases: Sequence[str]) -> Table:
    """Share of each phase in the working time of each variant."""
    table = _table("variant")
    for phase in phases:
        table.add_column(phase, justify="right", no_wrap=True)
    for variant in variants:
        times = index.phases(variant, "phase_time")
        total = sum(times.values())
        if total <= 0:
            continue
        table.add_row(
            Text(variant),
            *(share_text(times[p] / total) if p in times else MISSING for p in phases),
        )
    return table


def _table(*titles: str) -> Table:
    """A table with columns of text, the first of which folds long names (paths of libraries)."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1), pad_edge=False, show_edge=False)
    for number, title in enumerate(titles):
        table.add_column(title, no_wrap=number > 0, overflow="fold")
    return table


def _columns(
    table: Table, index: RowIndex, variants: Sequence[str], columns: Sequence[Column]
) -> dict[str, list[str]]:
    """Add the columns' titles to the table; returns the cells by variant."""
    cells: dict[str, list[str]] = {variant: [] for variant in variants}
    for column in columns:
        found = {variant: index.row(variant, column.metric) for variant in variants}
        marks = {
            MARKS[row.provenance]
            for row in found.values()
            if row is not None and row.value is not None
        }
        shared = marks.pop() if len(marks) == 1 else None
        title = f"{column.title} {shared}" if shared else column.title
        table.add_column(title, justify="right", no_wrap=True)
        for variant, row in found.items():
            cells[variant].append(_cell(row, column.form, mark=shared is None))
    return cells


def _cell(row: Row | None, form: Callable[[float], str], *, mark: bool) -> str:
    if row is None or row.value is None:
        return MISSING
    text = form(row.value) + ("!" if row.status == "out_of_bounds" else "")
    return f"{text} {MARKS[row.provenance]}".rstrip() if mark else text


def _interval(index: RowIndex, variant: str) -> str:
    """Half of the interval's width over the median."""
    value = index.value(variant, "time")
    low, high = index.value(variant, "time_ci_low"), index.value(variant, "time_ci_high")
    if not value or low is None or high is None:
        return MISSING
    return f"{50 * (high - low) / value:.1f} %"
