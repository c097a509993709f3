"""SVG for the inside of a page: no addresses, no shared identifiers, the page's colours."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from moe_prof import figures
from moe_prof.figures.style import INK, LINE
from tests.moe_prof.report import made_sessions as made
from tests.moe_prof.topdown.made import row


def drawn(rows=None, name: str = "one", description: str = "Speedups") -> str:
    """Speedups as SVG."""
    return figures.svg(figures.speedups(rows or made.timing_rows()), name, description)


def test_it_is_one_element_without_addresses():
    """Well-formed, and it names no server."""
    text = drawn()
    ElementTree.fromstring(text.replace("xlink:href", "href"))
    assert "://" not in text
    assert "<metadata" not in text
    assert "<style" not in text


def test_colours_are_the_pages():
    """Text and lines follow light and dark."""
    text = drawn()
    assert "var(--ink)" in text
    assert INK not in text
    assert LINE not in text


def test_identifiers_carry_the_figures_name():
    """Two figures share none, and what refers to one finds it."""
    one, two = drawn(name="one"), drawn(name="two")
    ids = [set(re.findall(r'\sid="([^"]+)"', text)) for text in (one, two)]
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', one))
    assert ids[0]
    assert not ids[0] & ids[1]
    assert used <= ids[0]


def test_equal_figures_give_equal_text():
    """A report of the same session is the same file."""
    assert drawn() == drawn()


def test_names_are_text_and_no_formula():
    """Markup, dollar signs and what looks like an attribute stay as they are."""
    name = '<b>$x_1$ id="a"&'
    text = drawn([row("speedup", 2.0, name)], description='"><script>')
    found = ElementTree.fromstring(text.replace("xlink:href", "href"))
    assert name in [element.text for element in found.iter("text")]
    assert found.attrib["aria-label"] == '"><script>'
