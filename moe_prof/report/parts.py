"""What sections are made of: texts, tables and pictures, which templates turn into HTML.

All texts are plain: the templates escape them. Only a :class:`Picture` holds markup, which
``moe_prof.figures.svg`` made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moe_prof.figures import svg
from moe_prof.render.fitted import FittedTable
from moe_prof.report.material import Material, Source

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Missing:
    """Why a section is left out."""

    reason: str


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table.

    Attributes:
        anchor: the cell is a link to this identifier, "" for none.
        wide: running text, which may wrap.
        links: further links, each a text and an identifier.
    """

    text: str
    anchor: str = ""
    wide: bool = False
    links: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """A table; the first cell of each row is its heading.

    Attributes:
        identifiers: of the rows, for links; empty for none.
        folded: shown only when the reader opens it.
    """

    caption: str
    titles: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    identifiers: tuple[str, ...] = ()
    folded: bool = False

    @property
    def is_prose(self) -> bool:
        """Whether several columns hold running text: on a narrow screen a row becomes a block."""
        return len(self.titles) > 2 and self.kinds.count("wide") > 1

    @property
    def kinds(self) -> tuple[str, ...]:
        """What each column holds: ``wide`` running text, ``word`` or ``number``."""
        return tuple(
            _kind([row[at] for row in self.rows], first=at == 0) for at in range(len(self.titles))
        )


@dataclass(frozen=True, slots=True)
class Picture:
    """An inline SVG, and the sentence below it.

    Attributes:
        large: as wide as a screen; a phone shows a part of it and scrolls.
    """

    svg: str
    caption: str
    large: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """What one session contributes to a section."""

    title: str = ""
    texts: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()


Context = dict[str, object]

_NUMBER = re.compile(r"[-+~<]?[0-9]|-?$|too noisy$")


def _kind(cells: Sequence[Cell], *, first: bool) -> str:
    if any(cell.wide for cell in cells):
        return "wide"
    numbers = all(_NUMBER.match(cell.text) for cell in cells)
    return "number" if numbers and not first else "word"


def by_source(
    material: Material, make: Callable[[Source], Part | None], reason: str
) -> Context | Missing:
    """One part for each session that has something to show; titled where there are several."""
    made = [(source, make(source)) for source in material.sources]
    parts = [(source, part) for source, part in made if part is not None]
    if not parts:
        return Missing(reason)
    several = len(material.sources) > 1
    return {"parts": [titled(part, source.label) if several else part for source, part in parts]}


def titled(part: Part, title: str) -> Part:
    """The part with a heading of its own."""
    return Part(title, part.texts, part.pictures, part.tables, part.notes)


def picture(
    figure: Figure | None, name: str, caption: str, *, large: bool = False
) -> tuple[Picture, ...]:
    """A figure on the page, none for None; ``name`` must be unique on the page."""
    return () if figure is None else (Picture(svg(figure, name, caption), caption, large),)


def table_of(fitted: FittedTable, caption: str) -> Table:
    """A table of the text output as one of a page; names that are indented there get an arrow."""
    rows = [
        (f"↳ {name.strip()}" if name.startswith(" ") else name, *cells)
        for name, *cells in fitted.rows
    ]
    return plain_table(caption, fitted.titles, rows)


def plain_table(caption: str, titles: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table of texts alone."""
    cells = tuple(tuple(Cell(text) for text in row) for row in rows)
    return Table(caption, tuple(titles), cells)


def why_missing(source: Source, variants: Sequence[str], metric: str) -> tuple[str, ...]:
    """Notes on variants whose metric has no value, those of one reason together."""
    names: dict[str, list[str]] = {}
    for variant in variants:
        row = source.index.row(variant, metric)
        if row is not None and row.value is None:
            names.setdefault(row.source, []).append(variant)
    return tuple(f"{', '.join(found)}: not to be had: {why}" for why, found in names.items())
