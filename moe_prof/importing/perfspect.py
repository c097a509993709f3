"""PerfSpect's metric CSV files: series and summaries under PerfSpect's names."""

from __future__ import annotations

import math

from moe_prof.collectors import perfspect_format
from moe_prof.collectors.perf_units import to_base
from moe_prof.collectors.perfspect_format import PerfspectValue
from moe_prof.importing import plausible
from moe_prof.importing.base import Found, Kind, Labels, Part
from moe_prof.rows import Row, Status

NAME = "perfspect"


def read(part: Part, labels: Labels) -> Found:
    """Rows of every value; raises InputError."""
    report = perfspect_format.parse(part.text)
    rows = [_row(value, labels) for value in report.values]
    return Found(plausible.checked(rows), report.warnings)


def _row(found: PerfspectValue, labels: Labels) -> Row:
    slots = found.unit == "% slots"
    value, unit = found.value, to_base(1.0, "%" if slots else found.unit)[1]
    stddev = found.stddev
    status, note = _status(found)
    if value is not None and math.isinf(value):
        value = None
    if value is not None:
        value = to_base(value, "%" if slots else found.unit)[0]
    if stddev is not None:
        stddev = abs(to_base(stddev, "%" if slots else found.unit)[0])
    name = found.name if found.statistic in ("", "mean") else f"{found.name} {found.statistic}"
    return Row(
        scenario=labels.scenario,
        variant=labels.variant,
        collector=NAME,
        scope="process" if found.thread else "system",
        time_s=found.time_s,
        cpu=found.cpu,
        thread=found.thread,
        metric=name or "?",
        level=1 + found.name.count("..") if slots else None,
        value=value,
        unit="slots" if slots else unit,
        stddev=stddev,
        status=status,
        provenance="unavailable" if value is None else "measured",
        source=f"PerfSpect {found.statistic or 'series'}, line {found.line}{note}",
    )


def _status(found: PerfspectValue) -> tuple[Status, str]:
    if found.value is None:
        return "not_counted", "; the cell is empty: PerfSpect could not compute it"
    if math.isinf(found.value):
        return "out_of_bounds", "; PerfSpect divided by zero"
    percent = found.unit in ("%", "% slots")
    if percent and (found.value < 0 or found.value > 100):
        return "out_of_bounds", f"; {found.value:g} % is impossible"
    return "ok", ""


KIND = Kind(name=NAME, title="PerfSpect metrics CSV", read=read, starts=perfspect_format.is_header)
