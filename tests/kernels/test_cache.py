"""The build cache forgets what nobody uses, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from moe_prof.kernels import cache

DAY_S = 24 * 3600.0
ROOT = Path(__file__).parents[2]
USER = """
from pathlib import Path
from moe_prof.kernels import cache
cache.use(Path({folder!r}))
print("used", flush=True)
input()
"""


@pytest.fixture
def entry(tmp_path):
    """Make a build of 1000 bytes that was last used so many days ago."""

    def make(number, days):
        folder = tmp_path / f"release-{number:016x}"
        folder.mkdir()
        (folder / "lib.so").write_bytes(bytes(1000))
        folder.with_name(f"{folder.name}.log").write_text("log")
        mark = folder.with_name(f"{folder.name}.used")
        mark.touch()
        os.utime(mark, (time.time() - days * DAY_S,) * 2)
        return folder

    return make


def test_what_nobody_used_for_a_month_goes(entry, tmp_path):
    """With its log; younger ones stay."""
    old, young = entry(1, 31), entry(2, 29)
    assert cache.prune(tmp_path) == [old]
    assert (old.exists(), old.with_name(f"{old.name}.log").exists()) == (False, False)
    assert young.exists()


def test_beyond_the_total_size_the_oldest_go_first(entry, tmp_path):
    """As many as it takes."""
    young, oldest, old = entry(1, 1), entry(2, 9), entry(3, 5)
    assert cache.prune(tmp_path, max_bytes=1500) == [oldest, old]
    assert young.exists()


def test_what_is_in_use_stays(entry, tmp_path):
    """However old and large; by another process, and after its end no longer."""
    folder = entry(1, 99)
    user = subprocess.Popen(
        [sys.executable, "-c", USER.format(folder=str(folder))], cwd=ROOT, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    with user:
        assert user.stdout.readline() == "used\n"
        assert cache.prune(tmp_path, max_age_s=-1.0, max_bytes=0) == []
        user.communicate("end\n")
    assert cache.prune(tmp_path, max_age_s=-1.0) == [folder]


def test_what_this_process_uses_stays(entry, tmp_path):
    """Its own mark counts as anybody's, and is fresh."""
    folder = entry(1, 99)
    cache.use(folder)
    assert cache.prune(tmp_path, max_bytes=0) == []
    assert folder.exists()
    assert time.time() - folder.with_name(f"{folder.name}.used").stat().st_mtime < DAY_S


def test_what_is_being_made_stays(entry, tmp_path):
    """Its maker holds the lock."""
    folder = entry(1, 99)
    with cache.locked(folder.with_name(f"{folder.name}.lock")):
        assert cache.prune(tmp_path) == []


def test_builds_without_a_mark_count_by_their_folder(entry, tmp_path):
    """Those of former versions."""
    folder = entry(1, 0)
    folder.with_name(f"{folder.name}.used").unlink()
    os.utime(folder, (time.time() - 31 * DAY_S,) * 2)
    assert cache.prune(tmp_path) == [folder]


def test_other_files_are_nobodys_business(tmp_path):
    """Folders of other names and links stay."""
    (tmp_path / "mine").mkdir()
    (tmp_path / f"release-{1:016x}").symlink_to(tmp_path / "mine")
    assert cache.prune(tmp_path, max_age_s=-1.0, max_bytes=0) == []


def test_a_folder_that_cannot_be_written_keeps_no_marks(tmp_path):
    """Using a build never fails for its mark."""
    (tmp_path / "file").touch()
    cache.use(tmp_path / "file" / f"release-{1:016x}")
