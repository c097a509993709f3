"""``import`` as a command: labels, sessions, repetitions, views, exit codes."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path

import pytest

from moe_prof import session as sessions
from moe_prof.analysis.query import RowIndex
from moe_prof.importing import keep as keeping
from tests.moe_prof.commands.running import main
from tests.moe_prof.importing.reading import STAT

GPROF = """\
Flat profile:

Each sample counts as 0.01 seconds.
  %   cumulative   self              self     total
 time   seconds   seconds    calls  ms/call  ms/call  name
 75.00      0.03     0.03       10     3.00     3.00  gemm(std::vector<int, std::allocator<int> >)
"""


@pytest.fixture(autouse=True)
def _sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions go into a temporary folder."""
    monkeypatch.setenv("MOE_PROF_SESSIONS", str(tmp_path / "sessions"))


@pytest.fixture
def stat(tmp_path: Path) -> Path:
    """A recorded output of perf stat."""
    path = tmp_path / "node7.txt"
    path.write_text(STAT)
    return path


def test_labels_reach_rows_and_session(stat: Path) -> None:
    """Scenario and variant are on every row; the label is a note of the session."""
    ran = main(
        "import", stat, "--scenario", "s3", "--variant", "packed", "--label", "june",
        "--format", "json",
    )  # fmt: skip
    saved = sessions.load(ran.document["session"])

    assert {(row.scenario, row.variant) for row in saved.rows} == {("S3", "packed")}
    assert (saved.manifest.scenario, saved.manifest.variants) == ("S3", ("packed",))
    assert saved.manifest.argv[:4] == ("import", str(stat), "--scenario", "s3")
    assert "label: june" in saved.manifest.notes
    assert (saved.folder / "raw" / "000-node7.txt").read_text() == STAT
    assert RowIndex(saved.rows).value("packed", "IPC") == pytest.approx(2.0)


def test_variant_is_the_files_name_by_default(stat: Path) -> None:
    """Two files without labels are two variants of one session."""
    other = stat.with_name("node8.log")
    other.write_text(STAT.replace("1,234,567,891", "1,000,000,000"))
    ran = main("import", stat, other, "--format", "json")

    assert (ran.rows["node7", "cycles"]["value"], ran.rows["node8", "cycles"]["value"]) == (
        1234567891.0, 1e9,
    )  # fmt: skip


def test_files_of_one_variant_are_repetitions(stat: Path) -> None:
    """They are numbered, and a row without number has their mean and deviation."""
    other = stat.with_name("again.txt")
    other.write_text(STAT.replace("1,234,567,891", "1,234,567,893"))
    ran = main("import", stat, other, "--variant", "mine", "--format", "json")
    mean = ran.rows["mine", "cycles"]

    assert (mean["value"], mean["stddev"], mean["n"], mean["status"]) == (
        1234567892.0, pytest.approx(2**0.5), 2, "multiplexed",
    )  # fmt: skip
    assert sorted(
        row["repeat"] for row in ran.document["rows"] if row["metric"] == "cycles"
        and row["repeat"] is not None
    ) == [0, 1]  # fmt: skip


def test_missing_and_impossible_values_stay_what_they_are(stat: Path) -> None:
    """A count that was not supported is null with its status and reason, in every format."""
    (row,) = [
        row
        for row in main("import", stat, "--format", "json").document["rows"]
        if row["metric"] == "LLC-load-misses"
    ]
    (cells,) = [
        cells
        for cells in csv.DictReader(io.StringIO(main("import", stat, "--format", "csv").out))
        if cells["metric"] == "LLC-load-misses"
    ]

    assert (row["value"], row["status"], row["provenance"]) == (
        None, "not_supported", "unavailable",
    )  # fmt: skip
    assert (cells["value"], cells["status"]) == ("", "not_supported")
    assert "does not count it" in row["source"]


@pytest.mark.parametrize("columns", [100, 80, 60])
def test_text_keeps_columns_and_units(
    stat: Path, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every column and every unit is there, and no line is longer than the page."""
    monkeypatch.setenv("COLUMNS", str(columns))
    stat.write_text(STAT + "\n" + GPROF)
    out = main("import", stat).out

    assert max(map(len, out.splitlines())) <= columns
    for word in ("metric", "value", "where", "remark", "12.5 ms", "1,234,567,891", "function",
                 "counted 83.33 % of the time", "not supported", "75.0 %", "30.0 ms"):  # fmt: skip
        assert word in " ".join(out.split()), word


def test_stdin(stat: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dash reads stdin, whose copy is kept in the session; twice makes no sense."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(STAT.encode())))
    ran = main("import", "-", "--format", "json")
    twice = main("import", "-", "-")

    assert ran.rows["stdin", "cycles"]["value"] == 1234567891.0
    assert (Path(ran.document["session"]) / "raw" / "000-stdin").read_text() == STAT
    assert (twice.code, len(twice.complaints)) == (2, 1)


def test_one_bad_file_among_good_ones(stat: Path) -> None:
    """The good one is imported, the bad one is named, and the exit code says so."""
    bad = stat.with_name("bad.bin")
    bad.write_bytes(b"\x7fELF\x02")
    ran = main("import", bad, stat, "--format", "json")

    assert ran.code == 1
    assert ran.rows["node7", "cycles"]["value"] == 1234567891.0
    assert [str(bad) in line for line in ran.complaints] == [True]


def test_only_bad_files_leave_no_session(tmp_path: Path) -> None:
    """Each gets its line; nothing is printed on stdout and nothing written."""
    bad = tmp_path / "bad.txt"
    bad.write_text("hello\n")
    ran = main("import", bad, tmp_path / "none.txt")

    assert (ran.code, ran.out, len(ran.complaints)) == (1, "", 2)
    assert not (tmp_path / "sessions").exists()


def test_refusal_of_a_tool_is_exit_3(tmp_path: Path) -> None:
    """The data asked for could not be had where the file comes from."""
    log = tmp_path / "perf.log"
    log.write_text("Error:\nThe cycles event is not supported.\n")
    ran = main("import", log)

    assert (ran.code, len(ran.complaints)) == (3, 1)
    assert f"{log}: line 1: the event cycles cannot be counted" in ran.complaints[0]


def test_nothing_counted_is_an_answer(tmp_path: Path) -> None:
    """An output of perf without any value has no rows, and a note says why."""
    path = tmp_path / "empty.csv"
    path.write_text("\n,,,,\n")
    ran = main("import", path, "--format", "json")

    assert (ran.code, ran.document["rows"]) == (0, [])
    assert "none of its events could be counted" in ran.err


def test_remarks_are_on_stderr_and_in_the_session(stat: Path) -> None:
    """A damaged line is named with file and line, the rows around it stay."""
    stat.write_text(STAT.replace("   <not supported>      LLC-load-misses", "   12,3@@"))
    ran = main("import", stat, "--format", "json")
    notes = sessions.load(ran.document["session"]).manifest.notes

    assert f"moe-prof: note: {stat}: line 7: not a row of perf stat: '12,3@@'" in ran.err
    assert any("line 7" in note for note in notes)
    assert ran.code == 0


def test_huge_files_are_not_copied(stat: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The session keeps where the file is and its hash instead."""
    monkeypatch.setattr(keeping, "MAX_COPY_BYTES", 10)
    ran = main("import", stat, "--format", "json")
    raw = Path(ran.document["session"]) / "raw"
    origin = json.loads((raw / "000-node7.txt.origin.json").read_text())

    assert [path.name for path in raw.iterdir()] == ["000-node7.txt.origin.json"]
    assert (origin["path"], origin["size_bytes"], len(origin["sha256"])) == (
        str(stat), len(STAT), 64,
    )  # fmt: skip
    assert "too much for a copy" in ran.err


@pytest.mark.parametrize("option", [("--scenario", "S9"), ("--scenario", "1,2"), ("--nonsense",)])
def test_wrong_options(stat: Path, option: tuple[str, ...]) -> None:
    """One line, exit code 2."""
    ran = main("import", stat, *option)

    assert (ran.code, len(ran.complaints)) == (2, 1)


def test_output_folder_and_file(stat: Path, tmp_path: Path) -> None:
    """--output names the session's folder, or the result's file."""
    folder, result = tmp_path / "mine", tmp_path / "rows.json"
    main("import", stat, "--output", folder)
    ran = main("import", stat, "--format", "json", "--output", result)

    assert sessions.load(folder).manifest.command == "import"
    assert json.loads(result.read_text())["rows"]
    assert ran.out == ""
