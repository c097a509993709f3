"""VTune's summary with the table inside it, summaries as CSV, threads, stacks."""

from __future__ import annotations

from pathlib import Path

from tests.moe_prof.importing.reading import read_text, values

SUMMARY = """\
vtune: Executing actions 75 % Generating a report
Elapsed Time: 12.500s
    CPU Time: 150.250s
        Spin Time: 45.000s
         | A significant portion of CPU time is spent waiting: see there.
            Lock Contention: 0s
    Total Thread Count: 17

Top Hotspots
Function             Module        CPU Time  % of CPU Time(%)
-------------------  ------------  --------  ----------------
gemm<signed char>    moe            80.125s             53.3%
__kmp_fork_barrier   libiomp5.so    45.000s             30.0%
Effective Physical Core Utilization: 45.6% (7.296 out of 16)
Collection and Platform Info
    Result Size: 4.5 MB
"""


def test_summary_with_a_table_inside(tmp_path: Path) -> None:
    """Both are read; the total is the summary's, not the sum of its top rows."""
    found = read_text(tmp_path, SUMMARY)
    rows = values(found.rows, scope="process")
    functions = {
        row.source.partition(";")[0]: row.value
        for row in found.rows
        if row.scope == "function" and row.metric == "CPU Time"
    }

    assert (rows["Elapsed Time"], rows["CPU Time"], rows["CPU Time:Spin Time"]) == (
        12.5, 150.25, 45.0,
    )  # fmt: skip
    assert rows["CPU Time:Spin Time:Lock Contention"] == 0
    assert functions == {"gemm<signed char> [moe]": 80.125, "__kmp_fork_barrier [libiomp5.so]": 45}


def test_summary_as_csv(tmp_path: Path) -> None:
    """Times without a unit are seconds, shares of slots are fractions."""
    found = read_text(
        tmp_path,
        "Hierarchy Level,Metric Name,Metric Value\n0,Elapsed Time,12.345\n1,CPU Time,150.25\n"
        "1,Retiring,23.5% of Pipeline Slots\n1,Average CPU Frequency,3.1 GHz\n",
    )
    units = {row.metric: (row.value, row.unit) for row in found.rows}

    assert units == {
        "Elapsed Time": (12.345, "s"), "CPU Time": (150.25, "s"),
        "Retiring": (0.235, "slots"), "Average CPU Frequency": (3.1e9, "Hz"),
    }  # fmt: skip


def test_indented_quotes_of_a_stack(tmp_path: Path) -> None:
    """The indent before the quote shows the level; commas within it belong to the name."""
    found = read_text(
        tmp_path,
        'Function Stack,CPU Time:Total,CPU Time:Self,Module\nmain,9.5,0.5,moe\n'
        '  "gemm<int, 4>",9,9,moe\n',
    )  # fmt: skip
    own = {row.source.partition(";")[0]: row.value for row in found.rows if "Self" in row.metric}

    assert own == {"main [moe]": 0.5, "gemm<int, 4> [moe]": 9}


def test_threads(tmp_path: Path) -> None:
    """Rows by thread carry it, and their sum is the process's."""
    found = read_text(
        tmp_path, "Thread,CPU Time,CPU Time:Spin Time\nworker (TID: 7),2.5,0.5\nmoe,1.5,\n"
    )

    assert values(found.rows, thread="worker (TID: 7)")["CPU Time"] == 2.5
    assert values(found.rows, thread="moe")["CPU Time:Spin Time"] is None
    assert values(found.rows, thread=None)["CPU Time"] == 4.0
