"""Collector: samples through ``perf record``, of the region of interest only.

``argv`` builds the command line, ``run`` executes it and keeps the raw files, ``script`` turns the
binary samples into text, which :mod:`perf_script` reads. Without a PMU perf silently samples the
CPU clock where cycles were asked for, so the event is what ``perf evlist`` says, not what was asked
for. Where an unprivileged user may lock little memory, perf's buffers are made smaller.

Source: perf-record(1), perf-script(1), perf-evlist(1).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from moe_prof.collectors.base import ToolRun
from moe_prof.collectors.perf_control import (
    ENVIRONMENT,
    Control,
    control_fifos,
    execute,
    judge,
    raw_files,
    with_fifos,
)
from moe_prof.collectors.process_group import run_group
from moe_prof.collectors.workload import wrapped
from moe_prof.errors import ToolError, UnavailableError

Stacks = Literal["dwarf", "fp", "none"]

EVENT = "cycles"
CLOCK_EVENT = "cpu-clock"
FREQUENCY_HZ = 1999  # no divisor of timer ticks: samples do not march in step with the kernel
STACK_BYTES = 8192  # of each thread's stack that a sample copies for unwinding
FIELDS = "comm,pid,tid,time,period,event,ip,sym,symoff,dso"

_BUFFER_PAGES = (None, 64, 16, 4, 1)  # per CPU; None is perf's own choice (512 KiB)
_TOOL_TIMEOUT_S = 120.0
_MMAP_REFUSED = re.compile(
    r"Permission error mapping pages|failed to mmap with (?:1|12) |Consider increasing "
    r"/proc/sys/kernel/perf_event_mlock_kb"
)
_LOST = re.compile(r"lost (?P<chunks>\d+) chunks|LOST (?P<events>\d+) events")


@dataclass(frozen=True, slots=True)
class Recording:
    """A finished recording.

    Attributes:
        run: perf's own run; its outputs are ``data``, ``stdout``, ``stderr`` and ``status``.
        events: what was really sampled, in perf's names.
        notes: what differs from what was asked for.
    """

    run: ToolRun
    events: tuple[str, ...]
    notes: tuple[str, ...] = ()


def argv(
    command: Sequence[str],
    *,
    data: Path,
    event: str = EVENT,
    stacks: Stacks = "dwarf",
    pages: int | None = None,
    control: Control | None = None,
    perf: str = "perf",
) -> tuple[str, ...]:
    """The command line; runs nothing.

    Args:
        command: the workload with its arguments.
        data: file for the samples.
        stacks: how call stacks are found; ``fp`` needs code that was built with frame pointers.
        pages: size of perf's buffer of each CPU, a power of two.
        control: fifos; with them sampling starts switched off.
    """
    line = [perf, "record", "-o", str(data), "-e", event, "-F", str(FREQUENCY_HZ)]
    if stacks == "dwarf":
        line += ["--call-graph", f"dwarf,{STACK_BYTES}"]
    elif stacks == "fp":
        line += ["--call-graph", "fp"]
    if pages is not None:
        line += ["-m", str(pages)]
    if control is not None:
        line += ["-D", "-1", "--control", f"fifo:{control.pair}"]
    return (*line, "--", *command)


def run(
    command: Sequence[str],
    folder: Path,
    *,
    timeout_s: float | None,
    roi: bool = True,
    stacks: Stacks = "dwarf",
    event: str = EVENT,
    perf: str = "perf",
) -> Recording:
    """Record one run of the workload.

    Args:
        command: the workload; with ``roi`` it is given the fifos as by :mod:`perf_stat`.
        folder: where the raw files stay (``perf_record.data`` and its companions).
        timeout_s: the whole process group is ended after that time; None waits for ever.

    Raises:
        UnavailableError: perf is missing or forbidden.
        ToolError: perf itself failed or was killed.
        WorkloadError: the workload crashed, failed, or did not end in time.
    """
    notes: list[str] = []
    try:
        result = _run_buffered(
            command, folder, notes, timeout_s=timeout_s, roi=roi, stacks=stacks, event=event,
            perf=perf,
        )  # fmt: skip
    except UnavailableError as error:
        if event == CLOCK_EVENT or "cannot be counted" not in str(error):
            raise
        result = _run_buffered(
            command, folder, notes, timeout_s=timeout_s, roi=roi, stacks=stacks,
            event=CLOCK_EVENT, perf=perf,
        )  # fmt: skip
    events = sampled_events(result.outputs["data"], perf=perf)
    if lost := _LOST.search(result.stderr):
        notes.append(f"perf lost samples ({lost[0]}): the machine was too busy to keep them all")
    return Recording(result, events, tuple(notes))


def sampled_events(data: Path, *, perf: str = "perf") -> tuple[str, ...]:
    """Names of the events in a recording, by ``perf evlist``, without perf's own dummy event.

    Raises:
        ToolError: perf cannot read the file.
    """
    text = _converted([perf, "evlist", "-i", str(data)], data.with_suffix(".evlist"))
    names = text.read_text(encoding="utf-8", errors="replace").split("\n")
    return tuple(name.strip() for name in names if name.strip() and not name.startswith("dummy"))


def script(data: Path, *, perf: str = "perf") -> Path:
    """The samples as text, beside the recording.

    Raises:
        ToolError: perf cannot read the file.
    """
    base = [perf, "script", "-i", str(data), "--no-inline"]
    place = data.with_suffix(".script")
    try:
        return _converted([*base, "-F", FIELDS], place)
    except ToolError:  # an older perf, or fields that were not recorded: take what it prints
        return _converted(base, place)


def _run_buffered(
    command: Sequence[str],
    folder: Path,
    notes: list[str],
    *,
    timeout_s: float | None,
    roi: bool,
    stacks: Stacks,
    event: str,
    perf: str,
) -> ToolRun:
    """Run with perf's own buffers, else with smaller ones until they are granted."""
    for pages in _BUFFER_PAGES:
        paths = raw_files(folder, "perf_record", data="perf_record.data")
        with control_fifos(roi) as control:
            line = argv(
                wrapped(with_fifos(command, control), paths["status"]), data=paths["data"],
                event=event, stacks=stacks, pages=pages, control=control, perf=perf,
            )  # fmt: skip
            result, finished = execute(line, paths, "perf_record", timeout_s)
        refused = _MMAP_REFUSED.search(result.stderr) is not None and not paths["status"].exists()
        if not refused or pages == _BUFFER_PAGES[-1]:
            break
    if refused:
        raise UnavailableError(
            "perf may not lock memory for its buffers here, not even a page a CPU; "
            "sudo sysctl kernel.perf_event_mlock_kb=516, or raise 'ulimit -l'"
        )
    judge(result, finished, command, timeout_s)
    if pages is not None:
        notes.append(f"perf's buffers were cut to {pages} pages a CPU (kernel.perf_event_mlock_kb)")
    return result


def _converted(line: Sequence[str], place: Path) -> Path:
    """Run one of perf's reading commands, its output into a file.

    Raises:
        ToolError: it fails; the message carries its own first words.
    """
    errors = place.with_name(f"{place.name}.stderr")
    try:
        finished = run_group(
            line, stdout=place, stderr=errors, timeout_s=_TOOL_TIMEOUT_S, env=ENVIRONMENT
        )
    except OSError as error:
        raise ToolError(f"{line[0]} cannot be started: {error.strerror}") from error
    if finished.returncode:
        words = errors.read_text(encoding="utf-8", errors="replace").split("\n")
        said = next((word.strip() for word in words if word.strip()), "no message")
        raise ToolError(f"perf {line[1]} cannot read {line[3]}: {said}")
    return place
