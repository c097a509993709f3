"""The command line's frame: forms of output, errors and exit codes."""

import argparse
import json

import pytest
from rich.text import Text

from moe_prof import cli
from moe_prof.commands.base import Result
from moe_prof.commands.options import add_output, duration_s, split_output
from moe_prof.errors import UnavailableError, UsageError, WorkloadError
from moe_prof.rows import Row, unavailable

ROWS = (
    Row(collector="test", metric="time", value=1e-3, unit="s"),
    unavailable("IPC", "1", "no PMU", collector="test"),
)


class Fake:
    """try something. Used by the tests."""

    name = "fake"

    def __init__(self, outcome):
        self.outcome = outcome

    def configure(self, parser):
        """Only --output."""
        add_output(parser)

    def run(self, args, progress):
        """Return or raise what the test wants."""
        split_output(args)
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome


@pytest.fixture
def run(monkeypatch):
    """Run the fake command with an outcome."""

    def go(outcome, *argv):
        monkeypatch.setattr(cli, "COMMANDS", (Fake(outcome),))
        return cli.main(["fake", *argv])

    return go


RESULT = Result(rows=ROWS, body=Text("hello"), machine={"cpu": "test"})


def test_text_goes_to_stdout(run, capsys):
    """The body is printed, nothing else."""
    assert run(RESULT) == 0
    assert capsys.readouterr() == ("hello\n", "")


def test_json_has_nulls_for_missing(run, capsys):
    """The JSON document of the contract."""
    assert run(RESULT, "--format", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["session"]) == (1, None)
    assert [row["value"] for row in document["rows"]] == [1e-3, None]


def test_csv_has_a_header_and_empty_cells(run, capsys):
    """Missing values are empty cells."""
    assert run(RESULT, "--format", "csv") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("run_id,scenario,variant")
    assert len(lines) == 3
    assert ",IPC,,,1," in lines[2]


def test_output_file_replaces_stdout(run, capsys, tmp_path):
    """A name with a known ending is a file for the result."""
    target = tmp_path / "r.json"
    assert run(RESULT, "--format", "json", "--output", str(target)) == 0
    assert capsys.readouterr().out == ""
    assert json.loads(target.read_text())["schema"] == 1


@pytest.mark.parametrize(
    ("name", "start"),
    [("r.json", '{\n "schema": 1'), ("r.CSV", "run_id,scenario"), ("r.txt", "hello")],
)
def test_the_name_of_the_file_tells_its_form(run, tmp_path, name, start):
    """Without --format nobody gets text in a .json."""
    assert run(RESULT, "--output", str(tmp_path / name)) == 0
    assert (tmp_path / name).read_text().startswith(start)


def test_name_and_format_that_contradict_are_refused(run, capsys, tmp_path):
    """Exit code 2 before anything runs, and no file."""
    assert run(RESULT, "--format", "text", "--output", str(tmp_path / "r.json")) == 2
    assert "says json, --format says text" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("error", "code"),
    [(UsageError("a"), 2), (UnavailableError("b"), 3), (WorkloadError("c"), 6)],
)
def test_errors_become_one_line_and_a_code(run, capsys, error, code):
    """Each error class has its exit code."""
    assert run(error) == code
    assert capsys.readouterr().err == f"moe-prof: {error}\n"


def test_interrupt_is_one_line(run, capsys):
    """Ctrl-C ends as shells expect, and says where the partial data is."""
    error = KeyboardInterrupt()
    error.add_note("what was measured so far is in X")
    assert run(error) == 130
    assert capsys.readouterr().err.splitlines() == [
        "moe-prof: interrupted", "moe-prof: what was measured so far is in X",
    ]  # fmt: skip


def test_memory_that_runs_out_is_one_line(run, capsys):
    """With what to do about it."""
    assert run(MemoryError()) == 1
    assert capsys.readouterr().err == (
        "moe-prof: out of memory; use smaller sizes, or raise the limit (ulimit -v)\n"
    )


def test_answer_with_a_code(run, capsys):
    """A result may carry an exit code and its reason."""
    result = Result(rows=ROWS, body=Text("x"), machine={}, exit_code=6, errors=("v is wrong",))
    assert run(result) == 6
    assert capsys.readouterr().err == "moe-prof: v is wrong\n"


@pytest.mark.parametrize("argv", [["nonsense"], ["fake", "--nope"], ["fake", "--format", "xml"]])
def test_usage_errors_are_code_two(monkeypatch, capsys, argv):
    """Unknown commands and options never give a traceback."""
    monkeypatch.setattr(cli, "COMMANDS", (Fake(RESULT),))
    assert cli.main(argv) == 2
    assert capsys.readouterr().err.startswith("moe-prof: ")


def test_no_command_prints_help(capsys):
    """Bare moe-prof helps."""
    assert cli.main([]) == 0
    assert "COMMAND" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90.0), ("90s", 90.0), ("1.5m", 90.0), ("1h", 3600.0)]
)
def test_durations(text, seconds):
    """Seconds, minutes and hours."""
    assert duration_s(text) == seconds


@pytest.mark.parametrize("text", ["0", "-1", "fast", "1d", "", "nan", "inf"])
def test_bad_durations(text):
    """Anything else is refused."""
    with pytest.raises(argparse.ArgumentTypeError):
        duration_s(text)


def test_output_file_in_a_missing_folder(run, capsys, tmp_path):
    """The folder is named before anything is measured."""
    assert run(RESULT, "--output", str(tmp_path / "no" / "r.json")) == 2
    assert "there is no folder" in capsys.readouterr().err
