"""gprof's flat profile and call graph under gprof's column names, in seconds."""

from __future__ import annotations

import re
from collections.abc import Iterator

from moe_prof.collectors import gprof_format
from moe_prof.collectors.gprof_format import Entry, FlatRow, GprofProfile
from moe_prof.importing.base import Found, Kind, Labels, Part, RowMaker
from moe_prof.rows import Row, Status

NAME = "gprof"
_START = re.compile(
    r"\s*(?:Flat profile:|Each sample counts as \S|no time accumulated|Call graph \(explanation"
    r"|granularity: each sample hit|index\s+%\s*time\s+self\s+children"
    r"|time\s+seconds\s+seconds\s+calls)"
)
_UNDEFINED = "no sample fell into the program: times are 0 and shares undefined, calls are valid"


def read(part: Part, labels: Labels) -> Found:
    """Rows of both tables; raises InputError."""
    profile = gprof_format.parse(part.text)
    maker = RowMaker(labels, NAME)
    rows = [maker.row("total seconds", profile.total_s, "s", "sum of the flat profile")]
    if profile.sample_s is not None:
        rows.append(maker.row("seconds per sample", profile.sample_s, "s", "header"))
    for flat in profile.flat:
        rows += _flat_rows(flat, profile, maker)
    for entry in profile.graph:
        rows += _entry_rows(entry, maker)
    remarks = profile.notes if profile.accumulated else (*profile.notes, _UNDEFINED)
    return Found(tuple(rows), remarks)


def _flat_rows(flat: FlatRow, profile: GprofProfile, maker: RowMaker) -> Iterator[Row]:
    percent = None if flat.percent is None else flat.percent / 100
    why = _UNDEFINED if not profile.accumulated else "gprof leaves it blank: calls are not counted"
    values: tuple[tuple[str, float | None, str], ...] = (
        ("% time", percent, "1"),
        ("self seconds", flat.self_s, "s"),
        ("calls", None if flat.calls is None else float(flat.calls), "1"),
        ("self per call", flat.self_per_call_s, "s"),
        ("total per call", flat.total_per_call_s, "s"),
    )
    for metric, value, unit in values:
        yield maker.row(
            metric, value, unit, f"{flat.name}; flat profile", scope="function", missing=why,
            status=_status(metric, value),
        )  # fmt: skip
    if flat.cycle is not None:
        yield maker.row(
            "cycle", float(flat.cycle), "1", f"{flat.name}; flat profile", scope="function"
        )


def _entry_rows(entry: Entry, maker: RowMaker) -> Iterator[Row]:
    called = re.match(r"\d+", entry.calls)
    source = f"{entry.name}; call graph"
    if entry.calls:
        source += f"; called {entry.calls}"
    values: tuple[tuple[str, float | None, str], ...] = (
        ("% total time", None if entry.percent is None else entry.percent / 100, "1"),
        ("self", entry.self_s, "s"),
        ("children", entry.children_s, "s"),
        ("called", float(called[0]) if called else None, "1"),
    )
    for metric, value, unit in values:
        yield maker.row(
            metric, value, unit, source, scope="function", status=_status(metric, value)
        )
    if entry.cycle is not None:
        yield maker.row("cycle", float(entry.cycle), "1", source, scope="function")


def _status(metric: str, value: float | None) -> Status:
    """Shares above 1 and negative times are printed now and then, and impossible."""
    impossible = value is not None and (value < 0 or (metric.startswith("%") and value > 1))
    return "out_of_bounds" if impossible else "ok"


KIND = Kind(name=NAME, title="gprof", read=read, starts=_START.match)
