"""perf's complaints become one clear line of the right kind."""

from __future__ import annotations

import pytest

from moe_prof.collectors.perf_refusals import refusal
from moe_prof.errors import ToolError, UnavailableError

CASES = [
    ("perf_event_paranoid setting is 4:\n  -1: Allow", "kernel.perf_event_paranoid is 4"),
    ("You may not have permission to collect stats.\n\nThe current value is 3:", "is 3"),
    ("Error:\nAccess to performance monitoring and observability operations is limited.\n",
     "perf is forbidden here"),
    ("The sys_perf_event_open() syscall returned with 1 (Operation not permitted) for event (x).",
     "perf_event_open is blocked"),
    ("The sys_perf_event_open() syscall returned with 38 (Function not implemented) for event (x)",
     "no perf_event_open"),
    ("Error:\nThe cycles event is not supported.", "the event cycles cannot be counted"),
    ("event syntax error: '{slots,topdown-retiring}'\n  \\___ parser error", "does not know"),
    ("Cannot find metric or group `TopdownL1'", "does not know the metric TopdownL1;"),
    ("top down event configuration requires system-wide mode (-a)", "per core only"),
    ("System does not support topdown", "no top-down counters here"),
    ("Invalid top-down metrics level. The max level is 1.", "reach level 1 only"),
    ("WARNING: perf not found for kernel 6.8.0-40\n\n  You may need to install",
     "not installed for the running kernel 6.8.0-40"),
]  # fmt: skip


@pytest.mark.parametrize(("stderr", "expected"), CASES)
def test_known_complaints(stderr: str, expected: str) -> None:
    """The cause and what to do, in one line."""
    error = refusal(stderr, 255)

    assert isinstance(error, UnavailableError)
    assert expected in str(error)
    assert "; " in str(error)
    assert "\n" not in str(error)
    assert "{what}" not in str(error)


def test_unknown_option() -> None:
    """A perf that is too old for an option."""
    error = refusal("  Error: unknown switch `j'\n usage: perf stat", 129)

    assert isinstance(error, ToolError)
    assert "does not know the option j" in str(error)


def test_anything_else_is_quoted() -> None:
    """perf's own first words and its exit code."""
    assert str(refusal("Error:\n  out of cheese\nmore", 7)) == (
        "perf failed with exit code 7: out of cheese"
    )
    assert str(refusal("", 7)) == "perf failed with exit code 7: it said nothing"
