"""A table that keeps every figure whole on any width: what does not fit goes into a block below.

A terminal of 60 columns cannot hold ten columns of figures. Cutting them off would lose units and
marks, so the columns are laid out in reading order, and where the line is full the table goes on in
another block that begins with the names again. Only names may fold, and only texts may wrap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

GAP_COLUMNS = 2
LEAD_COLUMNS = 16
"""Names up to this length stay whole where the figures leave room for them."""
SHORTEST_LEAD_COLUMNS = 4
TEXT_COLUMNS = 24
"""A column of running text gets at least this much, or a block of its own."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column; ``wraps`` is for running text, which may be broken between words."""

    title: str
    justify: Literal["left", "right"] = "right"
    wraps: bool = False


class FittedTable:
    """Rows of a name and cells under fixed columns; prints itself by rich."""

    def __init__(self, lead: str, columns: Sequence[Column]) -> None:
        self._lead = lead
        self._columns = tuple(columns)
        self._rows: list[tuple[str, ...]] = []

    @property
    def row_count(self) -> int:
        """Rows without the titles."""
        return len(self._rows)

    @property
    def titles(self) -> tuple[str, ...]:
        """Titles of all columns, that of the names first."""
        return (self._lead, *(column.title for column in self._columns))

    @property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        """The rows, each with its name first."""
        return tuple(self._rows)

    def add_row(self, name: str, *cells: str) -> None:
        """One row: a cell for every column."""
        if len(cells) != len(self._columns):
            raise ValueError(f"{len(cells)} cells for {len(self._columns)} columns")
        self._rows.append((name, *cells))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        widths = [self._width(index) for index in range(len(self._columns))]
        lead = self._lead_width(widths, options.max_width)
        for number, block in enumerate(_blocks(widths, options.max_width - lead)):
            if number:
                yield Text()
            yield self._table(lead, block)

    def _width(self, index: int) -> int:
        """The least width of a column that cuts nothing off."""
        column = self._columns[index]
        cells = [column.title, *(row[index + 1] for row in self._rows)]
        width = max(cell_len(cell) for cell in cells)
        return min(width, TEXT_COLUMNS) if column.wraps else width

    def _lead_width(self, widths: Sequence[int], most: int) -> int:
        """Columns for the names: all they want, else what the figures leave to them."""
        natural = max(cell_len(name) for name in (self._lead, *(row[0] for row in self._rows)))
        left = most - sum(width + GAP_COLUMNS for width in widths)
        wanted = min(natural, max(left, LEAD_COLUMNS))
        widest = max(widths, default=0) + GAP_COLUMNS
        return max(SHORTEST_LEAD_COLUMNS, min(wanted, most - widest))

    def _table(self, lead: int, block: Sequence[int]) -> Table:
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1), pad_edge=False, show_edge=False)
        table.add_column(self._lead, overflow="fold", width=lead)
        for index in block:
            column = self._columns[index]
            table.add_column(column.title, justify=column.justify, no_wrap=not column.wraps)
        for row in self._rows:
            table.add_row(Text(row[0]), *(Text(row[index + 1]) for index in block))
        return table


def _blocks(widths: Sequence[int], most: int) -> Iterator[list[int]]:
    """Indices of the columns that share a block; every block has one at least."""
    block: list[int] = []
    used = 0
    for index, width in enumerate(widths):
        needed = width + GAP_COLUMNS
        if block and used + needed > most:
            yield block
            block, used = [], 0
        block.append(index)
        used += needed
    yield block
