"""The notebooks run from top to bottom on recorded sessions, and are committed without outputs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
MOST_LINES = 20
"""Of a code cell: logic belongs into the package."""


def cells(path: Path, kind: str) -> list[dict]:
    """The cells of a kind."""
    return [c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == kind]


def test_all_notebooks_are_here():
    """Those that the README of the folder names."""
    readme = (ROOT / "notebooks" / "README.md").read_text()
    assert [p.stem for p in NOTEBOOKS] == ["accuracy", "counters", "stages", "topdown"]
    assert [p.name for p in NOTEBOOKS if p.name not in readme] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_committed_without_outputs(path):
    """Outputs would be noise in every change, and pictures heavy."""
    assert [c["outputs"] for c in cells(path, "code") if c["outputs"]] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_thin(path):
    """No functions, no loops, short cells."""
    for cell in cells(path, "code"):
        lines = "".join(cell["source"]).splitlines()
        assert len(lines) <= MOST_LINES
        assert not [line for line in lines if line.startswith(("def ", "class ", "for ", "while "))]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the client's own packages
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs(path, monkeypatch):
    """Every cell, in the notebook's folder; figures are shown as pictures."""
    nbformat = pytest.importorskip("nbformat", reason="nbclient is not installed")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=240, kernel_name="python3",
        resources={"metadata": {"path": str(path.parent)}},
    )  # fmt: skip
    client.execute()

    shown = [o for cell in notebook.cells for o in cell.get("outputs", [])]
    drawn = [c for c in cells(path, "code") if "figures." in "".join(c["source"])]
    assert [o for o in shown if o["output_type"] in ("error", "stream")] == []
    assert sum("image/png" in o.get("data", {}) for o in shown) == len(drawn) > 0
