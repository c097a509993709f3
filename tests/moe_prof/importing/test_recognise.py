"""Several tools in one text, program output around them, and texts of no tool."""

from __future__ import annotations

from pathlib import Path

import pytest

from moe_prof.errors import InputError, UnavailableError
from moe_prof.importing.kinds import KINDS
from moe_prof.importing.load import known_titles
from tests.moe_prof.importing.reading import STAT, read_bytes, read_text, values

BENCH = """\
problem size: num_tokens=1 d_model=256 d_ff=128 num_experts=16 top_k=4 (1000 iterations)
Baseline time:  0.25 s
Optimized time: 0.125 s
Result is correct! (rel RMSE: 1e-08, worst token: 2e-07 at 0)
Speedup: 2
"""
GPROF = """\
Flat profile:

Each sample counts as 0.01 seconds.
  %   cumulative   self              self     total
 time   seconds   seconds    calls  ms/call  ms/call  name
 75.00      0.03     0.03       10     3.00     3.00  gemm
 25.00      0.04     0.01                             main
"""
MCA = """\
Iterations:        100
Instructions:      500
Total Cycles:      250
IPC:               2.00
"""
TASK_CLOCK = "12.50,msec,task-clock,12500000,100.00,0.990,CPUs utilized\n"
PAGE_FAULTS = "77,,page-faults,12500000,100.00,,\n"


def test_a_log_with_five_tools(tmp_path: Path) -> None:
    """Each tool's part is found, and what the program says between them is skipped."""
    log = f"starting up\n{BENCH}{STAT}\nbye 12 now\n{GPROF}\n\n==5== I   refs:  1,000\n{MCA}"
    found = read_text(tmp_path, log)
    by_tool = {row.collector for row in found.rows}

    assert by_tool == {"moe_bench", "perf_stat", "gprof", "cachegrind", "llvm-mca"}
    assert values(found.rows)["cycles"] == 1234567891.0
    assert values(found.rows, collector="gprof")["total seconds"] == 0.04
    assert values(found.rows)["I_refs"] == 1000
    assert values(found.rows)["Total Cycles"] == 250
    assert found.remarks == ()


def test_bench_lines_around_counters(tmp_path: Path) -> None:
    """The lines may stand before, between and behind counters that have no title line."""
    head, tail = BENCH.split("Optimized", 1)
    found = read_text(tmp_path, f"{head}{TASK_CLOCK}Optimized{tail}{PAGE_FAULTS}")
    rows = values(found.rows)

    assert (rows["Optimized time"], rows["task-clock"], rows["page-faults"]) == (0.125, 0.0125, 77)
    assert {row.scenario for row in found.rows if row.collector == "moe_bench"} == {"S3"}


def test_two_perf_runs_are_repetitions(tmp_path: Path) -> None:
    """Two blocks of one log are told apart by their number."""
    found = read_text(tmp_path, STAT + "noise\n" + STAT)

    assert [row.repeat for row in found.rows if row.metric == "cycles"] == [0, 1]


def test_text_and_json_of_perf_in_one_log(tmp_path: Path) -> None:
    """Both forms are read."""
    line = '{"counter-value" : "5.000000", "unit" : "", "event" : "page-faults"}\n'
    found = values(read_text(tmp_path, STAT + "\n" + line).rows)

    assert (found["cycles"], found["page-faults"]) == (1234567891.0, 5)


def test_a_damaged_part_keeps_the_rest(tmp_path: Path) -> None:
    """What one tool's part lacks is a remark with the line, all other rows stay."""
    broken = STAT.replace(
        "2,469,135,782      instructions              #    2.00  insn per cycle           (66.67%)",
        "2,469,1@@@",
    )
    found = read_text(tmp_path, f"{broken}\n{GPROF} 50.00      0.0\n{MCA}")

    assert values(found.rows)["cycles"] == 1234567891.0
    assert values(found.rows)["LLC-load-misses"] is None
    assert any("line 6: " in remark for remark in found.remarks)
    assert any("line 18: " in remark for remark in found.remarks)


@pytest.mark.parametrize(
    "text",
    ["hello world\n", "a,b,c\n1,2,3\n", "{}", "[1, 2]", '{"a": 1}', "Traceback (recent)\n",
     "x" * 100_000, "# just\n# comments\n", "2024-01-01 12:00:00,123 INFO started\n",
     "name value\nfoo 12\nbar 13\n"],
)  # fmt: skip
def test_texts_of_no_tool(text: str, tmp_path: Path) -> None:
    """The message names the file, how it begins, and what could be read."""
    with pytest.raises(InputError) as caught:
        read_text(tmp_path, text)

    message = str(caught.value)
    assert message.startswith(str(tmp_path / "out.txt"))
    assert "no known tool's output" in message
    assert known_titles() in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("noise\nError:\nThe cycles event is not supported.\n", "line 2: the event cycles"),
        ("top down event configuration requires system-wide mode (-a)\n", "line 1: this CPU"),
        ("event syntax error: 'nonsense'\n   \\___ parser error\n", "the event nonsense"),
        (
            "vtune: Error: Cannot enable Hardware Event-Based Sampling.\n",
            "line 1: VTune cannot sample",
        ),
        ("valgrind: failed to start tool 'cachegrind'\n", "line 1: valgrind refused"),
    ],
)
def test_a_tool_that_refused(text: str, words: str, tmp_path: Path) -> None:
    """A log that holds a refusal instead of counters says which and where."""
    with pytest.raises(UnavailableError) as caught:
        read_text(tmp_path, text)

    assert words in str(caught.value)


def test_table_of_kinds() -> None:
    """Every row can be found in some way, and titles tell rows apart."""
    titles = [kind.title for kind in KINDS]

    assert len(set(titles)) == len(titles)
    assert all(kind.starts or kind.whole or kind.fits for kind in KINDS)


def test_compressed_name_in_message(tmp_path: Path) -> None:
    """The file's own name begins the message, whatever it is called."""
    with pytest.raises(InputError, match=r"zz top\.log"):
        read_bytes(tmp_path, b"nothing to see\n", "zz top.log")


@pytest.mark.parametrize(
    "margin", ["> ", "    ", "0: ", "[1,0]<stdout>:"], ids=["mail", "indent", "srun", "mpirun"]
)
def test_margins(margin: str, tmp_path: Path) -> None:
    """What stands before every line of a quoted or labelled log is taken away."""
    text = "".join(f"{margin}{line}".rstrip(" ") + "\n" for line in STAT.splitlines())

    assert values(read_text(tmp_path, text).rows)["cycles"] == 1234567891.0


def test_wrapped_lines(tmp_path: Path) -> None:
    """A narrow window puts marks, metrics and the footer's end on lines of their own."""
    text = (
        STAT.replace("  (83.33%)", "\n      (83.33%)")
        .replace("  insn per cycle", "\ninsn per cycle")
        .replace("2,469,135,782      inst", "2,469,135,782\n      inst")
        .replace("time elapsed", "time\nelapsed")
    )
    found = read_text(tmp_path, text)
    shares = {row.metric: row.mux_pct for row in found.rows}

    assert found.remarks == ()
    assert (shares["cycles"], shares["instructions"]) == (83.33, 66.67)
    assert values(found.rows)["time_elapsed"] == 0.012626262
    assert values(found.rows)["insn per cycle"] == 2.0
