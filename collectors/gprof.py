"""Collector: gprof's flat profile and call graph of a program that was built with -pg.

The program writes its samples when it ends, 100 a CPU second, so it must run for some seconds; they
are of the whole process, and of its own code only: shared libraries are not profiled. Time of a
function's callees is divided among its callers by the number of calls, as gprof itself does.

Source: GNU gprof manual; glibc, gmon (GMON_OUT_PREFIX).
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from moe_prof.collectors.base import Availability, ToolRun
from moe_prof.collectors.call_graph import Cost, Edge, Node, unfold
from moe_prof.collectors.gprof_format import GprofProfile, parse
from moe_prof.collectors.stacks import Profile
from moe_prof.collectors.toolrun import run_tool
from moe_prof.errors import ToolError, UnavailableError, WorkloadError

NAME = "gprof"
INSTALL = "apt install binutils"
_PREFIX = "gmon"
_READ_TIMEOUT_S = 120.0
_PERCENT_SUM = (90.0, 110.0)  # samples on the edge of two functions are rounded in both


def availability() -> Availability:
    """Whether gprof is installed."""
    if shutil.which(NAME) is None:
        return Availability(NAME, False, "gprof is not installed", INSTALL)
    return Availability(NAME, True, "call counts and 10 ms samples of a build with -pg")


def argv(program: Path, samples: Path) -> tuple[str, ...]:
    """The command that prints both parts, without the explanations."""
    return (NAME, "-b", str(program), str(samples))


def run(
    command: Sequence[str], folder: Path, *, timeout_s: float, emulator: Sequence[str] = ()
) -> tuple[GprofProfile, ToolRun]:
    """Run a program that was built with -pg, then gprof on what it left.

    Args:
        command: the program, which must be the file itself, with its arguments.
        folder: where ``gmon.PID`` and the outputs of both runs stay.
        emulator: what runs a program of another architecture, with its options.

    Returns:
        the profile, and the run of the program.

    Raises:
        UnavailableError: gprof is missing, or the program wrote no samples.
        WorkloadError: the program failed.
        ToolError: gprof failed, or time ran out.
    """
    here = availability()
    if not here.usable:
        raise UnavailableError(f"{here.reason}; {here.remedy}")
    for old in folder.glob(f"{_PREFIX}.*"):
        old.unlink()
    env = {"GMON_OUT_PREFIX": str(folder.resolve() / _PREFIX)}
    whole = (*emulator, *command)
    done = run_tool(whole, folder=folder, name="gprof_run", timeout_s=timeout_s, env=env)
    if done.returncode:
        how = f"signal {-done.returncode}" if done.returncode < 0 else f"{done.returncode}"
        raise WorkloadError(
            f"the workload {command[0]!r} ended with {how}; its output is in {folder}"
        )
    samples = sorted(folder.glob(f"{_PREFIX}.*"))
    if not samples:
        raise UnavailableError(
            f"{command[0]} wrote no gmon.out: it is not built with -pg, or ends by _Exit; use "
            "another collector"
        )
    read = run_tool(
        argv(Path(command[0]), samples[0]), folder=folder, name=NAME, timeout_s=_READ_TIMEOUT_S
    )
    if read.returncode:
        said = read.stderr.strip().splitlines() or ["no message"]
        raise ToolError(f"gprof cannot read {samples[0]}: {said[0]}")
    return parse(read.stdout), done


def profile(found: GprofProfile, *, module: str, notes: Sequence[str] = ()) -> Profile:
    """The call graph as weighted stacks, in seconds.

    Raises:
        UnavailableError: there is not one sample.
    """
    if not found.accumulated or not found.total_s:
        raise UnavailableError(
            "gprof took no sample: the program ran for less than a few hundredths of a second; "
            "let it run for some seconds (a larger scenario, --min-time)"
        )
    own = _own_times(found)
    stacks = unfold(
        [Cost(Node(name, module), value) for name, value in own.items()],
        _edges(found, own, module),
    )
    said = (*notes, *found.notes)
    return Profile(NAME, "CPU time", "s", stacks, "measured", "process", said)


def _own_times(found: GprofProfile) -> dict[str, float]:
    """Seconds by function; by percentages, which have more digits, if these make about 100."""
    if not found.flat:
        return {entry.name: entry.self_s for entry in found.graph if not entry.whole_cycle}
    percents = [row.percent for row in found.flat]
    exact = sum(percent or 0.0 for percent in percents)
    own: dict[str, float] = {}
    for row in found.flat:
        by_percent = _PERCENT_SUM[0] <= exact <= _PERCENT_SUM[1] and row.percent is not None
        value = (row.percent or 0.0) / exact * found.total_s if by_percent else row.self_s
        own[row.name] = own.get(row.name, 0.0) + value
    return own


def _edges(found: GprofProfile, own: Mapping[str, float], module: str) -> list[Edge]:
    """Calls with their times: a callee's time, split by calls; calls within a cycle are left out.

    The times that gprof prints are rounded to hundredths; the ratios of calls are exact.
    """
    parts: dict[str, dict[str, float]] = {}
    for entry in found.graph:
        if entry.whole_cycle:
            continue
        for arc in entry.callees:
            counts = arc.calls.split("/")
            same_cycle = arc.cycle is not None and arc.cycle == entry.cycle
            if len(counts) == 2 and int(counts[1]) and not same_cycle:
                part = int(counts[0]) / int(counts[1])
                parts.setdefault(entry.name, {})[arc.name] = part
    inclusive: dict[str, float] = {}
    for name in {*own, *parts}:
        _inclusive(name, own, parts, inclusive, ())
    return [
        Edge(Node(caller, module), Node(callee, module), part * inclusive[callee])
        for caller, callees in parts.items()
        for callee, part in callees.items()
    ]


def _inclusive(
    name: str,
    own: Mapping[str, float],
    parts: Mapping[str, Mapping[str, float]],
    known: dict[str, float],
    above: tuple[str, ...],
) -> float:
    """Own time and that of the callees; a function that is being computed adds nothing again."""
    if name in known:
        return known[name]
    if name in above:
        return 0.0
    total = own.get(name, 0.0) + sum(
        part * _inclusive(callee, own, parts, known, (*above, name))
        for callee, part in parts.get(name, {}).items()
    )
    known[name] = total
    return total
