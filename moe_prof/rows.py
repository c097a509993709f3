"""Tidy rows: the one form in which every figure of the toolkit travels.

A row is one value of one metric. A missing value is ``None`` with a status and, in ``source``, the
reason; it is never 0. ``provenance`` says how the value came about:

* ``measured``: a clock or a hardware/software counter of this machine;
* ``simulated``: counted by an instrumenting tool or an emulator (exact counts, no time);
* ``modelled``: computed from other figures by a documented model;
* ``unavailable``: it could not be had, ``source`` says why.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from moe_prof.streams import encodable

if TYPE_CHECKING:
    import pandas as pd

Provenance = Literal["measured", "simulated", "modelled", "unavailable"]
Status = Literal[
    "ok", "not_counted", "not_supported", "multiplexed", "out_of_bounds", "below_threshold",
    "shared_memory",
]  # fmt: skip
Scope = Literal["roi", "process", "system", "loop", "machine", "function", "instruction"]

PROVENANCES: tuple[Provenance, ...] = ("measured", "simulated", "modelled", "unavailable")
STATUSES: tuple[Status, ...] = (
    "ok", "not_counted", "not_supported", "multiplexed", "out_of_bounds", "below_threshold",
    "shared_memory",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One value. Units are SI (s, bytes, Hz), ``slots`` (0..1), ``1`` or what is counted.

    Attributes:
        run_id: the session's id.
        scenario: the scenario's label, or "" for figures of the machine or of any command.
        variant: the kernel variant, user library or command.
        collector: who produced the value (``builtin``, ``perf_stat``, ``callgrind``, ``model``...).
        scope: ``roi`` (the forward loop only), ``process``, ``system``, ``loop`` or ``machine``;
            ``function`` and ``instruction`` for one of many, which ``source`` names first.
        repeat: index of the repetition, None for a summary over repetitions.
        time_s: start of the interval inside the run, for interval data.
        cpu / thread / phase: what part of the machine or of the forward the value is about.
        metric: the metric's name (top-down node names verbatim).
        level: depth in the top-down tree, None for other metrics.
        value: the value; None when missing, never NaN.
        stddev / n: sample standard deviation and the number of samples behind the value.
        mux_pct: share of the time in which the counter ran, in percent.
        source: how the value was made, or why it is missing.
    """

    run_id: str = ""
    scenario: str = ""
    variant: str = ""
    collector: str
    scope: Scope = "roi"
    repeat: int | None = None
    time_s: float | None = None
    cpu: str | None = None
    thread: str | None = None
    phase: str | None = None
    metric: str
    level: int | None = None
    value: float | None
    unit: str
    stddev: float | None = None
    n: int | None = None
    mux_pct: float | None = None
    status: Status = "ok"
    provenance: Provenance = "measured"
    source: str = ""

    def __post_init__(self) -> None:
        if self.value is not None and math.isnan(self.value):
            raise ValueError(f"row {self.metric}: NaN is not a value; use None and a status")
        if self.value is not None and self.provenance == "unavailable":
            raise ValueError(f"row {self.metric}: an unavailable row has no value")


COLUMNS: tuple[str, ...] = tuple(f.name for f in fields(Row))

_TEXTS = (
    "run_id", "scenario", "variant", "collector", "scope", "metric", "unit", "status", "provenance",
    "source",
)  # fmt: skip
_NULLABLE_TEXT = ("cpu", "thread", "phase")
_NULLABLE_INT = ("repeat", "level", "n")
_NULLABLE_FLOAT = ("time_s", "value", "stddev", "mux_pct")


def unavailable(metric: str, unit: str, reason: str, **labels: Any) -> Row:  # noqa: ANN401
    """A row that says that ``metric`` could not be had, and why (``reason``).

    ``labels`` are further fields of :class:`Row`; ``collector`` is among them.
    """
    return Row(
        metric=metric, value=None, unit=unit, status="not_supported", provenance="unavailable",
        source=reason, **labels,
    )  # fmt: skip


def to_frame(rows: Iterable[Row]) -> pd.DataFrame:
    """Rows as a pandas frame in tidy column order, missing values as pandas NA."""
    import pandas as pd  # noqa: PLC0415  (slow to import, and most commands need none)

    records = [{name: _utf8(value) for name, value in asdict(row).items()} for row in rows]
    frame = pd.DataFrame(records, columns=list(COLUMNS))
    for column in COLUMNS:
        if column in _NULLABLE_INT:
            frame[column] = frame[column].astype("Int64")
        elif column in _NULLABLE_FLOAT:
            frame[column] = frame[column].astype("Float64")
        else:
            frame[column] = frame[column].astype("string")
    return frame


def from_frame(frame: pd.DataFrame) -> list[Row]:
    """The inverse of :func:`to_frame`."""
    records = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return [from_record({str(k): _plain(v) for k, v in record.items()}) for record in records]


def from_record(record: dict[str, Any]) -> Row:
    """A row from its fields by name, as ``dataclasses.asdict`` gives them.

    Raises:
        TypeError: a field is missing, unknown or of another type.
        ValueError: the value contradicts the rest.
    """
    row = Row(**record)
    for name in (*_TEXTS, *_NULLABLE_TEXT):
        value = getattr(row, name)
        if not isinstance(value, str) and (value is not None or name in _TEXTS):
            raise TypeError(f"{name} is {value!r:.40}, not a text")
    for name in (*_NULLABLE_INT, *_NULLABLE_FLOAT):
        value = getattr(row, name)
        if value is not None and not isinstance(value, (int, float)):
            raise TypeError(f"{name} is {value!r:.40}, not a number")
    return row


def to_json_record(row: Row) -> dict[str, object]:
    """A row as JSON types: infinities become null with status ``out_of_bounds``."""
    record = asdict(row)
    if row.value is not None and math.isinf(row.value):
        record |= {"value": None, "status": "out_of_bounds"}
    return record


def _utf8(value: object) -> object:
    """A text with ``?`` for what is no character, such as bytes of a path that are no UTF-8."""
    return encodable(value, "utf-8") if isinstance(value, str) else value


def _plain(value: object) -> object:
    return value.item() if hasattr(value, "item") else value
