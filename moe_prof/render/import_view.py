"""Imported rows for people: one table of totals and one of functions a file."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from moe_prof.rows import Row
from moe_prof.units import bytes_text, count_text, digits_text, share_text, time_text

MAX_TOTALS = 40
MAX_FUNCTIONS = 20
MAX_COLUMNS = 4
_PARTS = ("function", "instruction")
_BY_EVENT = ("perf_report",)  # whose shares are of one of several events, named second
_STATUS_TEXT = {
    "ok": "", "not_counted": "not counted", "not_supported": "not supported",
    "multiplexed": "multiplexed", "out_of_bounds": "impossible",
    "shared_memory": "experts share memory",
    "below_threshold": "below threshold",
}  # fmt: skip


def file_view(name: str, titles: Sequence[str], rows: Sequence[Row]) -> list[RenderableType]:
    """What one file says."""
    head = Text(name, style="bold")
    head.append(f": {'; '.join(titles)}, {len(rows)} rows", style="none")
    view: list[RenderableType] = [head]
    totals = [row for row in rows if row.scope not in _PARTS]
    parts = [row for row in rows if row.scope in _PARTS]
    if totals:
        view.append(_totals_table(totals[:MAX_TOTALS]))
    if len(totals) > MAX_TOTALS:
        view.append(_more(len(totals) - MAX_TOTALS, "rows"))
    if parts:
        view += _parts_table(parts)
    view.append("")
    return view


def value_text(row: Row) -> str:
    """A value with its unit, a missing one as a dash."""
    if row.value is None:
        return "-"
    text = {
        "s": time_text, "bytes": bytes_text, "slots": share_text,
    }.get(row.unit)  # fmt: skip
    if text is not None:
        return f"{text(row.value)} of slots" if row.unit == "slots" else text(row.value)
    if row.unit == "1":
        whole = abs(row.value) < 1e15 and row.value == int(row.value)
        return f"{row.value:,.0f}" if whole else digits_text(row.value)
    return f"{count_text(row.value)} {row.unit}"


def _totals_table(rows: Sequence[Row]) -> Table:
    table = _table()
    table.add_column("metric", overflow="fold")
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("where", overflow="fold")
    table.add_column("remark", overflow="fold")
    for row in rows:
        table.add_row(Text(row.metric), value_text(row), Text(where(row)), Text(remark(row)))
    return table


def where(row: Row) -> str:
    """The part of the machine or the program that a row is about."""
    words = [row.cpu, row.thread, row.phase]
    if row.time_s is not None:
        words.append(f"from {row.time_s:.6g} s")
    if row.repeat is not None:
        words.append(f"run {row.repeat}")
    return ", ".join(word for word in words if word)


def remark(row: Row) -> str:
    """What a reader has to know of the value: why it is doubtful, how it scatters."""
    words = [_STATUS_TEXT[row.status]]
    if row.status == "multiplexed" and row.mux_pct is not None:
        words = [f"counted {row.mux_pct:g} % of the time"]
    if row.stddev is not None and row.value:
        words.append(f"+- {100 * row.stddev / abs(row.value):.2g} %")
    if row.provenance in ("simulated", "modelled"):
        words.append(row.provenance)
    return ", ".join(word for word in words if word)


def _parts_table(rows: Sequence[Row]) -> list[RenderableType]:
    """Functions by line, their first metrics by column, the largest first."""
    metrics = list(dict.fromkeys(row.metric for row in rows))[:MAX_COLUMNS]
    by_name: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows:
        words = row.source.split("; ")
        event = words[1] if row.collector in _BY_EVENT and len(words) > 2 else ""
        key = (words[0], ", ".join(word for word in (row.thread, event) if word))
        by_name.setdefault(key, {}).setdefault(row.metric, row)
    order = sorted(
        ((key, found) for key, found in by_name.items() if metrics[0] in found),
        key=lambda item: -(item[1][metrics[0]].value or 0.0),
    ) or list(by_name.items())
    if rows[0].scope == "instruction":
        order = list(by_name.items())
    table = _table()
    for metric in metrics:
        table.add_column(Text(metric), justify="right", overflow="fold")
    table.add_column(rows[0].scope, overflow="fold")
    for (name, place), found in order[:MAX_FUNCTIONS]:
        cells = [part_text(found[metric]) if metric in found else "-" for metric in metrics]
        table.add_row(*cells, Text(f"{name} ({place})" if place else name))
    view: list[RenderableType] = ["", table]
    if len(order) > MAX_FUNCTIONS:
        view.append(_more(len(order) - MAX_FUNCTIONS, f"{rows[0].scope}s"))
    return view


def part_text(row: Row) -> str:
    """The value of one of many parts: a share as percent."""
    shares = ("Overhead", "Children", "Self", "call tree", "% time", "% total time")
    if row.value is not None and row.unit == "1" and row.metric in shares:
        return share_text(row.value)
    return value_text(row)


def _more(count: int, what: str) -> Text:
    return Text(f"and {count} further {what}; --format csv or json gives all", style="dim")


def _table() -> Table:
    return Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
