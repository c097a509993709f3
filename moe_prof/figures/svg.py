"""A figure as SVG text for the inside of an HTML page, in the page's own colours.

What matplotlib writes is a file of its own: a head, metadata with addresses, identifiers that would
be the same for every figure of a page, fixed colours and fonts. All that is taken off or replaced.
"""

from __future__ import annotations

import io
import re
import warnings
from html import escape
from typing import TYPE_CHECKING

from moe_prof.figures.style import INK, LINE, look

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HEAD = re.compile(r"<svg\b[^>]*>", re.DOTALL)
_METADATA = re.compile(
    r"\s*<metadata>.*?</metadata>|<defs>\s*<style\b.*?</style>\s*</defs>", re.DOTALL
)
_VIEW_BOX = re.compile(r'viewBox="([\d. ]+)"')
_ID = re.compile(r'\sid="([^"<>]+)"')
_TAG = re.compile(r"<[^<>]+>")
_FONT = re.compile(r"font-family:[^;\"]*;? ?|(?<=px) 'DejaVu Sans'[^;\"]*")
_BLANK = re.compile(r">\s+<")
_REFERENCE = re.compile(r'((?:xlink:)?href="#|url\(#)([^")]+)')
_NO_TURN = re.compile(r' transform="rotate\(-0[^"]*"')
_DIGITS = re.compile(r"(\d\.\d\d)\d+")
_COLOURS = {INK: "var(--ink)", LINE: "var(--line)", "#666666": "var(--soft)"}


def svg(figure: Figure, name: str, description: str) -> str:
    """The ``<svg>`` element.

    Args:
        name: prefix of all identifiers, unique on the page: letters, digits and dashes.
        description: what the figure shows, for those who do not see it.
    """
    buffer = io.StringIO()
    with look(), warnings.catch_warnings():
        # The page's own fonts draw the text, whatever matplotlib's lack.
        warnings.filterwarnings("ignore", "Glyph", UserWarning)
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    head = _HEAD.search(text)
    box = _VIEW_BOX.search(text)
    assert head is not None
    assert box is not None
    body = _METADATA.sub("", text[head.end() :])
    used = {match[2] for tag in _TAG.findall(body) for match in _REFERENCE.finditer(tag)}
    body = _TAG.sub(lambda tag: _clean(tag[0], name, used), _BLANK.sub("><", body))
    begin = (
        f'<svg viewBox="{box[1]}" role="img" aria-label="{escape(description)}" '
        'preserveAspectRatio="xMinYMin meet">'
    )
    return begin + body.strip()


def _clean(tag: str, name: str, used: set[str]) -> str:
    """A tag without what the page does not need; texts between tags stay as they are."""
    tag = _ID.sub(lambda at: f' id="{name}-{at[1]}"' if at[1] in used else "", tag)
    tag = _REFERENCE.sub(rf"\g<1>{name}-\g<2>", tag)
    tag = _NO_TURN.sub("", _FONT.sub("", tag))
    if tag.startswith("<path"):
        tag = tag.replace("fill: #ffffff", "fill: var(--paper)")  # the ground of texts on lines
        tag = _DIGITS.sub(r"\1", tag.replace(" \n", " ").replace("\n", " "))
    for placeholder, colour in _COLOURS.items():
        tag = tag.replace(placeholder, colour)
    return tag
