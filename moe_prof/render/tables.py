"""Tables that several commands show, each a pure function from tidy rows to a rich renderable.

A mark behind a value says how it came about: none for measured, ``s`` simulated, ``m`` modelled; a
missing value is a dash.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich import box
from rich.table import Table

from moe_prof.analysis.query import RowIndex
from moe_prof.rows import Row
from moe_prof.units import digits_text, share_text, time_text

MISSING = "-"
MARKS = {"measured": "", "simulated": "s", "modelled": "m", "unavailable": ""}
LEGEND = "m modelled, s simulated (counted exactly, no time), - not to be had here; others measured"

TOPDOWN_COLUMNS: tuple[tuple[str, str], ...] = (
    ("Retiring", "retiring"),
    ("Bad_Speculation", "bad spec."),
    ("Frontend_Bound", "frontend"),
    ("Backend_Bound", "backend"),
    ("Backend_Bound.Memory_Bound", "memory"),
    ("Backend_Bound.Core_Bound", "core"),
)


def stage_table(index: RowIndex, variants: Sequence[str]) -> Table:
    """Time, interval, speedups, roofline share and waiting of each variant."""
    table = _table()
    table.add_column("variant", no_wrap=True)
    table.add_column("path", no_wrap=True)
    table.add_column("T", justify="right")
    for title in (
        "time",
        "95 % interval",
        "speedup",
        "/autovec",
        "roofline",
        "waiting",
        "rel RMSE",
    ):
        table.add_column(title, justify="right", no_wrap=True)
    for variant in variants:
        table.add_row(
            variant,
            index.text(variant, "isa") or MISSING,
            _plain(index.value(variant, "threads"), "{:.0f}"),
            _formatted(index.row(variant, "time"), time_text),
            _time_interval(index, variant),
            _formatted(index.row(variant, "speedup"), _times),
            _formatted(index.row(variant, "speedup_over_autovec"), _times),
            _formatted(index.row(variant, "roofline_fraction"), share_text),
            _formatted(index.row(variant, "spin_fraction"), share_text),
            _plain(index.value(variant, "rel_rmse"), "{:.1e}"),
        )
    return table


def topdown_table(index: RowIndex, variants: Sequence[str]) -> Table:
    """The top-down tree of each variant, in percent of issue slots, with IPC."""
    table = _table()
    table.add_column("variant", no_wrap=True)
    for _, title in TOPDOWN_COLUMNS:
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("IPC", justify="right", no_wrap=True)
    table.add_column("instr/MAC", justify="right", no_wrap=True)
    for variant in variants:
        cells = [
            _formatted(index.row(variant, metric), lambda v: f"{100 * v:.1f}")
            for metric, _ in TOPDOWN_COLUMNS
        ]
        table.add_row(
            variant,
            *cells,
            _formatted(index.row(variant, "IPC"), lambda v: f"{v:.2f}"),
            _formatted(index.row(variant, "instructions_per_mac"), digits_text),
        )
    return table


def phase_table(index: RowIndex, variants: Sequence[str], phases: Sequence[str]) -> Table:
    """Share of each phase in the working time of each variant."""
    table = _table()
    table.add_column("variant", no_wrap=True)
    for phase in phases:
        table.add_column(phase, justify="right", no_wrap=True)
    for variant in variants:
        times = index.phases(variant, "phase_time")
        total = sum(times.values())
        if total <= 0:
            continue
        table.add_row(
            variant, *(share_text(times[p] / total) if p in times else MISSING for p in phases)
        )
    return table


def _table() -> Table:
    return Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, show_edge=False)


def _formatted(row: Row | None, form: Callable[[float], str]) -> str:
    if row is None or row.value is None:
        return MISSING
    mark = MARKS[row.provenance]
    flag = "!" if row.status == "out_of_bounds" else ""
    return f"{form(row.value)}{mark and ' ' + mark}{flag}"


def _plain(value: float | None, form: str) -> str:
    return MISSING if value is None else form.format(value)


def _times(value: float) -> str:
    return f"{digits_text(value)}x"


def _time_interval(index: RowIndex, variant: str) -> str:
    low, high = index.value(variant, "time_ci_low"), index.value(variant, "time_ci_high")
    if low is None or high is None:
        return MISSING
    return f"{time_text(low)} .. {time_text(high)}"
