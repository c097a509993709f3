"""``%moe_prof`` in IPython: the command's output, and its session as the value."""

import atexit
import shutil

import pytest

from moe_prof import load_ipython_extension, magic

IPython = pytest.importorskip("IPython", reason="IPython is not installed")


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """A shell with the magic loaded; its history goes into memory."""
    patch = pytest.MonkeyPatch()
    patch.setenv("IPYTHONDIR", str(tmp_path_factory.mktemp("ipython")))
    made = IPython.core.interactiveshell.InteractiveShell()
    load_ipython_extension(made)
    yield made
    made.atexit_operations()
    atexit.unregister(made.atexit_operations)
    patch.undo()


def test_session_is_the_value(shell, tmp_path, capfd):
    """What a command writes can be used at once, and prints in one line."""
    text = tmp_path / "a file.txt"
    shutil.copy("tests/fixtures/corpus/A19.txt", text)
    value = shell.run_line_magic("moe_prof", f"import '{text}' --output {tmp_path / 'kept'}")
    assert value.folder == tmp_path / "kept"
    assert set(value.frame["metric"]) >= {"task-clock:u", "page-faults:u"}
    assert repr(value).startswith("<session kept: import")
    assert "page-faults:u" in capfd.readouterr().out


def test_error_is_one_line(shell, capsys):
    """No traceback, no value."""
    assert shell.run_line_magic("moe_prof", "topdown S9") is None
    told = capsys.readouterr()
    assert told.err.startswith("moe-prof: ")
    assert told.err.count("\n") == 1


def test_open_quote_is_named(capsys):
    """A line that no shell would take."""
    assert magic.run("topdown 'S3") is None
    assert "No closing quotation" in capsys.readouterr().err
