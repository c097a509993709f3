"""Numbers as perf prints them in any locale.

perf groups digits (``printf("%'.0f")``) only in the count column of its text form; metrics, times,
CSV and JSON are never grouped, but their decimal mark still follows the locale. So there are two
readers: one for places where grouping can occur and one for places where it cannot.

Source: printf(3) on the ``'`` flag; grouping characters of glibc's locales (dot, comma, apostrophe,
U+2019, blank, U+00A0, U+2009, U+202F), sizes 3-3-3 or, in India, 2-2-3.
"""

from __future__ import annotations

import math
import re

GROUP_MARKS = "'\u2019 \u00a0\u2009\u202f"  # marks that only ever group digits
_WORDS = {
    "nan": math.nan, "-nan": math.nan, "inf": math.inf, "+inf": math.inf, "-inf": -math.inf,
}  # fmt: skip
_PLAIN = re.compile(r"[+-]?(?:[0-9]+(?:[.,][0-9]*)?|[.,][0-9]+)(?:[eE][+-]?[0-9]+)?")
_SHAPE = re.compile(r"[0-9]{1,3}(?:S[0-9]{2,3})*S[0-9]{3}".replace("S", "[.,]"))

# A number in the count column: blanks may group, but only between whole groups of three.
COUNT_PATTERN = (
    r"-?(?:[0-9]{1,3}(?:[ \u00a0\u2009\u202f][0-9]{3})+(?:[.,][0-9]+)?"
    r"|[0-9](?:[0-9.,'\u2019]*[0-9])?)"
)


def parse_plain(text: str) -> float:
    """A number that is never grouped; a dot or a comma is the decimal mark.

    Returns:
        The value; NaN or an infinity where perf printed one.

    Raises:
        ValueError: the text is no such number.
    """
    stripped = text.strip()
    word = _WORDS.get(stripped.lower())
    if word is not None:
        return word
    if not _PLAIN.fullmatch(stripped):
        raise ValueError(f"{text[:40]!r} is not a number")
    return float(stripped.replace(",", "."))


def parse_grouped(text: str) -> float:
    """A number whose digits may be grouped in the way of any locale.

    One mark followed by exactly three digits groups (a count has no decimals and perf prints scaled
    values with two); any other lone mark is the decimal mark.

    Raises:
        ValueError: the text is no such number.
    """
    stripped = text.strip()
    word = _WORDS.get(stripped.lower())
    if word is not None:
        return word
    negative = stripped.startswith("-")
    digits = stripped.removeprefix("-")
    pure = "".join(char for char in digits if char not in GROUP_MARKS)
    if not pure or not all(char in "0123456789.," for char in pure):
        raise ValueError(f"{text[:40]!r} is not a number")
    marks = [char for char in pure if char in ".,"]
    if pure != digits:
        if digits[0] in GROUP_MARKS or digits[-1] in GROUP_MARKS:
            raise ValueError(f"{text[:40]!r} is not a number")
        value = parse_plain(pure)
    elif len(set(marks)) == 2:
        value = _with_decimals(pure, marks)
    elif len(marks) > 1 or (len(marks) == 1 and _is_grouped_once(pure)):
        value = _without_decimals(pure)
    else:
        value = parse_plain(pure)
    return -value if negative else value


def _is_grouped_once(text: str) -> bool:
    head, tail = re.split(r"[.,]", text)
    return len(tail) == 3 and 1 <= len(head) <= 3 and not head.startswith("0")


def _with_decimals(text: str, marks: list[str]) -> float:
    decimal = marks[-1]
    if marks.count(decimal) != 1:
        raise ValueError(f"{text[:40]!r} mixes digit grouping and decimal marks")
    whole, fraction = text.split(decimal)
    return float(f"{_without_decimals(whole):.0f}.{fraction or '0'}")


def _without_decimals(text: str) -> float:
    if not _SHAPE.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is not a grouped number")
    return float(text.replace(".", "").replace(",", ""))
