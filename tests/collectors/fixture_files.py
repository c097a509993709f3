"""Where recorded outputs of tools lie, and how to read one."""

from __future__ import annotations

from pathlib import Path

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"


def recorded(name: str) -> str:
    """The text of a recorded output, by its path below tests/fixtures."""
    return (FIXTURES / name).read_text(encoding="utf-8")
