"""toplev's CSV (pmu-tools): top-down nodes and metrics under toplev's names."""

from __future__ import annotations

import re

from moe_prof.collectors import toplev_format
from moe_prof.collectors.perf_units import to_base
from moe_prof.collectors.toplev_format import ToplevValue
from moe_prof.importing import plausible
from moe_prof.importing.base import Found, Kind, Labels, Part
from moe_prof.rows import Row, Status

NAME = "toplev"
_SLOTS = re.compile(r"%\s*(?:of\s+)?(?:Slots|Ops)", re.IGNORECASE)
_UNITS = {"Nanoseconds": "ns", "Seconds": "s", "GHz": "GHz", "GB / sec": "GB/s", "GB/sec": "GB/s",
          "MB/sec": "MB/s"}  # fmt: skip
_SLOT_LINE = re.compile(r".*\s[A-Z]\w*_Bound(?:\.\w+)*:?\s+(?:% |[0-9.]+ .*%)")
_ROWS_WANTED = 2


def read(part: Part, labels: Labels) -> Found:
    """Rows of every value; raises InputError."""
    report = toplev_format.parse(part.text)
    starts = _starts_of_intervals(report.values)
    rows = tuple(_row(value, starts, labels) for value in report.values)
    return Found(plausible.checked(rows), report.warnings, report.version)


def _row(found: ToplevValue, starts: dict[float, float], labels: Labels) -> Row:
    value, unit = found.value, to_base(1.0, _UNITS.get(found.unit, found.unit))[1]
    percent = found.unit.startswith("%")
    slots = bool(_SLOTS.match(found.unit))
    if percent:
        unit = "slots" if slots else "1"
        value = None if value is None else value / 100
    elif found.unit in _UNITS and value is not None:
        value = to_base(value, _UNITS[found.unit])[0]
    elif found.unit not in _UNITS:
        unit = "1"
    status, note = _status(found, percent)
    return Row(
        scenario=labels.scenario,
        variant=labels.variant,
        collector=NAME,
        scope="system" if found.cpu else "process",
        time_s=None if found.time_s is None else starts[found.time_s],
        cpu=found.cpu,
        metric=found.name,
        level=found.name.count(".") + 1 if slots else None,
        value=value,
        unit=unit,
        mux_pct=found.multiplex_pct if found.multiplex_pct is None
        else min(100.0, max(0.0, found.multiplex_pct)),
        status=status,
        provenance="unavailable" if value is None else "measured",
        source="; ".join(word for word in (
            f"toplev, {found.unit or 'no unit'}, line {found.line}", note,
            "toplev's bottleneck" if found.bottleneck else "") if word),
    )  # fmt: skip


def _status(found: ToplevValue, percent: bool) -> tuple[Status, str]:
    if found.value is None:
        return "not_counted", "toplev printed no value"
    if found.value < 0 or (percent and found.value > 100):
        return "out_of_bounds", f"{found.value:g} {found.unit} is impossible"
    if found.below:
        return "below_threshold", "below toplev's threshold, not to be trusted"
    if found.multiplex_pct is not None and 0 < found.multiplex_pct < 100:
        return "multiplexed", f"counted {found.multiplex_pct:g} % of the time"
    return "ok", ""


def _starts_of_intervals(values: tuple[ToplevValue, ...]) -> dict[float, float]:
    """Start of each interval by its printed end."""
    ends = sorted({value.time_s for value in values if value.time_s is not None})
    return dict(zip(ends, [0.0, *ends], strict=False))


def _starts(line: str) -> object:
    return toplev_format.is_header(line) or toplev_format.COMMENT.match(line)


def _fits(part: Part) -> bool:
    filled = [line for _, line in part.filled][:200]
    rows = sum(toplev_format.is_row(line) or _SLOT_LINE.match(line) is not None for line in filled)
    return rows >= min(_ROWS_WANTED, len(filled))


KIND = Kind(name=NAME, title="toplev (CSV and text)", read=read, starts=_starts, fits=_fits)
