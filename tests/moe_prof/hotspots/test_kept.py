"""Stacks kept in sessions and read back."""

from __future__ import annotations

import pytest

from moe_prof.hotspots.kept import keep_profile, read_profiles
from tests.moe_prof.hotspots.stack_making import profile, stack


@pytest.mark.parametrize("variant", ["packed", "./libs/mine.so:fast", "a b%2F", "ä;\n"])
def test_variant_is_read_back(tmp_path, variant):
    """Whatever its name, in a file of this folder."""
    kept = profile(stack("main", "f", weight=2.0, thread="1"), stack("main", weight=1.0))
    path = keep_profile(tmp_path, variant, kept)
    ((name, found),) = read_profiles(tmp_path, [variant])

    assert path.parent == tmp_path / "stacks"
    assert name == variant
    assert {(tuple(f.function for f in s.frames), s.weight, s.thread) for s in found.stacks} == {
        (("main", "f"), 2e6, "1"), (("main",), 1e6, ""),
    }  # fmt: skip


def test_exported_file_is_found(tmp_path):
    """Sessions of ``--export folded`` from before stacks were kept."""
    (tmp_path / "packed.folded").write_text("main;f 12\n")
    ((name, found),) = read_profiles(tmp_path, ["packed"])
    assert (name, found.total) == ("packed", 12.0)


def test_imported_folded_file_is_found(tmp_path):
    """By its content alone; a report of another tool is none."""
    raw = tmp_path / "raw"
    raw.mkdir()
    (raw / "000-stacks.txt").write_text("main;f 12\nmain;g 3\n")
    (raw / "001-perf.txt").write_text("Performance counter stats for 'x':\n  12 cycles\n")
    assert [(name, p.total) for name, p in read_profiles(tmp_path, [])] == [("stacks.txt", 15.0)]


def test_damaged_files_are_passed_over(tmp_path):
    """Empty ones and other encodings."""
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / "a.folded").write_text("")
    (tmp_path / "stacks" / "b.folded").write_bytes(b"\xff\xfe;x 1\n")
    assert list(read_profiles(tmp_path, ["a", "b"])) == []
