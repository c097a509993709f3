"""Tables that go on below where a line is full."""

import io

import pytest
from rich.console import Console

from moe_prof.render.fitted import Column, FittedTable


def shown(table, width):
    """The lines of a page, without rules and trailing blanks."""
    out = io.StringIO()
    Console(file=out, width=width, no_color=True).print(table)
    return [line.rstrip() for line in out.getvalue().splitlines() if "─" not in line]


TWO = (Column("first"), Column("second"))


def made(*rows, columns=TWO):
    """A table of names and cells."""
    table = FittedTable("name", columns)
    for row in rows:
        table.add_row(*row)
    return table


def test_one_block_where_it_fits():
    """Titles and rows."""
    assert shown(made(("a", "1 s", "2 s")), 40) == ["name  first  second", "a       1 s     2 s"]


def test_two_blocks_where_it_does_not():
    """The names again, in front of what did not fit, after an empty line."""
    assert shown(made(("a", "1 s", "2 s")), 16) == [
        "name  first", "a       1 s", "", "name  second", "a        2 s",
    ]  # fmt: skip


def test_running_text_wraps_between_words():
    """It takes what is left of the line and is never cut off."""
    text = "one two three four five six seven eight nine ten eleven twelve"
    table = made(("a", "1 s", text), columns=(Column("first"), Column("idea", "left", wraps=True)))
    words = " ".join(shown(table, 44)).split()
    assert [word for word in text.split() if word not in words] == []
    assert max(map(len, shown(table, 44))) <= 44


def test_a_name_gives_way_to_the_widest_figure():
    """Even where the page is no wider than that."""
    table = made(("a-very-long-name", "123456.7 ms"), columns=(Column("time"),))
    assert any("123456.7 ms" in line for line in shown(table, 20))


def test_a_row_has_a_cell_for_every_column():
    """A forgotten cell is a mistake of the caller."""
    with pytest.raises(ValueError, match="1 cells for 2 columns"):
        made(("a", "1 s"))


def test_rows_are_counted():
    """Without the titles."""
    assert made(("a", "1", "2"), ("b", "1", "2")).row_count == 2
