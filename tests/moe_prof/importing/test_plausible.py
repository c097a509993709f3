"""Impossible rates and level-1 sums are marked with the reason; values stay as printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.moe_prof.importing.reading import read_text

HEAD = "TS,SKT,CPU,CID,CPI,TMA_Frontend_Bound(%),TMA_Bad_Speculation(%),TMA_Backend_Bound(%),"


@pytest.mark.parametrize(
    ("cells", "marked"),
    [
        ("0.9,10,10,30,50", set()),
        ("0.07,10,10,30,50", {"CPI"}),
        ("0.9,40,31,60,50", {"Frontend_Bound", "Bad_Speculation", "Backend_Bound", "Retiring"}),
        ("0.9,40,,60,50", set()),
    ],
    ids=["possible", "too fast", "181 percent", "a node is missing"],
)
def test_series(cells: str, marked: set[str], tmp_path: Path) -> None:
    """Only what cannot be is marked; each value is as printed."""
    found = read_text(tmp_path, f"{HEAD}TMA_Retiring(%)\n1700000001,,,,{cells}\n")
    bad = {row.metric: row for row in found.rows if row.status == "out_of_bounds"}

    assert {name.removeprefix("TMA_").removesuffix("(%)") for name in bad} == marked
    assert all(row.value is not None and ";" in row.source for row in bad.values())


def test_sum_of_toplev(tmp_path: Path) -> None:
    """Each core has its own sum."""
    rows = [
        f"C{core},{node},{value},% Slots"
        for core, values in ((0, (25, 25, 25, 25)), (1, (31, 30, 25, 25)))
        for node, value in zip(
            ("Frontend_Bound", "Bad_Speculation", "Backend_Bound", "Retiring"), values, strict=True
        )
    ]
    found = read_text(tmp_path, "CPUs,Area,Value,Unit\n" + "\n".join(rows) + "\n")

    assert {row.cpu for row in found.rows if row.status == "out_of_bounds"} == {"C1"}
    assert "111.0 % of slots" in found.rows[-1].source
