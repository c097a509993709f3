"""Fixtures for tests of the package: recorded file trees of other machines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

MACHINES = Path(__file__).parent.parent / "fixtures" / "machine"

MachineTree = Callable[..., Path]


@pytest.fixture
def machine_tree(tmp_path: Path) -> MachineTree:
    """Unpack ``tests/fixtures/machine/<name>.txt`` into a folder; keywords add or replace files.

    In the text a line ``=== path`` begins a file. A replacement of None removes the file.
    """

    def unpack(name: str, changes: dict[str, str | None] | None = None) -> Path:
        files: dict[str, str | None] = {}
        for part in ("\n" + (MACHINES / f"{name}.txt").read_text()).split("\n=== ")[1:]:
            path, _, text = part.partition("\n")
            files[path] = text
        root = tmp_path / name
        for path, content in (files | (changes or {})).items():
            if content is not None:
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(content)
        return root

    return unpack
