"""The list of what there is, from the tables."""

from __future__ import annotations

import csv
import io
import json

import pytest

from moe_prof.checks import CHECKS
from moe_prof.cli import main
from moe_prof.commands import COMMANDS
from moe_prof.kernels.table import VARIANTS
from moe_prof.presets import PRESETS
from moe_prof.scenario import SCENARIOS


def test_text_names_every_table_row(capsys):
    """Variants, scenarios, collectors and commands; within 100 columns."""
    assert main(["list"]) == 0
    shown = capsys.readouterr().out
    names = [spec.name for spec in VARIANTS] + [*SCENARIOS, *PRESETS]
    names += [check.name for check in CHECKS if check.group == "collectors"]
    names += [command.name for command in COMMANDS]
    assert [name for name in names if name not in shown] == []
    assert max(len(line) for line in shown.splitlines()) <= 100


@pytest.mark.parametrize("width", ["80", "60"])
def test_narrow_terminals_lose_nothing(capsys, monkeypatch, width):
    """Every figure of the scenarios and every word of the variants, uncut."""
    assert main(["list"]) == 0
    wide = capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", width)
    assert main(["list"]) == 0
    narrow = capsys.readouterr().out
    assert max(len(line) for line in narrow.splitlines()) <= int(width)
    assert "…" not in narrow
    assert (
        set(wide.split()) - set(narrow.split()) - {line for line in wide.split() if "─" in line}
        == set()
    )


def test_json_rows(capsys):
    """Every variant has ``available``, every scenario its counts."""
    assert main(["list", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    available = {row["variant"]: row["value"] for row in rows if row["metric"] == "available"}
    assert set(available) == {spec.name for spec in VARIANTS}
    assert available["scalar"] == 1.0
    macs = {row["scenario"]: row["value"] for row in rows if row["metric"] == "macs"}
    assert set(macs) == {*SCENARIOS, *PRESETS}


def test_csv_has_a_header_and_rows(capsys):
    """The same rows as CSV."""
    assert main(["list", "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {row["variant"] for row in rows if row["metric"] == "available"} == {
        spec.name for spec in VARIANTS
    }


def test_scenario_counts(capsys):
    """S3: 63.4 M multiply-adds; 1 per weight byte token by token, 37.6 grouped."""
    assert main(["list", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    found = {row["metric"]: row["value"] for row in rows if row["scenario"] == "S3"}
    assert {name: float(f"{value:.3g}") for name, value in found.items()} == {
        "macs": 63.4e6,
        "router_share": 0.00826,
        "weight_bytes": 1.69e6,
        "intensity_by_token": 1.0,
        "intensity_grouped": 37.6,
    }
