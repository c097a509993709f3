"""Tables that several commands show, each a pure function from tidy rows to a rich renderable.

A mark says how a value came about: none for measured, ``s`` simulated, ``m`` modelled. It stands in
the column's title when it holds for the whole column, else behind the value. A missing value is a
dash, one that scatters too much says so, an impossible one carries ``!``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from moe_prof.analysis.fastest import time_half_width
from moe_prof.analysis.query import RowIndex
from moe_prof.collectors.qemu_user import NO_PHASE
from moe_prof.hotspots.phases import PHASES
from moe_prof.render.fitted import Column as Fitted
from moe_prof.render.fitted import FittedTable
from moe_prof.rows import Row
from moe_prof.units import count_text, digits_text, share_text, time_text

MISSING = "-"
NOISY = "too noisy"
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


EMULATED_COLUMNS: tuple[Column, ...] = (
    Column("rel RMSE", "rel_rmse", "{:.1e}".format),
    Column("instr.", "instructions", count_text),
    Column("/MAC", "instructions_per_mac", digits_text),
    Column("fewer", "instruction_reduction", _times),
)


def counters_table(index: RowIndex, variants: Sequence[str]) -> FittedTable:
    """Events of one forward; columns without any value are left out."""
    columns = [
        column
        for column in COUNTER_COLUMNS
        if any(index.value(variant, column.metric) is not None for variant in variants)
    ]
    return _metric_table(index, variants, columns)


def emulated_table(index: RowIndex, variants: Sequence[str]) -> FittedTable:
    """Check and counts of variants that ran in an emulator."""
    titles, cells = titled_cells(index, variants, EMULATED_COLUMNS)
    table = FittedTable("variant", (Fitted("path", "left"), *titles))
    for variant in variants:
        path, _, _ = (index.text(variant, "isa") or MISSING).partition(",")
        table.add_row(variant, path, *cells[variant])
    return table


def instruction_phase_table(index: RowIndex, variants: Sequence[str]) -> FittedTable:
    """Share of each phase in the counted instructions of each variant."""
    found = {variant: index.phases(variant, "instructions") for variant in variants}
    known = {phase for counts in found.values() for phase in counts}
    phases = [phase for phase in (*PHASES, NO_PHASE) if phase in known]
    table = FittedTable("variant", [Fitted("between" if p == NO_PHASE else p) for p in phases])
    for variant, counts in found.items():
        total = sum(counts.values())
        if total > 0:
            shares = (share_text(counts[p] / total) if p in counts else MISSING for p in phases)
            table.add_row(variant, *shares)
    return table


def stage_table(index: RowIndex, variants: Sequence[str]) -> FittedTable:
    """Time with its 95 % interval, speedups, roofline share and waiting of each variant."""
    titles, cells = titled_cells(index, variants, STAGE_COLUMNS)
    first = (Fitted("path", "left"), Fitted("T"), Fitted("time"), Fitted("95 % +-"))
    table = FittedTable("variant", (*first, *titles))
    for variant in variants:
        time = index.row(variant, "time")
        threads = index.row(variant, "threads")
        path = index.text(variant, "isa") if threads is not None and threads.value else MISSING
        half_width = time_half_width(index, variant)
        table.add_row(
            variant,
            path,
            cell_text(threads, "{:.0f}".format, mark=False),
            MISSING if time is None or time.value is None else time_text(time.value),
            MISSING if half_width is None else f"{100 * half_width:.1f} %",
            *cells[variant],
        )
    return table


def topdown_table(index: RowIndex, variants: Sequence[str]) -> FittedTable:
    """The top-down tree of each variant, in percent of issue slots, with IPC.

    Where the slots are those of another path than the one that was timed, the path is named.
    """
    paths = {variant: index.text(variant, "modelled_isa") for variant in variants}
    labels = {name: f"{name} ({path})" for name, path in paths.items() if path}
    return _metric_table(index, variants, TOPDOWN_COLUMNS, labels)


def phase_table(index: RowIndex, variants: Sequence[str], phases: Sequence[str]) -> FittedTable:
    """Share of each phase in the working time of each variant."""
    table = FittedTable("variant", [Fitted(phase) for phase in phases])
    for variant in variants:
        times = index.phases(variant, "phase_time")
        total = sum(times.values())
        if total <= 0:
            continue
        table.add_row(
            variant,
            *(share_text(times[p] / total) if p in times else MISSING for p in phases),
        )
    return table


def _metric_table(
    index: RowIndex,
    variants: Sequence[str],
    columns: Sequence[Column],
    labels: Mapping[str, str] | None = None,
) -> FittedTable:
    titles, cells = titled_cells(index, variants, columns)
    table = FittedTable("variant", titles)
    for variant in variants:
        table.add_row((labels or {}).get(variant, variant), *cells[variant])
    return table


def titled_cells(
    index: RowIndex, variants: Sequence[str], columns: Sequence[Column]
) -> tuple[list[Fitted], dict[str, list[str]]]:
    """The columns' titles, and the cells by variant."""
    titles = []
    cells: dict[str, list[str]] = {variant: [] for variant in variants}
    for column in columns:
        found = {variant: index.row(variant, column.metric) for variant in variants}
        marks = {
            MARKS[row.provenance]
            for row in found.values()
            if row is not None and row.value is not None
        }
        shared = marks.pop() if len(marks) == 1 else None
        titles.append(Fitted(f"{column.title} {shared}" if shared else column.title))
        for variant, row in found.items():
            cells[variant].append(cell_text(row, column.form, mark=shared is None))
    return titles, cells


def cell_text(row: Row | None, form: Callable[[float], str], *, mark: bool) -> str:
    """A value with its marks, a dash for a missing one."""
    if row is None or row.value is None:
        return NOISY if row is not None and row.status == "below_threshold" else MISSING
    text = form(row.value) + ("!" if row.status == "out_of_bounds" else "")
    return f"{text} {MARKS[row.provenance]}".rstrip() if mark else text
