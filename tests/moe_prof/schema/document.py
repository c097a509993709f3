"""The JSON document of every command, checked against the schema beside this file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema

SCHEMA: dict[str, Any] = json.loads(Path(__file__).with_name("rows.schema.json").read_text())


def check(document: object) -> None:
    """Fail with the first place that does not fit."""
    jsonschema.Draft202012Validator(SCHEMA).validate(document)


def parse(text: str) -> dict[str, Any]:
    """The document printed on stdout, checked; NaN and Infinity are no JSON."""
    document: dict[str, Any] = json.loads(text, parse_constant=_refuse)
    check(document)
    return document


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is no JSON")
