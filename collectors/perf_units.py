"""perf's units and its metric texts: what they are called, and the factor to base units.

Source: unit strings of the kernel's event ``.unit`` files and of perf's metric ``ScaleUnit``
(``tools/perf/pmu-events``), and the fixed texts of ``perf stat`` (``K/sec``, ``of all branches``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

COUNT = "1"

# printed unit: (factor, base unit)
_SCALES: dict[str, tuple[float, str]] = {
    "sec": (1.0, "s"), "s": (1.0, "s"), "seconds": (1.0, "s"),
    "msec": (1e-3, "s"), "ms": (1e-3, "s"), "usec": (1e-6, "s"), "us": (1e-6, "s"),
    "nsec": (1e-9, "s"), "ns": (1e-9, "s"),
    "Bytes": (1.0, "bytes"), "bytes": (1.0, "bytes"), "B": (1.0, "bytes"),
    "KiB": (2.0**10, "bytes"), "MiB": (2.0**20, "bytes"), "GiB": (2.0**30, "bytes"),
    "KB": (1e3, "bytes"), "MB": (1e6, "bytes"), "GB": (1e9, "bytes"),
    "64Bytes": (64.0, "bytes"),
    "Joules": (1.0, "J"), "J": (1.0, "J"), "mJ": (1e-3, "J"), "uJ": (1e-6, "J"),
    "Watts": (1.0, "W"), "W": (1.0, "W"),
    "Hz": (1.0, "Hz"), "KHz": (1e3, "Hz"), "MHz": (1e6, "Hz"), "GHz": (1e9, "Hz"),
    "%": (1e-2, COUNT), "C": (1.0, "C"),
    "MB/s": (1e6, "bytes/s"), "GB/s": (1e9, "bytes/s"), "MiB/s": (2.0**20, "bytes/s"),
}  # fmt: skip
_RATE = re.compile(r"(?P<letter>[KMG]?)(?P<what>[A-Za-z_]*)\s*/sec")
_RATE_FACTORS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9}
_UNIT_AND_NAME = re.compile(r"(?P<unit>\S+(?: \S+)*?)\s{2,}(?P<name>\S.*)")
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
    if unit in _SCALES:
        factor, base = _SCALES[unit]
        return value * factor, base
    if unit.startswith("percent of "):
        base = "slots" if unit.removeprefix("percent of ") == "slots" else COUNT
        return value / 100, base
    rate = _RATE.fullmatch(unit)
    if rate:
        return value * _RATE_FACTORS[rate["letter"]], "1/s"
    return value, unit or COUNT
