"""VTune's reports as a profile and as rows: functions, threads, summary, top-down nodes.

A function's CPU time is divided as VTune divides it: effective time is work, spin and overhead time
is waiting. Reports of functions have no call stacks.

Source: Intel VTune Profiler User Guide, "CPU Metrics Reference".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from moe_prof.collectors.stacks import UNKNOWN, Frame, Profile, Stack, merged
from moe_prof.collectors.vtune_csv import SummaryMetric, VtuneTable
from moe_prof.errors import InputError, UnavailableError
from moe_prof.rows import Row

NAME = "vtune"
CPU_TIME = "CPU Time"
WAITS = ("Spin Time", "Overhead Time")

_UNKNOWN_NAMES = {"", "[Unknown]", "[Others]"}
_NODES = {
    "Retiring": ("Retiring", 1),
    "Front-End Bound": ("Frontend_Bound", 1),
    "Bad Speculation": ("Bad_Speculation", 1),
    "Back-End Bound": ("Backend_Bound", 1),
    "Memory Bound": ("Backend_Bound.Memory_Bound", 2),
    "Core Bound": ("Backend_Bound.Core_Bound", 2),
}
_UNITS = {"%": ("1", 0.01), "GB/s": ("bytes/s", 1e9), "GHz": ("Hz", 1e9), "": ("1", 1.0)}


def profile(table: VtuneTable, *, rows: Sequence[Row] = (), notes: Sequence[str] = ()) -> Profile:
    """The report of functions; each row once as work and once as waiting.

    Args:
        rows: figures of the other reports.

    Raises:
        InputError: it has no CPU time.
        UnavailableError: it has no function.
    """
    column = _column(table, CPU_TIME)
    stacks = merged(_stacks(table, column))
    if not stacks:
        raise UnavailableError(
            "VTune collected nothing: the loop was too short, or collection was never resumed; "
            "make it longer (a larger scenario)"
        )
    said = (*notes, *table.notes)
    return Profile(NAME, CPU_TIME, "s", stacks, "measured", "roi", said, tuple(rows))


def thread_rows(table: VtuneTable) -> list[Row]:
    """CPU time of each thread, and the share of it that it waits."""
    column = _column(table, CPU_TIME)
    made = []
    for row in table.rows:
        total = table.number(row, column)
        thread = table.cell(row, "Thread")
        if total is None or not thread:
            continue
        waits = _waits(table, row, column)
        made.append(_row("cpu_time", total, "s", CPU_TIME, thread))
        if total:
            share = waits / total
            source = f"{' + '.join(WAITS)} / {CPU_TIME}"
            made.append(_row("wait_share", share, "1", source, thread))
    return made


def summary_rows(metrics: Sequence[SummaryMetric]) -> list[Row]:
    """Every number of the summary under VTune's own names, and top-down nodes under theirs too."""
    made = []
    for metric in metrics:
        if metric.value is None:
            continue
        unit, scale = _UNITS.get(metric.unit, (metric.unit, 1.0))
        name = ":".join(metric.path)
        value = metric.value * scale
        made.append(_row(name, value, unit, metric.text))
        node = _NODES.get(metric.path[-1])
        if node is not None and metric.unit == "%" and "Clockticks" not in metric.text:
            source = f"{name}: {metric.text}"
            made.append(
                Row(
                    collector=NAME, metric=node[0],
                    level=node[1], value=value, unit="slots", source=source,
                    status="ok" if 0 <= value <= 1 else "out_of_bounds",
                )
            )  # fmt: skip
    return made


def _stacks(table: VtuneTable, column: str) -> Iterator[Stack]:
    for row in table.rows:
        total = table.number(row, column)
        if total is None:
            continue
        name = table.cell(row, "Function (Full)") or table.cell(row, "Function")
        file = table.cell(row, "Source File")
        frame = Frame(
            UNKNOWN if name in _UNKNOWN_NAMES else name,
            table.cell(row, "Module"),
            "" if file in _UNKNOWN_NAMES else file,
        )
        waits = _waits(table, row, column)
        if total - waits > 0:
            yield Stack((frame,), total - waits, samples=0)
        if waits > 0:
            yield Stack((frame,), waits, samples=0, waiting=True)


def _waits(table: VtuneTable, row: Sequence[str], column: str) -> float:
    """Spin and overhead time; never their own parts on top."""
    found = 0.0
    for name in WAITS:
        part = table.find(CPU_TIME, name)
        found += (table.number(row, part) or 0.0) if part is not None else 0.0
    return min(found, table.number(row, column) or 0.0)


def _column(table: VtuneTable, name: str) -> str:
    column = table.find(name) or table.find(name, "Self")
    if column is None:
        raise InputError(
            f"VTune's report has no column {name!r}; it has {', '.join(table.columns[:6])}"
        )
    return column


def _row(metric: str, value: float, unit: str, source: str, thread: str | None = None) -> Row:
    return Row(collector=NAME, metric=metric, value=value, unit=unit, source=source, thread=thread)
