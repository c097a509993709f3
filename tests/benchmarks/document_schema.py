"""The JSON schema of the benchmarks' files (see benchmarks/program.py)."""

from __future__ import annotations

DOCUMENT = {
    "type": "object",
    "required": [
        "schema", "program", "command", "date", "machine", "settings", "crowd", "ceilings",
        "results", "notes",
    ],
    "additionalProperties": False,
    "properties": {
        "schema": {"const": 1},
        "program": {"type": "string"},
        "command": {"type": "array", "items": {"type": "string"}},
        "date": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$"},
        "machine": {"type": "object", "required": ["model_name", "features", "usable_cpus"]},
        "settings": {"type": "object"},
        "crowd": {
            "type": ["object", "null"],
            "required": ["cpus", "others"],
            "properties": {
                "cpus": {"type": "integer", "minimum": 1},
                "others": {"type": "number", "minimum": 0},
            },
        },
        "ceilings": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name", "threads", "value", "unit", "provenance", "source"],
                "properties": {"value": {"type": ["number", "null"], "exclusiveMinimum": 0}},
            },
        },
        "results": {"type": "array", "minItems": 1, "items": {"type": "object"}},
        "notes": {"type": "array", "items": {"type": "string"}},
    },
}  # fmt: skip
