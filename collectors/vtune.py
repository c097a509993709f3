"""Collector: Intel VTune's command line, for the region of interest only.

Collection starts paused; the workload resumes it around its loop through the collector library that
VTune names in its environment. Reports are asked for as text separated by tabs, which no name of a
function contains.

Source: Intel VTune Profiler User Guide, "Command Line Interface": actions collect and report, knobs
of the analysis types hotspots, threading, uarch-exploration and memory-access.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from moe_prof.collectors.base import Availability, ToolRun
from moe_prof.collectors.toolrun import run_tool
from moe_prof.collectors.vtune_refusals import refusal
from moe_prof.collectors.workload import read_status, require_success, wrapped
from moe_prof.errors import ToolError, UnavailableError

AnalysisName = Literal["hotspots", "threading", "uarch-exploration", "memory-access"]
Grouping = Literal["function", "thread"]

NAME = "vtune"
REMEDY = (
    "install Intel VTune Profiler (package intel-oneapi-vtune of Intel's repository), then "
    "source /opt/intel/oneapi/setvars.sh"
)
DELIMITER = "tab"
_REPORT_TIMEOUT_S = 300.0


@dataclass(frozen=True, slots=True)
class Analysis:
    """An analysis type.

    Attributes:
        software / hardware: its knobs when it samples by timer, and by events; None where it
            cannot.
        purpose: what it tells.
    """

    software: tuple[str, ...] | None
    hardware: tuple[str, ...]
    purpose: str


ANALYSES: Mapping[AnalysisName, Analysis] = {
    "hotspots": Analysis(
        ("sampling-mode=sw",),
        ("sampling-mode=hw", "enable-stack-collection=true"),
        "time by function, spinning apart",
    ),
    "threading": Analysis(
        ("sampling-and-waits=sw",),
        ("sampling-and-waits=hw",),
        "waiting and spinning by thread",
    ),
    "uarch-exploration": Analysis(
        None,
        ("pmu-collection-mode=detailed", "collect-memory-bandwidth=false"),
        "top-down breakdown",
    ),
    "memory-access": Analysis(
        None,
        ("analyze-mem-objects=false", "dram-bandwidth-limits=false"),
        "misses and bandwidth by memory level",
    ),
}


def availability() -> Availability:
    """Whether vtune is on the path; what it can do here shows when it runs."""
    if shutil.which(NAME) is None:
        return Availability(NAME, False, "vtune is not on PATH", REMEDY)
    return Availability(NAME, True, "hotspots, threading, and more with counters")


def argv(
    command: Sequence[str],
    *,
    analysis: AnalysisName,
    result: Path,
    hardware: bool = False,
    start_paused: bool = True,
) -> tuple[str, ...]:
    """The command line that collects; runs nothing.

    Args:
        command: the workload with its arguments.
        result: VTune's result folder, which must not exist.
        hardware: sample by events, not by timer, where the analysis has both.
        start_paused: collect only what the workload resumes.
    """
    kind = ANALYSES[analysis]
    knobs = kind.hardware if hardware or kind.software is None else kind.software
    line = [NAME, "-collect", analysis]
    for knob in knobs:
        line += ["-knob", knob]
    if start_paused:
        line.append("-start-paused")
    return (*line, "-no-summary", "-result-dir", str(result), "--", *command)


def report_argv(name: str, result: Path, grouping: Grouping | None = None) -> tuple[str, ...]:
    """The command line that prints a report."""
    line = [NAME, "-report", name, "-result-dir", str(result)]
    if grouping is not None:
        line += ["-group-by", grouping]
    return (*line, "-format", "csv", "-csv-delimiter", DELIMITER)


def collect(
    command: Sequence[str],
    folder: Path,
    *,
    analysis: AnalysisName,
    timeout_s: float,
    hardware: bool = False,
) -> Path:
    """Run the workload under VTune.

    Returns:
        the result folder, for :func:`report`.

    Raises:
        UnavailableError: VTune is missing, or this machine does not offer what it needs.
        WorkloadError: the workload failed.
        ToolError: VTune failed by itself, or time ran out.
    """
    here = availability()
    if not here.usable:
        raise UnavailableError(f"{here.reason}; {here.remedy}")
    result, status = (folder / "result").resolve(), (folder / "vtune.status").resolve()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        status.unlink(missing_ok=True)
        shutil.rmtree(result, ignore_errors=True)
    except OSError as error:
        raise ToolError(f"cannot write {folder}: {error.strerror}") from error
    line = argv(wrapped(command, status), analysis=analysis, result=result, hardware=hardware)
    done = run_tool(line, folder=folder, name=f"vtune-{analysis}", timeout_s=timeout_s)
    ended = read_status(status)
    if ended is not None:
        require_success(ended, command, folder / f"vtune-{analysis}.stderr")
    if done.returncode or ended is None:
        raise refusal(_said(done), done.returncode)
    return result


def report(name: str, result: Path, folder: Path, grouping: Grouping | None = None) -> str:
    """The text of a report, which stays in ``folder``.

    Raises:
        UnavailableError: there is nothing in the result.
        ToolError: VTune failed, or time ran out.
    """
    title = f"report-{name}" + (f"-{grouping}" if grouping else "")
    line = report_argv(name, result, grouping)
    done = run_tool(line, folder=folder, name=title, timeout_s=_REPORT_TIMEOUT_S)
    if done.returncode:
        raise refusal(_said(done), done.returncode)
    return done.stdout


def _said(done: ToolRun) -> str:
    return f"{done.stderr}\n{done.stdout}"
