"""Reading pyperf's JSON: one or several benchmarks, each with the values of its worker processes.

Source: pyperf documentation, "Benchmark JSON format"; files of pyperf 2 (format 1.0).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moe_prof.errors import InputError

_BASE_UNITS = {"second": "s", "byte": "bytes", "integer": "1"}


@dataclass(frozen=True, slots=True)
class PyperfBenchmark:
    """One benchmark: its values in the order of the runs, in base units.

    Attributes:
        unit: ``s``, ``bytes`` or ``1``.
        values: one tuple a worker process; processes without values (calibration) are left out.
        command: what was timed, "" where the file does not say.
    """

    name: str
    unit: str
    values: tuple[tuple[float, ...], ...]
    command: str

    @property
    def flat(self) -> tuple[float, ...]:
        """All values."""
        return tuple(value for run in self.values for value in run)


def looks_like(text: str) -> bool:
    """Whether a JSON text has pyperf's keys."""
    head = text.lstrip()[:1]
    return head == "{" and '"benchmarks"' in text and ('"runs"' in text or '"version"' in text)


def parse(text: str) -> tuple[PyperfBenchmark, ...]:
    """All benchmarks of a file.

    Raises:
        InputError: the text is damaged or no pyperf file.
    """
    try:
        data: Any = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"this pyperf JSON is damaged or was cut off: {error}") from error
    except RecursionError as error:
        raise InputError("this JSON is nested too deeply for a file of pyperf") from error
    try:
        shared = data.get("metadata", {})
        return tuple(_benchmark(entry, shared) for entry in data["benchmarks"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"this JSON is no file of pyperf: {error!r} is missing or odd") from error


def _benchmark(entry: Mapping[str, Any], shared: Mapping[str, Any]) -> PyperfBenchmark:
    metadata = {**shared, **entry.get("metadata", {})}
    runs: Sequence[Mapping[str, Any]] = entry["runs"]
    values = tuple(tuple(_value(v) for v in run["values"]) for run in runs if run.get("values"))
    unit = str(metadata.get("unit", "second"))
    first = runs[0].get("metadata", {}) if runs else {}
    return PyperfBenchmark(
        name=str(metadata.get("name", first.get("name", "")) or "benchmark"),
        unit=_BASE_UNITS.get(unit, unit),
        values=values,
        command=str(metadata.get("command", metadata.get("timeit_stmt", ""))),
    )


def _value(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"value {value!r}")
    return float(value)
