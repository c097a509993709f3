"""What a report is made of: the sessions, their rows by name, and which rows can be linked to.

A row is linked to by its place in the list of all figures, which the report shows at its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from moe_prof import scenario as scenarios
from moe_prof import session as sessions
from moe_prof.analysis.query import RowIndex
from moe_prof.errors import UsageError
from moe_prof.rows import Row
from moe_prof.scenario import Scenario
from moe_prof.session import SavedSession

MOST_LISTED = 1600
"""Rows in the list of all figures, over all sessions; the data to download have more."""
_PARTS = ("function", "instruction")
_PART_METRICS = ("line_share", "instruction_share")
_SHARES = ("self_share", "total_share", "wait_self_share", "wait_total_share")


@dataclass(frozen=True, slots=True)
class Source:
    """One session of a report.

    Attributes:
        number: place in the report, which makes identifiers unique.
        label: what the reader calls it: scenario, command, and the number where it is needed.
        listed: rows in the list of all figures, by their place in it.
    """

    number: int
    label: str
    session: SavedSession
    index: RowIndex
    listed: dict[Row, int]

    @property
    def rows(self) -> tuple[Row, ...]:
        """All rows of the session."""
        return self.session.rows

    @property
    def variants(self) -> tuple[str, ...]:
        """In the order of the session, then as they appear in the rows."""
        known = [*self.session.manifest.variants, *self.index.variants]
        return tuple(name for name in dict.fromkeys(known) if name in self.index.variants)

    @property
    def scenario(self) -> Scenario | None:
        """The shape that was run, None for sessions without one."""
        manifest = self.session.manifest
        if len(manifest.shape) != 5:
            return None
        try:
            known = scenarios.parse(manifest.scenario)
        except UsageError:
            return Scenario(*manifest.shape)
        return known if known.shape == manifest.shape else Scenario(*manifest.shape)

    def anchor(self, row: Row | None) -> str:
        """Identifier of the row in the list of all figures, "" when it is not there."""
        place = self.listed.get(row) if row is not None else None
        return "" if place is None else f"s{self.number}-r{place}"


@dataclass(frozen=True, slots=True)
class Material:
    """Everything that sections may use.

    Attributes:
        accuracy: whether the numerical study was asked for.
    """

    sources: tuple[Source, ...]
    accuracy: bool = False

    def anchor(self, row: Row) -> str:
        """Identifier of the row in the list of all figures, "" when it is not there."""
        return next(filter(None, (source.anchor(row) for source in self.sources)), "")


def read_material(folders: Sequence[str | Path], *, accuracy: bool = False) -> Material:
    """Load sessions; one that is named twice is taken once.

    Raises:
        InputError: a folder is no session.
    """
    unique = {Path(folder).resolve(): folder for folder in folders}
    return material_of([sessions.load(folder) for folder in unique.values()], accuracy=accuracy)


def material_of(loaded: Sequence[SavedSession], *, accuracy: bool = False) -> Material:
    """The material of sessions that are loaded already."""
    labels = [_label(session) for session in loaded]
    sources = []
    for number, (session, label) in enumerate(zip(loaded, labels, strict=True), 1):
        text = f"{label} ({number})" if labels.count(label) > 1 else label
        listed = _listed(session.rows, MOST_LISTED // len(loaded))
        sources.append(Source(number, text, session, RowIndex(session.rows), listed))
    return Material(tuple(sources), accuracy)


def _label(session: SavedSession) -> str:
    manifest = session.manifest
    return (
        " ".join(part for part in (manifest.scenario or manifest.program, manifest.command) if part)
        or "session"
    )


def _listed(rows: Sequence[Row], most: int) -> dict[Row, int]:
    """Summary rows; single repetitions, intervals, functions, lines and instructions are left."""
    chosen = [
        row
        for row in rows
        if row.repeat is None and row.time_s is None and row.scope not in _PARTS
        if row.metric not in (*_PART_METRICS, *_SHARES)
    ]
    return {row: place for place, row in enumerate(dict.fromkeys(chosen[:most]))}
