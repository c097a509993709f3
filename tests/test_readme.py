"""The README names what there is: columns, variables, commands, options of the build."""

from __future__ import annotations

from pathlib import Path

import pytest

from moe_prof.commands import COMMANDS
from moe_prof.kernels import build
from moe_prof.rows import COLUMNS, PROVENANCES
from moe_prof.session import FOLDER_VARIABLE

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
TABLE = README.partition("## Sessions")[2].partition("## Exit codes")[0]


def test_every_column_of_the_frame_is_explained():
    """In the order of the frame, each in the first cell of a row."""
    cells = [line.split("|")[1] for line in TABLE.splitlines() if line.startswith("| ")]
    words = [word.strip(" `") for cell in cells for word in cell.split(",")]
    assert [word for word in words if word in COLUMNS] == list(COLUMNS)


@pytest.mark.parametrize("provenance", PROVENANCES)
def test_every_provenance_is_named(provenance):
    """Readers of the frame meet all of them."""
    assert f"`{provenance}`" in TABLE


def test_variables_are_those_that_are_read(monkeypatch, tmp_path):
    """The cache's variable is the one that the build follows."""
    assert f"`{FOLDER_VARIABLE}`" in TABLE
    assert "`MOE_PROF_CACHE`" in TABLE
    monkeypatch.setenv("MOE_PROF_CACHE", str(tmp_path))
    assert build.cache_root() == tmp_path


def test_every_command_is_listed():
    """With its example."""
    assert [c.name for c in COMMANDS if f"\nmoe-prof {c.name}" not in README] == []
