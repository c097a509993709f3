"""One stage of one session as the rules see it: values by plain names, whatever tool gave them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from moe_prof.analysis.query import RowIndex
from moe_prof.collectors import perf_stat
from moe_prof.collectors.perf_reading import take_apart
from moe_prof.rows import Row
from moe_prof.session import Manifest, SavedSession
from moe_prof.topdown.counted import plainly_named

IMPORT = "import"
TIMES = ("time", "time_elapsed", "duration_time")
"""Metrics that hold the wall time, the best first: of a forward, or of the whole process."""
OWN_SHARES = ("self_share", "wait_self_share", "Self", "Overhead", "% time")
"""A function's own part of a profile, under the names that tools give it."""
ASSISTS = ("assists.fp", "fp_assist.any", "fp_assist.all", "assists.any")
SUMMED = (*perf_stat.EVENTS, *ASSISTS)


@dataclass(frozen=True, slots=True)
class Stage:
    """One variant of one session under one scenario.

    Attributes:
        label: the variant, with its session where several have one of that name.
        rows: its own rows and those of the machine.
    """

    label: str
    scenario: str
    variant: str
    manifest: Manifest
    rows: tuple[Row, ...]
    index: RowIndex

    def row(self, metric: str) -> Row | None:
        """The summary row of a metric, if it has a value that can be reckoned with."""
        row = self.index.row(self.variant, metric)
        known = row is not None and row.value is not None and math.isfinite(row.value)
        return row if known else None

    def value(self, metric: str) -> float | None:
        """The value of that row."""
        row = self.row(metric)
        return None if row is None else row.value

    def rows_of(self, *metrics: str) -> tuple[Row, ...]:
        """The rows with a value among the metrics named, in that order."""
        found = (self.row(metric) for metric in metrics)
        return tuple(row for row in found if row is not None)

    def time(self) -> Row | None:
        """The row of the wall time."""
        return next(iter(self.rows_of(*TIMES)), None)

    def machine_row(self, metric: str, thread: str | None = None) -> Row | None:
        """A row of the machine, if it has a value."""
        row = self.index.row("", metric, thread=thread)
        return row if row is not None and row.value is not None else None

    def functions(self) -> Iterator[tuple[str, Row]]:
        """(name, row) of the own shares of a profile's functions, summed over threads."""
        for row in self.rows:
            if row.metric in OWN_SHARES and row.variant == self.variant and row.value is not None:
                if row.scope != "function" and row.thread is not None:
                    continue  # beside the sum over threads
                yield row.source.partition("; ")[0].rpartition(" [")[0] or row.source, row

    @property
    def threads(self) -> int:
        """Threads of the stage; 1 when unknown."""
        return int(self.value("threads") or 1)

    @property
    def machine(self) -> dict[str, Any]:
        """Facts of the machine that was measured; none where the rows came from elsewhere."""
        return {} if self.manifest.command == IMPORT else dict(self.manifest.machine)


def stages_of(sessions: Sequence[SavedSession]) -> tuple[Stage, ...]:
    """All stages, session by session in their order, variants in the order of their rows."""
    several = _repeated(sessions)
    found = []
    for saved in sessions:
        for scenario, variant in _subjects(saved.rows):
            own = [row for row in saved.rows if _belongs(row, scenario, variant)]
            name = variant or saved.folder.name
            label = f"{name} ({saved.folder.name})" if (scenario, variant) in several else name
            rows = (*_plain(own), *(row for row in own if _is_detail(row)))
            found.append(
                Stage(label, scenario, variant, saved.manifest, tuple(own), RowIndex(rows))
            )
    return tuple(found)


def _repeated(sessions: Sequence[SavedSession]) -> set[tuple[str, str]]:
    """(scenario, variant) that more than one session holds."""
    seen: set[tuple[str, str]] = set()
    twice: set[tuple[str, str]] = set()
    for saved in sessions:
        subjects = set(_subjects(saved.rows))
        twice |= seen & subjects
        seen |= subjects
    return twice


def _subjects(rows: Iterable[Row]) -> list[tuple[str, str]]:
    named = dict.fromkeys((row.scenario, row.variant) for row in rows if row.variant)
    return list(named)


def _belongs(row: Row, scenario: str, variant: str) -> bool:
    if not row.variant:
        return row.scenario in ("", scenario)
    return row.variant == variant and row.scenario == scenario


def _is_detail(row: Row) -> bool:
    return (
        row.repeat is not None or row.time_s is not None or row.scope in ("function", "instruction")
    )


def _plain(rows: Sequence[Row]) -> list[Row]:
    """Summary rows, events under perf's plain names, those of single CPUs added up."""
    summary = [row for row in rows if not _is_detail(row)]
    by_cpu: dict[str, list[Row]] = {}
    others = []
    for row in summary:
        name = take_apart(row.metric)
        whole = row.cpu is None or name.pmu is not None
        if whole or name.base not in SUMMED:
            others.append(row)
        else:
            by_cpu.setdefault(name.base, []).append(row)
    return plainly_named([*others, *(_sum(name, same) for name, same in by_cpu.items())])


def _sum(metric: str, rows: Sequence[Row]) -> Row:
    known = [row.value for row in rows if row.value is not None]
    if not known:
        return replace(rows[0], metric=metric, cpu=None)
    first = next(row for row in rows if row.value is not None)
    total = math.fsum(known)
    return replace(first, metric=metric, cpu=None, value=total, source=f"sum of {len(known)} CPUs")
