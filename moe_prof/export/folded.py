"""Folded stacks, for flame graph tools: seconds as microseconds, all else as counted."""

from __future__ import annotations

from moe_prof.collectors.stacks import Profile, write_folded
from moe_prof.export.viewing import by_functions

MICROSECONDS = 1e6


def write(profile: Profile, title: str) -> str:
    """The text of the file; the format has no place for a title."""
    del title
    return write_folded(by_functions(profile), scale=MICROSECONDS if profile.unit == "s" else 1.0)
