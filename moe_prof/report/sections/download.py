"""The rows as a CSV file inside the page, as many of them as leave the page light."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Iterable
from dataclasses import asdict

from moe_prof.report.material import Material
from moe_prof.report.parts import Context, Missing
from moe_prof.rows import COLUMNS, Row
from moe_prof.streams import encodable

MOST_BYTES = 360_000
"""Of the file; inside the page it takes a third more."""


def make(material: Material) -> Context | Missing:
    """The file's address, and how many rows it lacks."""
    rows = [row for source in material.sources for row in source.rows]
    if not rows:
        return Missing("the sessions hold no figures")
    text, kept = _csv(sorted(rows, key=_rank))
    data = base64.b64encode(text.encode("utf-8")).decode("ascii")
    return {
        "address": f"data:text/csv;charset=utf-8;base64,{data}",
        "rows": kept,
        "left": len(rows) - kept,
        "folders": [str(source.session.folder) for source in material.sources],
    }


def _rank(row: Row) -> int:
    """Summaries first, then repetitions, then parts of programs: the last ones are left out."""
    if row.scope in ("function", "instruction") or row.metric.endswith("_share"):
        return 2
    return int(row.repeat is not None or row.time_s is not None)


def _csv(rows: Iterable[Row]) -> tuple[str, int]:
    """The text and the number of rows in it."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, COLUMNS, lineterminator="\n")
    writer.writeheader()
    kept, size = 0, buffer.tell()
    for row in rows:
        line = io.StringIO()
        csv.DictWriter(line, COLUMNS, lineterminator="\n").writerow(asdict(row))
        text = encodable(line.getvalue(), "utf-8")
        size += len(text.encode("utf-8"))
        if size > MOST_BYTES:
            break
        buffer.write(text)
        kept += 1
    return buffer.getvalue(), kept
