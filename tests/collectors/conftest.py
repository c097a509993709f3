"""Fixtures of the collectors' tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

PERF_FOLDER = Path(__file__).parents[1] / "fixtures" / "perf"


@pytest.fixture
def perf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A perf that replays the slot counts of a Sapphire Rapids."""
    program = tmp_path / "perf"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {PERF_FOLDER / "fake_perf.py"} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("FAKE_PERF_REPORT", str(PERF_FOLDER / "spr_slots.csv"))
    monkeypatch.delenv("FAKE_PERF", raising=False)
    return str(program)
