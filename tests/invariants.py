"""What holds for every imported row, whatever was in the file."""

from __future__ import annotations

import json
import math

from moe_prof.errors import MoeProfError
from moe_prof.importing.load import Imported
from moe_prof.importing.recognise import UNEXPECTED
from moe_prof.rows import PROVENANCES, STATUSES, Row, to_json_record


def broken_rules(row: Row) -> list[str]:
    """Names of the rules that a row breaks."""
    rules = {
        "finite": row.value is None or math.isfinite(row.value),
        "missing has a reason": row.value is not None
        or (row.provenance == "unavailable" and row.status != "ok" and bool(row.source)),
        "names": bool(row.metric and row.unit and row.collector),
        "places": all(text is None or text for text in (row.cpu, row.thread, row.phase)),
        "time": row.time_s is None or (row.time_s >= 0 and math.isfinite(row.time_s)),
        "multiplexing": row.mux_pct is None or 0 <= row.mux_pct <= 100,
        "deviation": row.stddev is None or (row.stddev >= 0 and math.isfinite(row.stddev)),
        "counts": all(n is None or n >= least for n, least in ((row.n, 1), (row.repeat, 0))),
        "level": row.level is None or row.level >= 1,
        "words": row.status in STATUSES and row.provenance in PROVENANCES,
        "json": bool(json.dumps(to_json_record(row), allow_nan=False)),
    }
    return [name for name, holds in rules.items() if not holds]


def broken_import(found: Imported) -> list[str]:
    """What is wrong with everything that was read from a file."""
    wrong = [f"{row.metric}: {', '.join(bad)}" for row in found.rows if (bad := broken_rules(row))]
    return wrong + [text for text in found.remarks if not text.strip() or UNEXPECTED in text]


def broken_error(error: MoeProfError, name: str) -> list[str]:
    """What is wrong with the message of a refused file."""
    text = str(error)
    wrong = [] if name in text else ["the message does not name the file"]
    wrong += ["the message has several lines"] if "\n" in text else []
    return wrong + ([text.partition(UNEXPECTED)[2]] if UNEXPECTED in text else [])
