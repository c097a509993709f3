"""Outputs of further versions and layouts: what ``load`` reads from each; nothing is lost."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from moe_prof.importing.base import Labels
from moe_prof.importing.load import Imported, load
from moe_prof.importing.source import opened
from tests.invariants import broken_import

FOLDER = Path(__file__).parents[2] / "fixtures" / "import"
INDEX = json.loads((FOLDER / "index.json").read_text(encoding="utf-8"))
CASES = [
    pytest.param(entry["file"], one, id=f"{entry['file']}-{one['metric']}")
    for entry in INDEX
    for one in entry["expected"]
]
# what is really damaged in them
REMARKS = {
    "stat-slots.txt": ("line 3: not a row of perf stat: 'slots                 1,000,000'",),
}


@cache
def imported(name: str) -> Imported:
    """What is read from a file."""
    with opened(str(FOLDER / name)) as source:
        return load(source, Labels(), lambda share: None)


@pytest.mark.parametrize(("name", "expected"), CASES)
def test_listed_value(name: str, expected: dict[str, Any]) -> None:
    """The value is there for its metric and place, over the whole run."""
    found = [
        row.value
        for row in imported(name).rows
        if (row.metric, row.cpu, row.time_s) == (expected["metric"], expected["cpu"], None)
    ]
    value = expected["value"]

    assert (None if value is None else pytest.approx(value, rel=1e-12)) in found


@pytest.mark.parametrize("entry", INDEX, ids=lambda entry: entry["file"])
def test_nothing_is_lost(entry: dict[str, Any]) -> None:
    """Every line is understood, and every row keeps the rules."""
    found = imported(entry["file"])

    assert broken_import(found) == []
    assert found.remarks == REMARKS.get(entry["file"], ())
