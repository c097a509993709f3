"""Versions of tools: what they say, and silence where there is none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from moe_prof import toolversions


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the whole PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def install(folder: Path, name: str, script: str) -> None:
    """A program of that name."""
    program = folder / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def test_first_line_with_a_number_is_kept(on_path: Path) -> None:
    """llvm-mca begins with a line about LLVM."""
    install(on_path, "llvm-mca", "echo 'LLVM (http://llvm.org/):'; echo '  LLVM version 14.0.6'")

    assert toolversions.read()["llvm-mca"] == "LLVM version 14.0.6"


def test_what_is_not_there_is_left_out(on_path: Path) -> None:
    """No perf, no valgrind: no entry."""
    found = toolversions.read()

    assert [name for name in toolversions.PROGRAMS if name in found] == []


@pytest.mark.parametrize("script", ["exit 1", "echo no number here"])
def test_what_tells_no_version_is_left_out(on_path: Path, script: str) -> None:
    """A wrapper without the program behind it says nothing."""
    install(on_path, "perf", script)

    assert "perf" not in toolversions.read()


def test_packages_are_listed() -> None:
    """Python packages that compute or time."""
    assert toolversions.read()["numpy"] == np.__version__
