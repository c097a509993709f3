"""What a tool that refused to work says instead of counters: the line and its meaning."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from moe_prof.collectors import perf_refusals, vtune_refusals
from moe_prof.errors import MoeProfError, UnavailableError

_MARKS = re.compile(
    r"(?:vtune|amplxe(?:-cl)?): (?:Error|Fatal error)|valgrind: |Error:\s*$|event syntax error"
    r"|top down event configuration|Cannot find metric|Invalid top-down metrics|WARNING: perf not"
    r"|Access to performance monitoring|You may not have permission|.*perf_event_paranoid"
    r"|System does not support topdown|Topdown requested but|\s*Usage: (?:perf|gprof|vtune)\b"
    r"|.*sys_perf_event_open\(\)|gprof: |llvm-mca: |Samples for '\S+' event do not"
    r"|error: (?:unable to get target|no assembly"
    r"|found an unsupported)|perf: '\S+' is not a perf-command"
)
_TOOL = re.compile(r"(vtune|amplxe|valgrind|gprof|llvm-mca|perf)\b")
_EXPLAINED: Mapping[str, Callable[[str, int], MoeProfError]] = {
    "perf": perf_refusals.refusal,
    "vtune": vtune_refusals.refusal,
    "amplxe": vtune_refusals.refusal,
}
_PROBE_LINES = 500


def find(lines: Sequence[str]) -> UnavailableError | None:
    """The error that the text reports, None when it reports none.

    Returns:
        An error whose message begins with the line's number.
    """
    probe = list(lines[:_PROBE_LINES])
    for number, line in enumerate(probe, 1):
        if not _MARKS.match(line):
            continue
        text = line.strip()
        if text == "Error:":
            rest = [one.strip() for one in probe[number:] if one.strip()]
            text = rest[0] if rest else text
        tool = _TOOL.search(text)
        name = tool[1] if tool else "perf"
        explain = _EXPLAINED.get(name)
        meaning = explain("\n".join(probe), 1) if explain is not None else None
        if isinstance(meaning, UnavailableError):
            return UnavailableError(f"line {number}: {meaning}")
        return UnavailableError(
            f"line {number}: {name} refused to work and printed no values: {text[:160]!r}"
        )
    return None
