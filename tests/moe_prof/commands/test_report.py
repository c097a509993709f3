"""``report`` as a command: the file, its default name, and what it refuses."""

from __future__ import annotations

import json

import pytest

from moe_prof.report import SECTIONS
from tests.moe_prof.commands.running import main
from tests.moe_prof.report import made_sessions as made
from tests.moe_prof.report.html_reading import broken_rules


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A session of ``bench``, and the current folder a new one."""
    monkeypatch.chdir(tmp_path)
    return made.save(tmp_path / "session", "bench", made.timing_rows())


def test_page_is_written(folder, tmp_path):
    """Where -o says; stdout names it, its size, and what was left out."""
    path = tmp_path / "out.html"
    ran = main("report", folder, "-o", path)

    assert (ran.code, ran.complaints) == (0, [])
    assert broken_rules(path.read_text(encoding="utf-8")) == []
    assert ran.out.startswith(f"report: {path} (")
    assert "left out: Flame graph: no session keeps call stacks" in ran.out


def test_default_is_a_file_in_reports(folder, tmp_path):
    """Named by the session, so that the same report replaces itself."""
    main("report", folder)
    main("report", folder)
    (path,) = (tmp_path / "reports").iterdir()
    assert path.name.startswith("S3-bench-")
    assert path.suffix == ".html"


def test_json_has_the_rows(folder, tmp_path):
    """Those of all sessions, and the machine of the first."""
    ran = main("report", folder, "-o", tmp_path / "a.html", "--format", "json")
    document = json.loads(ran.out)
    times = [r["value"] for r in document["rows"] if (r["variant"], r["n"]) == ("packed", 9)]
    assert (times, document["machine"]["model_name"]) == ([1e-4], "Test CPU")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("page.pdf", "end its name in .html"),
        ("page", "end its name in .html"),
        ("missing/page.html", "there is no folder"),
        ("folder.html", "this is a folder"),
    ],
)
def test_wrong_file_names(folder, tmp_path, name, words):
    """Refused before any work, with what to do instead."""
    (tmp_path / "folder.html").mkdir()
    ran = main("report", folder, "-o", name)
    assert ran.code == 2
    assert len(ran.complaints) == 1
    assert words in ran.complaints[0]


def test_no_session(folder, tmp_path):
    """A folder that is none, and one that does not exist."""
    for name in (tmp_path, tmp_path / "nowhere"):
        ran = main("report", folder, name, "-o", "a.html")
        assert ran.code == 1
        assert "is not a session" in ran.complaints[0]
    assert not (tmp_path / "a.html").exists()


def test_disk_full_leaves_no_half_page(folder, tmp_path, monkeypatch):
    """The page of before stays as it was."""
    path = tmp_path / "a.html"
    path.write_text("before")

    def full(self, *args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(path), "write_text", full)
    ran = main("report", folder, "-o", path)
    assert ran.code == 1
    assert "No space left on device" in ran.complaints[0]
    assert path.read_text() == "before"
    assert [p.name for p in tmp_path.iterdir() if p.suffix == ".tmp"] == []


def test_too_large_a_page_is_told(folder, tmp_path, monkeypatch):
    """With the remedy."""
    monkeypatch.setattr("moe_prof.commands.report.HEAVY_BYTES", 1000)
    ran = main("report", folder, "-o", tmp_path / "a.html")
    assert "fewer sessions" in ran.err


def test_every_section_is_in_the_table_once():
    """Names are identifiers of the page."""
    assert len({section.name for section in SECTIONS}) == len(SECTIONS)
