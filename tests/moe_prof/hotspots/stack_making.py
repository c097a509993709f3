"""Small stacks and profiles for tests."""

from __future__ import annotations

from moe_prof.collectors.stacks import Frame, Profile, Stack


def frame(text: str) -> Frame:
    """``name@module:file:line``, all but the name optional."""
    name, _, place = text.partition("@")
    module, _, source = place.partition(":")
    file, _, line = source.partition(":")
    return Frame(name, module, file, int(line) if line else None)


def stack(*frames: str, weight: float = 1.0, thread: str = "", phase: str = "",
          waiting: bool = False) -> Stack:  # fmt: skip
    """A stack, outermost frame first."""
    return Stack(tuple(frame(f) for f in frames), weight, 1, thread, phase, waiting)


def profile(*stacks: Stack, unit: str = "s") -> Profile:
    """A measured profile of the forward loop."""
    return Profile("perf_record", "cpu-clock", unit, stacks)
