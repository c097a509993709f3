"""VTune's reports: three delimiters, nested columns, text, summaries, damage."""

from __future__ import annotations

from pathlib import Path

import pytest

from moe_prof.collectors.vtune_csv import by_path, parse_summary, parse_table, value
from moe_prof.errors import InputError

CORPUS = Path(__file__).parents[1] / "fixtures" / "corpus"


def test_recorded_tab_report_with_nested_columns() -> None:
    """A parent column holds its children; sums of the leaves give the parents."""
    table = parse_table((CORPUS / "R04.txt").read_text(encoding="utf-8"))
    barrier = next(row for row in table.rows if row[0] == "__kmp_fork_barrier")
    cpu = table.find("CPU Time")
    assert cpu is not None
    assert table.number(barrier, "CPU Time:Spin Time") == 7.25
    assert table.number(barrier, "CPU Time:Spin Time:Imbalance or Serial Spinning") == 7.0
    assert sum(table.number(row, cpu) or 0 for row in table.rows) == 20.125
    assert table.children(cpu) == (
        "CPU Time:Effective Time", "CPU Time:Spin Time", "CPU Time:Overhead Time",
    )  # fmt: skip
    parts = [table.number(barrier, column) or 0 for column in table.children(cpu)]
    assert sum(parts) == table.number(barrier, cpu)


@pytest.mark.parametrize("delimiter", [",", "\t", ";"])
def test_delimiters_and_quoted_templates(delimiter: str) -> None:
    """Commas, semicolons and indentation within quotes are part of a name."""
    rows = [
        ["Function", "CPU Time", "Module"],
        ['"f<int, 4>(a; b)"', "1.5", "moe"],
        ['"   callee"', "", "moe"],
    ]
    table = parse_table("".join(delimiter.join(row) + "\n" for row in rows))
    assert table.rows == (("f<int, 4>(a; b)", "1.5", "moe"), ("callee", "", "moe"))
    assert table.depths == (0, 3)
    assert table.number(table.rows[1], "CPU Time") is None


def test_progress_before_the_header() -> None:
    """VTune's own messages are no rows, even in front of the header on its line."""
    table = parse_table(
        "vtune: Using result path `/tmp/r'\n"
        "vtune: Executing actions  0 %\rvtune: Executing actions 75 % Generating a report\r"
        "vtune: Executing actions 75 % Generating a report   Function,CPU Time\n"
        "f,1.0\nvtune: Executing actions 100 % done\n"
    )
    assert (table.columns, table.rows) == (("Function", "CPU Time"), (("f", "1.0"),))


def test_empty_report_and_duplicates() -> None:
    """A report of nothing has no rows; equal names stay apart."""
    assert parse_table("Function,CPU Time,Module\n").rows == ()
    table = parse_table("Function,CPU Time,Module\nf,1,a\nf,-0.5,b\n")
    assert [table.number(row, "CPU Time") for row in table.rows] == [1.0, -0.5]


def test_row_of_another_width_is_named() -> None:
    """A damaged row is told with its line, the others are kept."""
    table = parse_table("Function,CPU Time\nf,1\ng,2,3\nh,4\n")
    assert [row[0] for row in table.rows] == ["f", "h"]
    assert table.notes == ("line 3: 3 cells for 2 columns",)


def test_text_report() -> None:
    """The line of dashes says where the columns of a text report are."""
    table = parse_table(
        "Function            CPU Time  Module\n"
        "------------------  --------  ------\n"
        "f(int, char)          1.500s  moe\n"
        "  g                           moe\n"
    )
    assert table.columns == ("Function", "CPU Time", "Module")
    assert table.number(table.rows[0], "CPU Time") == 1.5
    assert table.depths == (0, 2)


def test_summary_as_text() -> None:
    """Indentation gives the path, units are scaled, advice is no metric."""
    found = by_path(parse_summary(
        "vtune: Executing actions 75 % Generating a report        Elapsed Time: 2.104s\n"
        "    CPU Time: 1.990s\n"
        "        Effective Time: 1.890s\n"
        "        Spin Time: 100.0ms\n"
        "         | A significant portion: of the CPU time is spent waiting.\n"
        "    Total Thread Count: 2\n"
        "Effective CPU Utilization: 47.3%\n"
        "Collection and Platform Info\n"
        "    Application Command Line: ./moe_bench 1 2\n"
    ))  # fmt: skip
    assert found["Elapsed Time", "CPU Time", "Spin Time"].value == pytest.approx(0.1)
    assert found["Elapsed Time", "Total Thread Count"].value == 2
    assert found["Effective CPU Utilization",].unit == "%"
    assert len(found) == 7


@pytest.mark.parametrize("delimiter", [",", "\t", ";"])
def test_summary_as_csv(delimiter: str) -> None:
    """The hierarchy's level gives the path."""
    rows = ["Hierarchy Level,Metric Name,Metric Value", "0,Elapsed Time,2.5", "1,CPU Time,2.0",
            "2,Spin Time,0.5", "1,Paused Time,", "0,Application Command Line,./a"]  # fmt: skip
    found = by_path(parse_summary("\n".join(row.replace(",", delimiter) for row in rows)))
    assert found["Elapsed Time", "CPU Time", "Spin Time"].value == 0.5
    assert found["Elapsed Time", "Paused Time"].value is None


VALUES = [
    ("1.990s", (1.99, "s")), ("12 ms", (0.012, "s")), ("47.3%", (47.3, "%")),
    ("1,234,567", (1234567.0, "")), ("1.2e+09", (1.2e9, "")), ("-0.5", (-0.5, "")),
    ("2.5 (5.0% of 2 logical CPUs)", None), ("", None), ("[Unknown]", None), ("0x4016e0", None),
    ("3.1GB/s", (3.1, "GB/s")), ("5.0% of Pipeline Slots", (5.0, "%")),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), VALUES)
def test_values(text: str, expected: tuple[float, str] | None) -> None:
    """Numbers with units; blanks, names and addresses are no numbers."""
    assert (
        value(text) == (expected if expected is None else pytest.approx(expected[0]), expected[1])
        if expected
        else value(text) is None
    )


def test_another_text() -> None:
    """Text of another tool is refused with the command that makes the right one."""
    with pytest.raises(InputError, match="vtune -report"):
        parse_table("hello\n")
    with pytest.raises(InputError, match="vtune -report summary"):
        parse_summary("hello\n")
