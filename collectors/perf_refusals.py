"""What perf's complaints mean and what helps: text on stderr in, one typed error out.

Source: messages of perf 5.10 to 6.12 (``tools/perf/util/evsel.c``, ``builtin-stat.c``) and those
seen when running perf 6.1 without a PMU.
"""

from __future__ import annotations

import re

from moe_prof.errors import MoeProfError, ToolError, UnavailableError

PARANOID_REMEDY = (
    "sudo sysctl kernel.perf_event_paranoid=1, or run as root or with CAP_PERFMON; "
    "in a container also start it with --cap-add PERFMON"
)
_SECCOMP_REMEDY = "start the container with --cap-add PERFMON --security-opt seccomp=unconfined"

# (pattern in perf's stderr, what it means, what to do)
_REFUSALS: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (
        re.compile(r"perf_event_paranoid setting is (?P<what>-?[0-9]+)|The current value is "
                   r"(?P<other>-?[0-9]+)"),
        "perf is forbidden here: kernel.perf_event_paranoid is {what}",
        PARANOID_REMEDY,
    ),
    (
        re.compile(r"Access to performance monitoring.*limited|may not have permission"
                   r"|Permission denied|No permission"),
        "perf is forbidden here",
        PARANOID_REMEDY,
    ),
    (
        re.compile(r"Operation not permitted|sys_perf_event_open\(\).*?with 1 \("),
        "the system call perf_event_open is blocked here",
        _SECCOMP_REMEDY,
    ),
    (
        re.compile(r"sys_perf_event_open\(\).*?with 38|Function not implemented"),
        "this kernel has no perf_event_open",
        "use a kernel with CONFIG_PERF_EVENTS",
    ),
    (
        re.compile(r"The (?P<what>\S+) event is not supported"),
        "the event {what} cannot be counted here",
        "leave it out; `moe-prof doctor` lists what can be counted",
    ),
    (
        re.compile(r"event syntax error: '(?P<what>[^']*)'"),
        "perf does not know the event {what}",
        "see `perf list`, or use a newer perf",
    ),
    (
        re.compile(r"Cannot find metric or group `?(?P<what>[^'`\n]+)"),
        "perf does not know the metric {what}",
        "see `perf list metricgroup`, or use a newer perf",
    ),
    (
        re.compile(r"top down event configuration requires system-wide mode"),
        "this CPU counts slots per core only, or has no slot counters",
        "run it system-wide with `perf stat --topdown -a`",
    ),
    (
        re.compile(r"System does not support topdown|Topdown requested but the topdown metric "
                   r"groups aren't present"),
        "there are no top-down counters here",
        "use plain counters, or the modelled answer",
    ),
    (
        re.compile(r"Invalid top-down metrics level\. The max level is (?P<what>[0-9]+)"),
        "top-down figures reach level {what} only here",
        "ask for level {what}",
    ),
    (
        re.compile(r"(?:WARNING: )?perf not found for kernel (?P<what>\S+)"),
        "perf is not installed for the running kernel {what}",
        "apt install linux-tools-{what}, or set the path of another perf",
    ),
)  # fmt: skip
_UNKNOWN_OPTION = re.compile(r"(?:unknown (?:option|switch) [`'](?P<what>[^'`]+)|invalid option)")


def refusal(stderr: str, returncode: int) -> MoeProfError:
    """The error for a perf that ended with ``returncode`` before it ran the workload.

    Returns:
        UnavailableError where the machine does not offer it, ToolError otherwise.
    """
    for pattern, meaning, remedy in _REFUSALS:
        match = pattern.search(stderr)
        if match:
            what = next((text for text in match.groups() if text), "")
            return UnavailableError(f"{meaning}; {remedy}".replace("{what}", what))
    option = _UNKNOWN_OPTION.search(stderr)
    if option:
        what = option["what"] or ""
        return ToolError(f"this perf does not know the option {what}; use a newer one (6.0 for -j)")
    return ToolError(f"perf failed with exit code {returncode}: {_first_line(stderr)}")


def _first_line(stderr: str) -> str:
    lines = (line.strip() for line in stderr.splitlines())
    useful = (line for line in lines if line and line != "Error:")
    return next(useful, "it said nothing")
