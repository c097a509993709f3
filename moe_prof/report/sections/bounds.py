"""Verdicts: the cause that bounds each stage, with links to the figures it rests on."""

from __future__ import annotations

from collections.abc import Mapping

from moe_prof.report.material import Material, Source
from moe_prof.report.parts import Cell, Context, Missing, Part, Table, by_source

_BACKEND = ("Backend_Bound.Core_Bound", "working_cycles")
_MEMORY = ("Backend_Bound.Memory_Bound", "roofline_fraction_path")
RESTS_ON: Mapping[str, tuple[str, ...]] = {
    "instruction_bound": ("Retiring", "instructions_per_mac"),
    "dependency_bound": _BACKEND,
    "port_bound": _BACKEND,
    "branch_bound": ("Bad_Speculation",),
    "frontend_bound": ("Frontend_Bound",),
    "l2_bound": _MEMORY,
    "l3_bound": _MEMORY,
    "dram_latency_bound": _MEMORY,
    "dram_bandwidth_bound": _MEMORY,
    "spin_bound": ("spin_fraction",),
    "imbalance": ("spin_fraction",),
    "serial_bound": ("spin_fraction",),
    "oversubscribed": ("threads",),
    "unknown": ("spin_fraction", "cpus_used_by_others", "time"),
}
"""Metrics of the rows that a verdict is read from, by its cause."""
_CYCLES = ("time_user", "instructions", "IPC", "loop_cycles")
_MISSES = ("time_user", "l1d_misses", "l2_misses", "l3_misses")
PROGRAM_RESTS_ON: Mapping[str, tuple[str, ...]] = {
    "instruction_bound": _CYCLES,
    "dependency_bound": _CYCLES,
    "port_bound": _CYCLES,
    "branch_bound": ("time_user", "branch_mispredictions", "branch-misses", "Bad_Speculation"),
    "frontend_bound": ("Frontend_Bound",),
    "l2_bound": _MISSES,
    "l3_bound": _MISSES,
    "dram_latency_bound": _MISSES,
    "dram_bandwidth_bound": _MISSES,
    "spin_bound": ("spin_fraction", "voluntary-switches", "time_sys"),
    "imbalance": ("busiest_over_mean", "runnable_threads"),
    "serial_bound": ("single_thread_share", "runnable_threads"),
    "false_sharing": ("shared_line_share",),
    "oversubscribed": ("threads", "runnable_threads"),
    "page_fault_bound": ("time_sys", "minor-faults", "major-faults"),
    "denormals": ("time_user", "time_user_flushed"),
    "syscall_bound": ("time_sys", "minor-faults"),
    "too_short": ("time_elapsed", "time_user"),
    "unknown": (*_CYCLES, "runnable_threads"),
}
"""The same for programs, whose figures are of the whole process."""


def make(material: Material) -> Context | Missing:
    """A table for each session with verdicts."""
    return by_source(material, _part, "no session has verdicts; 'moe-prof topdown' gives them")


def _part(source: Source) -> Part | None:
    judged = [name for name in source.variants if source.index.text(name, "verdict")]
    if not judged:
        return None
    titles = ("variant", "bound by", "because", "try", "rests on")
    rows = tuple(_row(source, name) for name in judged)
    return Part(tables=(Table("What bounds each stage, and what to try", titles, rows),))


def _row(source: Source, variant: str) -> tuple[Cell, ...]:
    index = source.index
    verdict = index.row(variant, "verdict")
    cause = "" if verdict is None else verdict.source
    of_process = verdict is not None and verdict.scope == "process"
    rests_on = PROGRAM_RESTS_ON if of_process else RESTS_ON
    found = (index.row(variant, metric) for metric in rests_on.get(cause, ()))
    links = tuple(
        (row.metric, anchor)
        for row in found
        if row is not None and row.value is not None and (anchor := source.anchor(row))
    )
    return (
        Cell(variant),
        Cell(cause.replace("_", " ")),
        Cell(index.text(variant, "verdict_evidence"), wide=True),
        Cell(index.text(variant, "verdict_advice"), wide=True),
        Cell("", wide=True, links=links),
    )
