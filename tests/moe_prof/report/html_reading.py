"""Reading a page with the standard library's parser, and saying what is wrong with it."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "input", "img", "use", "path", "rect", "line", "circle"}
ALLOWED = {
    "html", "head", "meta", "link", "title", "style", "body", "a", "header", "h1", "h2", "h3",
    "nav", "ul", "li", "main", "section", "p", "strong", "br", "div", "figure", "figcaption",
    "table", "caption", "thead", "tbody", "tr", "th", "td", "span", "details", "summary", "button",
    "label", "input", "code", "footer", "script", "svg", "g", "path", "defs", "use", "text",
    "clippath", "rect", "polyline", "polygon",
}  # fmt: skip
ADDRESSES = ("src", "href", "xlink:href", "srcset", "action", "data", "poster")


@dataclass
class Page(HTMLParser):
    """Everything in a page that the checks look at."""

    tags: Counter[str] = field(default_factory=Counter)
    ids: list[str] = field(default_factory=list)
    attributes: list[tuple[str, str, str]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    scripts: list[str] = field(default_factory=list)
    tables: list[Counter[str]] = field(default_factory=list)
    unbalanced: list[str] = field(default_factory=list)
    stack: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag, attrs):
        """Count it; note its attributes."""
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag == "table":
            self.tables.append(Counter())
        if self.tables and "table" in (*self.stack, tag):
            self.tables[-1][tag] += 1
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        """SVG's empty elements."""
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        """Must be the one that was opened last."""
        if tag in VOID:
            return
        if not self.stack or self.stack.pop() != tag:
            self.unbalanced.append(tag)

    def handle_data(self, data):
        """Texts, and scripts apart."""
        (self.scripts if self.stack and self.stack[-1] == "script" else self.texts).append(data)

    @property
    def text(self) -> str:
        """All of the text that a reader meets."""
        return " ".join(" ".join(self.texts).split())


def read(html: str) -> Page:
    """The page's parts."""
    page = Page()
    page.feed(html)
    page.close()
    return page


def broken_rules(html: str) -> list[str]:
    """What is wrong with a page, whatever it shows."""
    page = read(html)
    links = [value for _, name, value in page.attributes if name in ADDRESSES]
    named = set(page.ids)
    policy = next(v for _, n, v in page.attributes if n == "content" and "default-src" in v)
    digest = hashlib.sha256("".join(page.scripts).encode()).digest()
    rules = {
        "balanced": not page.unbalanced and not page.stack,
        "known tags": set(page.tags) <= ALLOWED,
        "identifiers once": len(named) == len(page.ids),
        "links lead somewhere": all(v[1:] in named for v in links if v.startswith("#")),
        "no address": all(v.startswith(("#", "data:")) for v in links),
        "no remote text in styles": not re.search(r"@import|url\(\s*['\"]?(?!#)", html),
        "no handlers": not [n for _, n, _ in page.attributes if n.startswith("on")],
        "one script": page.tags["script"] == 1,
        "script by hash": base64.b64encode(digest).decode() in policy,
        "tables": all(t["caption"] and t["th"] and t["tr"] > 1 for t in page.tables),
        "pictures": page.tags["svg"]
        == sum(1 for tag, n, v in page.attributes if (tag, n) == ("svg", "aria-label") and v),
        "language": ("html", "lang", "en") in page.attributes,
        "one main title": page.tags["h1"] == 1,
        "light": len(html.encode()) < 2_000_000,
    }
    return [name for name, holds in rules.items() if not holds]
