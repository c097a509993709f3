"""Sessions with any rows and any words, as a damaged or foreign one may have: a sound page."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from moe_prof.report import render
from moe_prof.report.material import material_of
from moe_prof.rows import STATUSES, Row
from moe_prof.session import Manifest, SavedSession
from tests.moe_prof.report import made_sessions as made
from tests.moe_prof.report.html_reading import broken_rules

KNOWN = (*made.timing_rows(), *made.topdown_rows(), *made.imported_rows())
SHARES = ("self_share", "total_share", "phase_share", "wait_share", "line_share")
METRICS = sorted({row.metric for row in KNOWN} | {*SHARES, "isa", ""})
VALUES = (None, 0.0, -1.0, 1.0, 1e-320, 1e308, float("inf"), float("-inf"), 0.5, 2.0**53, 3.0)
WORDS = (
    "", "a", "packed", "\x00\x01", "\ud800x", "ä" * 300, made.ATTACK, "a\nb", "  ", "[x] [y]", "$",
    "_x", "%s", "{{7*7}}", "👩‍🔬" * 20, "</td>", "&amp;", "\u2028",
)  # fmt: skip
MACHINES = (
    {}, made.MACHINE,
    {"caches": [{}], "model_name": 5, "governors": None, "memory_total_bytes": "x"},
)  # fmt: skip


def any_row(source: random.Random) -> Row:
    """A row that keeps to the types alone."""
    one = source.choice
    return Row(
        scenario=one(("S3", "")), variant=one(WORDS), collector=one(("builtin", "ceilings", "x")),
        scope=one(("roi", "process", "machine", "function", "instruction", "system")),
        repeat=one((None, None, 0)), thread=one((None, None, "0", "1", "x")),
        phase=one((None, None, "gate_up", *WORDS)), metric=one(METRICS), value=one(VALUES),
        unit=one(("1", "s", "Hz", "slots", "MAC/s", "bytes/s", "bytes", "x")),
        stddev=one((None, 0.0, 1e300)), status=one(STATUSES), n=one((None, 1, 9)),
        provenance=one(("measured", "simulated", "modelled")), source=one(WORDS),
    )  # fmt: skip


def any_session(source: random.Random) -> SavedSession:
    """A session without a folder."""
    one = source.choice
    manifest = Manifest(
        schema=1, run_id=one(WORDS), command=one(("bench", "import", "topdown")),
        argv=tuple(source.choices(WORDS, k=3)), scenario=one(("S3", *WORDS)),
        shape=one(((), (128, 256, 128, 16, 4), (0, 1, 1, 1, 1), (1, 2))),
        variants=tuple(source.choices(WORDS, k=2)), seed=0, state=one(("complete", "x")),
        started="", elapsed_s=one((None, 1.0)), moe_prof_version="0", python_version="3",
        machine=one(MACHINES), tools={"a": one(WORDS)}, environment={"b": one(WORDS)},
        notes=(one(WORDS),),
    )  # fmt: skip
    rows = tuple(any_row(source) for _ in range(one((1, 5, 60))))
    return SavedSession(Path("nowhere"), manifest, rows)


@pytest.mark.parametrize("seed", range(24))
def test_any_session_gives_a_sound_page(seed):
    """Whatever is in its rows and its manifest."""
    assert broken_rules(render(material_of([any_session(random.Random(seed))])).html) == []
