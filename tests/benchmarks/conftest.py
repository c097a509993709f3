"""Running a benchmark on a tiny layer, in-process, and reading its JSON file."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.program import Program, main

Run = Callable[[Program, Sequence[str]], dict[str, Any]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a program with ``--json`` and ``--plot``; gives the document."""

    def run_program(program: Program, argv: Sequence[str]) -> dict[str, Any]:
        document, plot = tmp_path / "out.json", tmp_path / "out.png"
        code = main(program, [*argv, "--json", str(document), "--plot", str(plot)])
        assert (code, plot.read_bytes()[:4]) == (0, b"\x89PNG")
        found: dict[str, Any] = json.loads(document.read_text())
        return found

    return run_program
