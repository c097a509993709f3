"""One entry for every output of ``perf stat``: finds the form by content and reads it."""

from __future__ import annotations

from collections.abc import Callable

from moe_prof.collectors.perf_reading import Form, Report, clean
from moe_prof.collectors.perf_stat_csv import find_separator, parse_csv, table_separator
from moe_prof.collectors.perf_stat_json import LOOKS_LIKE, parse_json
from moe_prof.collectors.perf_stat_text import HEADER, INTERVAL_HEADER, parse_text
from moe_prof.errors import InputError

_PROBE_LINES = 2000


def recognise(text: str) -> Form | None:
    """The form of a ``perf stat`` output, None for anything else.

    A header of the text form decides, then JSON objects with perf's keys, then rows that have the
    CSV layout under some separator; a fragment of the text form without its header is recognised by
    its rows.
    """
    lines = clean(text).split("\n")
    probe = lines[:_PROBE_LINES]
    tests: tuple[tuple[Form, Callable[[], bool]], ...] = (
        ("text", lambda: any(HEADER.match(line) for line in lines)),
        ("json", lambda: any(LOOKS_LIKE.search(line) for line in lines)),
        ("text", lambda: any(INTERVAL_HEADER.match(line) for line in lines)),
        ("csv", lambda: find_separator(probe)[1] > 0),
        ("text", lambda: bool(parse_text("\n".join(probe)).readings)),
        ("csv", lambda: bool(table_separator(probe))),
    )
    return next((form for form, test in tests if test()), None)


def parse(text: str, *, source: str = "perf stat output") -> Report:
    """Read a ``perf stat`` output in any form.

    Args:
        text: the whole output; the program's own lines may stand around it.
        source: what to call the text in an error.

    Raises:
        InputError: the text is no perf stat output.
    """
    form = recognise(text)
    if form is None:
        raise InputError(
            f"{source}: no output of perf stat found; expected its text, -x or -j form"
        )
    cleaned = clean(text)
    if form == "json":
        return parse_json(cleaned)
    return parse_csv(cleaned) if form == "csv" else parse_text(cleaned)
