"""Sessions: written through, read back, also when a run ends early."""

import json

import pytest

from moe_prof import load, session
from moe_prof.errors import InputError, MoeProfError
from moe_prof.rows import Row

ROW = Row(collector="test", metric="time", value=1e-3, unit="s", repeat=0)


def make(folder):
    """A session in a folder of its own."""
    return session.create(
        "bench", scenario="S1", shape=(1, 256, 128, 16, 4), variants=("scalar",), seed=0,
        machine={"cpu": "test"}, tools={"perf": "perf version 6.1"}, folder=folder,
    )  # fmt: skip


def test_rows_come_back_with_the_run_id(tmp_path):
    """What was added is read back, stamped."""
    with make(tmp_path / "s") as open_session:
        open_session.add([ROW])
    saved = load(tmp_path / "s")
    assert [r.run_id for r in saved.rows] == [saved.manifest.run_id]
    assert (saved.rows[0].value, saved.rows[0].repeat) == (1e-3, 0)
    assert saved.manifest.state == "complete"


def test_frame_is_tidy(tmp_path):
    """The pandas view has one line a row."""
    with make(tmp_path / "s") as open_session:
        open_session.add([ROW, ROW])
    assert len(load(tmp_path / "s").frame) == 2


def test_interrupt_keeps_rows_and_says_where(tmp_path):
    """Ctrl-C leaves a partial session, and its folder is named."""
    with pytest.raises(KeyboardInterrupt) as caught, make(tmp_path / "s") as open_session:
        open_session.add([ROW])
        raise KeyboardInterrupt
    assert load(tmp_path / "s").manifest.state == "partial"
    assert str(tmp_path / "s") in caught.value.__notes__[0]


def test_error_marks_the_session_failed(tmp_path):
    """Any other error is a failed session."""
    with pytest.raises(MoeProfError), make(tmp_path / "s"):
        raise MoeProfError("broken")
    assert load(tmp_path / "s").manifest.state == "failed"


def test_killed_run_is_read_from_the_journal(tmp_path):
    """Without the final file the journal is read, up to a line cut short."""
    open_session = make(tmp_path / "s")
    open_session.add([ROW])
    with (tmp_path / "s" / "rows.jsonl").open("a") as journal:
        journal.write('{"collector": "te')
    saved = load(tmp_path / "s")
    assert (len(saved.rows), saved.manifest.state) == (1, "running")


def test_existing_session_is_not_overwritten(tmp_path):
    """A folder that holds a session is refused."""
    make(tmp_path / "s")
    with pytest.raises(MoeProfError, match="already holds a session"):
        make(tmp_path / "s")


def test_unwritable_folder_is_one_clear_error(tmp_path):
    """A path below a file cannot be made."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(MoeProfError, match="cannot write the session folder"):
        make(tmp_path / "file" / "s")


def test_default_folder_follows_the_variable(tmp_path, monkeypatch):
    """MOE_PROF_SESSIONS names where sessions go."""
    monkeypatch.setenv(session.FOLDER_VARIABLE, str(tmp_path / "all"))
    assert make(None).folder.parent == tmp_path / "all"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "has no manifest.json"),
        ("{", "cannot be read"),
        ("[]", "not a moe_prof manifest"),
        (json.dumps({"schema": 99}), "schema 99"),
        (json.dumps({"schema": 1}), "lacks or adds fields"),
    ],
)
def test_load_refuses(tmp_path, content, words):
    """Anything that is no session is named as such."""
    if content is not None:
        (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(InputError) as caught:
        load(tmp_path)
    assert words in str(caught.value)


def test_environment_that_matters_is_recorded(tmp_path, monkeypatch):
    """Variables that change the speed are kept, others are not."""
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    environment = make(tmp_path / "s").manifest.environment
    assert environment["OMP_NUM_THREADS"] == "7"
    assert "HOME" not in environment
