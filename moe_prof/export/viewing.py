"""What all viewers are given: functions without single addresses, the same numbers for all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from moe_prof.collectors.stacks import UNKNOWN, Frame, Profile, Stack, mapped
from moe_prof.hotspots.places import is_compiler_header


def by_functions(profile: Profile) -> Profile:
    """The profile by functions alone; inlined functions stay, the compiler's intrinsics go."""
    return mapped(profile, _by_functions)


def threads(profile: Profile) -> Iterator[tuple[str, list[Stack]]]:
    """Stacks by thread, in the order of the threads' labels; one of no name for all others."""
    for name in (*profile.threads, ""):
        stacks = [stack for stack in profile.stacks if stack.thread == name]
        if stacks:
            yield name, stacks


def thread_title(name: str) -> str:
    """A thread's name for people."""
    return f"thread {name}" if name else "all threads"


def _by_functions(stack: Stack) -> Stack:
    frames = tuple(
        Frame(frame.function, frame.module, inlined=frame.inlined)
        for frame in stack.frames
        if not (frame.inlined and is_compiler_header(frame.file))
    )
    return replace(stack, frames=frames or (Frame(UNKNOWN),), phase="", waiting=False)
