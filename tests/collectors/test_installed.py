"""Tools that are there, missing, or do not start."""

from __future__ import annotations

import pytest

from moe_prof.collectors.base import Availability
from moe_prof.collectors.installed import version_line
from tests.moe_prof.topdown.made import executable


@pytest.fixture
def tool(monkeypatch, tmp_path):
    """A tool on PATH that does what the script says."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def make(script):
        executable(tmp_path / "tool", script)
        return version_line("collector", "tool", "apt install tool")

    return make


def test_the_first_line_is_the_version(tool):
    """Licences below it do not count."""
    assert tool("echo tool 1.2; echo Free software") == "tool 1.2"


def test_what_is_not_there_can_be_installed(monkeypatch, tmp_path):
    """By the line that does."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert version_line("collector", "tool", "apt install tool") == Availability(
        "collector", False, "tool is not installed", "apt install tool"
    )


def test_what_does_not_start_says_why(tool):
    """In its own words."""
    found = tool("echo wrong architecture >&2; exit 1")
    assert isinstance(found, Availability)
    assert found.reason == "tool does not start: wrong architecture"
