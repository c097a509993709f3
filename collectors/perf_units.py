"""perf's units and its metric texts: what they are called, and the factor to base units.

Source: unit strings of the kernel's event ``.unit`` files and of perf's metric ``ScaleUnit``
(``tools/perf/pmu-events``), and the fixed texts of ``perf stat`` (``K/sec``, ``of all branches``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

COUNT = "1"

# printed unit: (multiplier, divisor, base unit); dividing keeps decimals exact
_SCALES: dict[str, tuple[float, float, str]] = {
    "sec": (1, 1, "s"), "s": (1, 1, "s"), "seconds": (1, 1, "s"),
    "msec": (1, 1e3, "s"), "ms": (1, 1e3, "s"), "usec": (1, 1e6, "s"), "us": (1, 1e6, "s"),
    "nsec": (1, 1e9, "s"), "ns": (1, 1e9, "s"),
    "Bytes": (1, 1, "bytes"), "bytes": (1, 1, "bytes"), "B": (1, 1, "bytes"),
    "KiB": (2**10, 1, "bytes"), "MiB": (2**20, 1, "bytes"), "GiB": (2**30, 1, "bytes"),
    "KB": (1e3, 1, "bytes"), "MB": (1e6, 1, "bytes"), "GB": (1e9, 1, "bytes"),
    "64Bytes": (64, 1, "bytes"),
    "Joules": (1, 1, "J"), "J": (1, 1, "J"), "mJ": (1, 1e3, "J"), "uJ": (1, 1e6, "J"),
    "Watts": (1, 1, "W"), "W": (1, 1, "W"),
    "Hz": (1, 1, "Hz"), "KHz": (1e3, 1, "Hz"), "MHz": (1e6, 1, "Hz"), "GHz": (1e9, 1, "Hz"),
    "%": (1, 1e2, COUNT), "C": (1, 1, "C"),
    "MB/s": (1e6, 1, "bytes/s"), "GB/s": (1e9, 1, "bytes/s"), "MiB/s": (2**20, 1, "bytes/s"),
}  # fmt: skip
_PLAIN_COUNTS = ("CPUs", "instructions")  # what new versions print as the unit of a ratio
_CYCLES_IDLE = re.compile(r"%?\s*(?P<end>frontend|backend)\s+cycles idle")
_RATE = re.compile(r"(?P<letter>[KMG]?)(?P<what>[A-Za-z_]*)\s*/sec")
_RATE_FACTORS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9}
_UNIT_AND_NAME = re.compile(r"(?P<unit>\S+(?: \S+)*?)\s{2,}(?P<name>\S.*)")
_PERCENT_OF = re.compile(r"(?:%|percent of )(?P<whole>[a-z]+)")
_PERCENT_WORDS = re.compile(r"(?:of all .*|(?:frontend|backend) cycles idle|.* of all .*)")


@dataclass(frozen=True, slots=True)
class MetricName:
    """A metric text taken apart: perf's name for the metric, "" for a bare rate, and its unit."""

    name: str
    unit: str


def is_unit(text: str) -> bool:
    """Whether perf prints this word as the unit of a count."""
    return text in _SCALES


def split_metric(text: str) -> MetricName:
    """``%  tma_retiring`` gives (tma_retiring, %); ``K/sec`` gives ("", K/sec)."""
    stripped = text.strip()
    idle = _CYCLES_IDLE.fullmatch(stripped)
    if idle:
        return MetricName(f"{idle['end']} cycles idle", "%")
    pair = _UNIT_AND_NAME.fullmatch(stripped)
    if pair:
        return MetricName(pair["name"], pair["unit"])
    if stripped.startswith("%"):
        return MetricName(stripped[1:].strip(), "%")
    if _PERCENT_WORDS.fullmatch(stripped):
        return MetricName(stripped, "%")
    if stripped in _SCALES or _RATE.fullmatch(stripped):
        return MetricName("", stripped)
    return MetricName(stripped, "")


def to_base(value: float, unit: str) -> tuple[float, str]:
    """The value in base units (s, bytes, Hz, J, 1/s, a fraction) and the unit's name."""
    if unit in _PLAIN_COUNTS:
        return value, COUNT
    if unit in _SCALES:
        multiplier, divisor, base = _SCALES[unit]
        return value * multiplier / divisor, base
    percent = _PERCENT_OF.fullmatch(unit)
    if percent:
        return value / 100, "slots" if percent["whole"] in ("slots", "ops") else COUNT
    rate = _RATE.fullmatch(unit)
    if rate:
        return value * _RATE_FACTORS[rate["letter"]], "1/s"
    return value, unit or COUNT
