"""The schema of the JSON document: it follows the code, refuses what breaks the contract, and every
command that measures little prints a document that fits (topdown and counters: see their tests)."""

from __future__ import annotations

import dataclasses
import typing
from dataclasses import asdict

import jsonschema
import pytest

from moe_prof import rows as tidy
from moe_prof.analysis.decision import Verdict
from moe_prof.analysis.verdict import Cause
from moe_prof.machine import read
from moe_prof.rows import Row, unavailable
from tests.moe_prof.commands.running import main
from tests.moe_prof.schema.document import SCHEMA, check

ROW_SCHEMA = SCHEMA["$defs"]["row"]


def with_row(row: object) -> dict[str, object]:
    """A document of one row."""
    return {"schema": 1, "session": None, "machine": read().as_dict(), "rows": [row]}


def value(**changes: object) -> dict[str, object]:
    """A valid row as JSON, with changes."""
    return asdict(Row(collector="t", metric="time", value=1.0, unit="s")) | changes


def test_the_schema_is_a_schema():
    """Draft 2020-12."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_it_has_the_columns_of_a_row():
    """In the same order, all of them required."""
    assert tuple(ROW_SCHEMA["properties"]) == tidy.COLUMNS
    assert tuple(ROW_SCHEMA["required"]) == tidy.COLUMNS


@pytest.mark.parametrize("field", ["status", "provenance", "scope"])
def test_it_has_the_words_of_a_row(field):
    """Every literal of the code and no other."""
    words = typing.get_args(typing.get_type_hints(Row)[field])
    assert tuple(ROW_SCHEMA["properties"][field]["enum"]) == words


def test_it_has_the_causes_of_verdicts():
    """Every cause of the code and no other."""
    (rule,) = (r for r in ROW_SCHEMA["allOf"] if "verdict" in r["description"])
    assert tuple(rule["then"]["properties"]["source"]["enum"]) == typing.get_args(Cause)


def test_it_has_the_verdicts_of_comparisons():
    """Every one of the code and no other."""
    (rule,) = (r for r in ROW_SCHEMA["allOf"] if "comparison" in r["description"])
    assert tuple(rule["then"]["properties"]["source"]["enum"]) == typing.get_args(Verdict)


def test_nullable_fields_are_those_of_a_row():
    """What may be None in the code may be null."""
    hints = typing.get_type_hints(Row)
    nullable = {
        f.name for f in dataclasses.fields(Row) if type(None) in typing.get_args(hints[f.name])
    }
    found = {k for k, v in ROW_SCHEMA["properties"].items() if "null" in v.get("type", ())}
    assert found == nullable


@pytest.mark.parametrize(
    "row",
    [
        value(),
        value(value=None, status="not_counted", provenance="unavailable", source="no PMU"),
        value(metric="isa", value=None, source="avx2"),
        value(metric="verdict", value=None, source="spin_bound"),
        value(metric="comparison", value=None, source="too noisy"),
        asdict(unavailable("comparison", "1", "too few samples", collector="compare")),
        value(metric="Retiring", unit="slots", value=1.2, status="out_of_bounds"),
        asdict(unavailable("IPC", "1", "no PMU", collector="t")),
    ],
)
def test_it_takes_what_the_contract_allows(row):
    """Values, missing values with their reason, texts."""
    check(with_row(row))


@pytest.mark.parametrize(
    "row",
    [
        value(value="1"),
        value(value=None),
        value(provenance="unavailable", source="no PMU", status="not_counted"),
        value(value=None, provenance="unavailable", status="not_counted"),
        value(value=None, provenance="unavailable", source="no PMU"),
        value(status="fine"),
        value(unit=""),
        value(unit="slots", value=1.2),
        value(metric="verdict", source="spin_bound"),
        value(metric="verdict", value=None, source="slow"),
        value(metric="comparison", value=None, source="too_noisy"),
        value(metric="comparison", source="same"),
        {k: v for k, v in value().items() if k != "source"},
        value(extra=1),
    ],
)
def test_it_refuses_what_breaks_the_contract(row):
    """Each by one mistake."""
    with pytest.raises(jsonschema.ValidationError):
        check(with_row(row))


@pytest.mark.parametrize("command", ["list", "doctor"])
def test_commands_without_a_session(command):
    """Exit code 0, no session, rows that fit."""
    ran = main(command, "--format", "json")
    assert (ran.code, ran.document["session"]) == (0, None)
    assert ran.document["rows"]


def test_bench(tmp_path, monkeypatch):
    """Real kernels on a tiny layer."""
    monkeypatch.delenv("MOE_PROF_ISA", raising=False)
    ran = main(
        "bench", "3,16,8,4,2", "--variant", "scalar", "--repeat", "1", "--format", "json",
        "--output", tmp_path / "session",
    )  # fmt: skip
    assert (ran.code, ran.document["session"]) == (0, str(tmp_path / "session"))
