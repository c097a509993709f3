"""Sessions: written through, read back, also when a run ends early."""

import dataclasses
import json
from pathlib import Path

import pytest

from moe_prof import load, session
from moe_prof.errors import InputError, MoeProfError
from moe_prof.rows import Row

ROW = Row(collector="test", metric="time", value=1e-3, unit="s", repeat=0)


def make(folder):
    """A session in a folder of its own."""
    return session.create(
        "bench", scenario="S1", shape=(1, 256, 128, 16, 4), variants=("scalar",), seed=0,
        machine={"cpu": "test"}, tools={"perf": "perf version 6.1"}, argv=("bench", "S1"),
        folder=folder,
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


def test_what_is_no_folder(tmp_path):
    """A file, and a name of nothing."""
    file = tmp_path / "file"
    file.write_text("")
    for path, words in ((file, "it is a file"), (tmp_path / "none", "there is no such folder")):
        with pytest.raises(InputError, match=words):
            load(path)


def test_environment_that_matters_is_recorded(tmp_path, monkeypatch):
    """Variables that change the speed are kept, others are not."""
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    environment = make(tmp_path / "s").manifest.environment
    assert environment["OMP_NUM_THREADS"] == "7"
    assert "HOME" not in environment


@pytest.fixture
def full(monkeypatch):
    """From now on the disk takes nothing, as on a full device."""

    def fill():
        def refuse(*args, **kwargs):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(Path, "open", refuse)
        monkeypatch.setattr(Path, "write_text", refuse)
        monkeypatch.setattr(session, "_write_table", refuse)

    return fill


def test_full_disk_keeps_the_rows_in_memory(tmp_path, full):
    """What was measured can still be printed; the trouble is told once, with the cause."""
    with make(tmp_path / "s") as opened:
        full()
        opened.add([ROW])
        opened.note("x")
    assert len(opened.rows) == 1
    assert opened.trouble == (
        f"the session in {tmp_path / 's'} is incomplete: No space left on device; free some "
        "space, or name another folder with --output"
    )


def test_full_disk_is_told_with_another_error(tmp_path, full):
    """An error that ends the run is not hidden by the disk's."""
    with pytest.raises(MoeProfError, match="broken") as caught, make(tmp_path / "s") as opened:
        full()
        opened.add([ROW])
        raise MoeProfError("broken")
    assert caught.value.__notes__ == [opened.trouble]


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (MemoryError(), "out of memory"),
        (
            ImportError("Unable to find a usable engine\n - pyarrow"),
            "Unable to find a usable engine",
        ),
    ],
)
def test_a_table_that_cannot_be_written(tmp_path, monkeypatch, error, why):
    """Too little memory for pandas, or no pyarrow on this board: the rows are in the journal."""

    def fail(path, rows):
        raise error

    monkeypatch.setattr(session, "_write_table", fail)
    with make(tmp_path / "s") as opened:
        opened.add([ROW])
    assert opened.trouble == (
        f"the session in {tmp_path / 's'} is incomplete: {why}; rows.jsonl in it holds the rows"
    )
    saved = load(tmp_path / "s")
    assert (saved.manifest.state, len(saved.rows)) == ("complete", 1)


def test_a_good_disk_is_no_trouble(tmp_path):
    """Nothing is told where all was written."""
    with make(tmp_path / "s") as opened:
        opened.add([ROW])
    assert opened.trouble == ""


def test_interrupt_while_the_table_is_written(tmp_path, monkeypatch):
    """The session is partial then, and its rows are in the journal."""

    def stop(path, rows):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught, make(tmp_path / "s") as opened:
        opened.add([ROW])
        monkeypatch.setattr(session, "_write_table", stop)
    assert str(tmp_path / "s") in caught.value.__notes__[0]
    saved = load(tmp_path / "s")
    assert (saved.manifest.state, len(saved.rows)) == ("partial", 1)


def test_a_table_that_was_cut_off_is_read_from_the_journal(tmp_path):
    """As after a crash of the machine."""
    with make(tmp_path / "s") as opened:
        opened.add([ROW])
    table = tmp_path / "s" / "metrics.parquet"
    table.write_bytes(table.read_bytes()[:40])
    saved = load(tmp_path / "s")
    assert len(saved.rows) == 1
    (remark,) = saved.remarks
    assert remark.startswith(f"{table} cannot be read (")
    assert remark.endswith("); its rows are taken from rows.jsonl")


def test_rows_that_are_gone_are_told(tmp_path):
    """A journal that is cut off, and a complete run without its table."""
    with make(tmp_path / "s") as opened:
        opened.add([ROW, ROW])
    (tmp_path / "s" / "metrics.parquet").unlink()
    (remark,) = load(tmp_path / "s").remarks
    assert "metrics.parquet is missing though the run is complete" in remark
    journal = tmp_path / "s" / "rows.jsonl"
    journal.write_bytes(journal.read_bytes()[:-20])
    saved = load(tmp_path / "s")
    assert len(saved.rows) == 1
    assert "rows.jsonl is cut off; the 1 rows before that are read" in saved.remarks[0]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("manifest.json", b"\xff\xfe"),
        ("manifest.json", b"[]"),
        ("manifest.json", b'{"schema": 1}'),
        ("rows.jsonl", b'{"metric": "time"}\n'),
        ("rows.jsonl", b"[]\n"),
    ],
)
def test_damaged_files_are_one_clear_error(tmp_path, name, content):
    """The file is named."""
    with make(tmp_path / "s"):
        pass
    (tmp_path / "s" / "metrics.parquet").unlink()
    (tmp_path / "s" / name).write_bytes(content)
    with pytest.raises(InputError, match=name):
        load(tmp_path / "s")


def test_words_that_are_no_utf8_can_be_kept(tmp_path):
    """A library's path may be any bytes; the row is kept and read back."""
    with make(tmp_path / "s") as opened:
        opened.add([dataclasses.replace(ROW, variant="./\udcff.so")])
    assert opened.trouble == ""
    assert len(load(tmp_path / "s").rows) == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [("run_id", 3), ("started", None), ("scenario", []), ("shape", ["a"]), ("shape", 3),
     ("argv", "bench"), ("notes", [1]), ("machine", None), ("tools", []), ("seed", "0")],
)  # fmt: skip
def test_a_damaged_manifest_is_named(tmp_path, field, value):
    """The field of another type, before anything stumbles over it."""
    with make(tmp_path / "s"):
        pass
    path = tmp_path / "s" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {field: value}))
    with pytest.raises(InputError, match=f"is damaged: {field} "):
        session.load(tmp_path / "s")


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [("variant", None, "variant is None, not a text"), ("source", 1, "source is 1, not a text"),
     ("phase", [], "not a text"), ("value", "1", "must be real number"),
     ("n", {}, "n is {}, not a number")],
)  # fmt: skip
def test_a_damaged_row_is_refused(tmp_path, field, value, words):
    """A field of another type, from the journal."""
    with make(tmp_path / "s") as opened:
        opened.add([ROW])
    (tmp_path / "s" / "metrics.parquet").unlink()
    path = tmp_path / "s" / "rows.jsonl"
    path.write_text(json.dumps(json.loads(path.read_text()) | {field: value}))
    with pytest.raises(InputError, match=words):
        session.load(tmp_path / "s")
