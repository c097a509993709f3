"""toplev's CSV with and without titles, its columns, and its text."""

from __future__ import annotations

import pytest

from moe_prof.collectors.toplev_format import is_header, is_row, parse
from moe_prof.errors import InputError
from tests.collectors.fixture_files import recorded

TEXT = """\
# 4.7-full on Intel(R) Xeon(R) Platinum 8380 CPU @ 2.30GHz [icx]
C0    FE               Frontend_Bound                      % Slots                       20.3  [ 6.0%]
C0    BE               Backend_Bound                       % Slots                       45.0  [ 6.0%]<==
\tThis category represents fraction of slots where no uops are delivered 12 %
C0    BE/Mem           Backend_Bound.Memory_Bound          % Slots                       25.0 <[ 6.0%]
C0-T0 Info.Thread      IPC                                   Metric                       1.35   [ 6.0%]
Run toplev --describe Memory_Bound^ to get more information on bottleneck
"""  # noqa: E501  (the tool's own width)


def test_recorded_absurd_values() -> None:
    """Impossible values are kept, with toplev's own marks."""
    values = {v.name: v for v in parse(recorded("corpus/R01.txt")).values}

    assert (values["Bad_Speculation"].value, values["Bad_Speculation"].bottleneck) == (9871.2, True)
    assert (values["Retiring"].below, values["Retiring"].unit) == (True, "% Slots")
    assert values["Frontend_Bound"].multiplex_pct == 3.1


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_rows_without_titles(separator: str) -> None:
    """Time and CPU are found by what they look like; the summary has no time."""
    rows = (
        ("1.001365014", "S0-C2", "Retiring", "25.1", "% Slots", "text", "", "0.3", "12.5", ""),
        ("SUMMARY", "S0-C2", "Retiring", "25.6", "% Slots ?", "", "", "0.3", "12.5", ""),
    )
    text = "".join(separator.join(row) + "\n" for row in rows)
    first, summary = parse(text).values

    assert (first.time_s, first.cpu, first.value, first.below) == (
        1.001365014, "S0-C2", 25.1, False,
    )  # fmt: skip
    assert (summary.time_s, summary.value, summary.below) == (None, 25.6, True)


def test_columns_by_cpu() -> None:
    """--columns gives one value a CPU; an empty cell is missing."""
    report = parse(
        "# 3.6-full on Intel(R) Core(TM) [skl]\n"
        "Timestamp,Area,Node,C0,C1,Description,Sample,Stddev,Multiplex\n"
        "1.0,BE,Backend_Bound,45.5,,,,0.1,25.0\n"
    )

    assert [(v.cpu, v.value, v.multiplex_pct) for v in report.values] == [
        ("C0", 45.5, 25.0), ("C1", None, 25.0),
    ]  # fmt: skip
    assert report.version == "3.6-full on Intel(R) Core(TM) [skl]"


def test_text_for_people() -> None:
    """One line a node; descriptions and advice are no values."""
    found = [
        (v.cpu, v.name, v.value, v.unit, v.below, v.bottleneck, v.multiplex_pct)
        for v in parse(TEXT).values
    ]

    assert found == [
        ("C0", "Frontend_Bound", 20.3, "% Slots", False, False, 6.0),
        ("C0", "Backend_Bound", 45.0, "% Slots", False, True, 6.0),
        ("C0", "Backend_Bound.Memory_Bound", 25.0, "% Slots", True, False, 6.0),
        ("C0-T0", "IPC", 1.35, "Metric", False, False, 6.0),
    ]


def test_old_text() -> None:
    """Old versions put the unit behind the value and a word for the threshold."""
    report = parse(
        "FE             Frontend_Bound:                          36.40 +-     0.11 %  [ 5.0%]\n"
        "RET            Retiring:                                23.10 % below [20.0%]\n"
    )

    assert [(v.name, v.value, v.unit, v.stddev, v.below) for v in report.values] == [
        ("Frontend_Bound", 36.4, "% Slots", 0.11, False),
        ("Retiring", 23.1, "% Slots", None, True),
    ]


def test_a_cut_row_is_named() -> None:
    """The rows around it are kept."""
    report = parse("Area,Value,Unit\nRetiring,10,% Slots\nFront\nBackend_Bound,20,% Slots\n")

    assert [v.value for v in report.values] == [10, 20]
    assert report.warnings == ("line 3: not a row of toplev's CSV: 'Front'",)


def test_recognition() -> None:
    """Titles and rows are told from other CSV."""
    assert is_header("CPUs,Area,Value,Unit,Description")
    assert is_row("C0,Frontend_Bound,21.4,% Slots,,,0.0,3.1,,")
    assert not is_header("a,b,c")
    assert not is_row("1,2,3,4")
    with pytest.raises(InputError, match="toplev"):
        parse("hello,world\n")
