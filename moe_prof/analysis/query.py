"""Looking values up in tidy rows."""

from __future__ import annotations

from collections.abc import Iterable

from moe_prof.rows import Row

_PARTS = ("function", "instruction")


class RowIndex:
    """Summary rows by variant, metric, phase and thread.

    Single repetitions, intervals, functions and instructions are left out.

    A row of one CPU or one kind of cores stands in only where no other row has a value.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows: dict[tuple[str, str, str | None, str | None], Row] = {}
        self.variants: list[str] = []
        for row in rows:
            if row.repeat is not None or row.time_s is not None or row.scope in _PARTS:
                continue
            key = (row.variant, row.metric, row.phase, row.thread)
            known = self._rows.get(key)
            if row.cpu is None or known is None or known.value is None:
                self._rows[key] = row
            if row.variant and row.variant not in self.variants:
                self.variants.append(row.variant)

    def summary_rows(self) -> tuple[Row, ...]:
        """All of them, in the order in which they came."""
        return tuple(self._rows.values())

    def row(
        self, variant: str, metric: str, *, phase: str | None = None, thread: str | None = None
    ) -> Row | None:
        """The last summary row of a metric, or None."""
        return self._rows.get((variant, metric, phase, thread))

    def value(
        self, variant: str, metric: str, *, phase: str | None = None, thread: str | None = None
    ) -> float | None:
        """The value of that row; None when there is no row or no value."""
        row = self.row(variant, metric, phase=phase, thread=thread)
        return None if row is None else row.value

    def text(self, variant: str, metric: str) -> str:
        """The ``source`` of that row, for metrics whose content is text; "" when there is none."""
        row = self.row(variant, metric)
        return "" if row is None else row.source

    def metrics(self, variant: str) -> list[str]:
        """Names of a variant's metrics, each once, in the order of the rows."""
        return list(dict.fromkeys(what for name, what, _, _ in self._rows if name == variant))

    def by_thread(self, variant: str, metric: str) -> dict[str, float]:
        """Values of a metric by thread, without phase."""
        return {
            thread: row.value
            for (name, what, phase, thread), row in self._rows.items()
            if name == variant and what == metric and phase is None and thread is not None
            if row.value is not None
        }

    def phases(self, variant: str, metric: str) -> dict[str, float]:
        """Values of a metric by phase, summed over threads, in the order of the rows."""
        return {
            phase: row.value
            for (name, what, phase, thread), row in self._rows.items()
            if name == variant and what == metric and phase is not None and thread is None
            if row.value is not None
        }
