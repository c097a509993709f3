"""Reading a text or bytes through the whole import, without the command line around it."""

from __future__ import annotations

from pathlib import Path

from moe_prof.importing.base import Labels
from moe_prof.importing.load import Imported, load
from moe_prof.importing.source import opened
from moe_prof.rows import Row

STAT = """\

 Performance counter stats for './moe 7':

             12.50 msec task-clock                #    0.990 CPUs utilized
     1,234,567,891      cycles                    #    3.100 GHz                      (83.33%)
     2,469,135,782      instructions              #    2.00  insn per cycle           (66.67%)
   <not supported>      LLC-load-misses

       0.012626262 seconds time elapsed
"""


def read_bytes(folder: Path, data: bytes, name: str = "out.txt") -> Imported:
    """What is found in a file of these bytes."""
    path = folder / name
    path.write_bytes(data)
    with opened(str(path)) as source:
        return load(source, Labels("S3", "mine"), lambda share: None)


def read_text(folder: Path, text: str) -> Imported:
    """What is found in a file of this text."""
    return read_bytes(folder, text.encode())


def values(rows: tuple[Row, ...], **fields: object) -> dict[str, float | None]:
    """Values by metric of the rows with these fields; the first of a metric counts."""
    found: dict[str, float | None] = {}
    for row in rows:
        if all(getattr(row, name) == value for name, value in fields.items()):
            found.setdefault(row.metric, row.value)
    return found
