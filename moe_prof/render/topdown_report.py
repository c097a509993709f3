"""The text of ``topdown``: stages, slots, phases, and in words what bounds each stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.text import Text

from moe_prof.analysis.query import RowIndex
from moe_prof.analysis.work import WorkCounts
from moe_prof.kernels import PHASES
from moe_prof.machine import Machine
from moe_prof.render.headline import answer, crowd_line, oversubscribed_line
from moe_prof.render.tables import LEGEND, phase_table, stage_table, topdown_table
from moe_prof.rows import Row
from moe_prof.scenario import Scenario
from moe_prof.units import bytes_text, count_text, digits_text, named_text, share_text


@dataclass(frozen=True, slots=True)
class Report:
    """What the text is made of.

    Attributes:
        reason: why the slots are not measured, "" when they are.
        notes: remarks on the run as a whole.
    """

    scenario: Scenario
    counts: WorkCounts
    machine: Machine
    threads: int
    variants: tuple[str, ...]
    rows: Sequence[Row]
    reason: str
    notes: tuple[str, ...]


def body(report: Report) -> RenderableType:
    """All sections, in reading order: the answer first."""
    index = RowIndex(report.rows)
    parts: list[RenderableType] = [
        *crowd_line(index, report.variants), *_heading(report, index), "",
        *answer(index, report.variants), "",
    ]  # fmt: skip
    parts += [_title("Stages"), stage_table(index, report.variants), *_proof(report, index)]
    parts += [*oversubscribed_line(index, report.variants), ""]
    parts += [_title(_slots_title(report)), topdown_table(index, report.variants), ""]
    phases = phase_table(index, report.variants, PHASES)
    if phases.row_count:
        parts += [_title("Phases, share of working time"), phases, ""]
    parts += [_title("What bounds each stage"), *_verdicts(report, index), ""]
    parts += _remarks(report, index)
    return Group(*parts)


def _heading(report: Report, index: RowIndex) -> list[RenderableType]:
    n, d, h, e, k = report.scenario.shape
    counts, machine = report.counts, report.machine
    cpu = machine.processor.model_name or machine.architecture
    core = machine.microarchitecture
    clock = index.value("", "ceiling_clock", thread="1")
    facts = [cpu, f"core {core.name}" if core is not None else "core unknown"]
    if clock is not None:
        facts.append(f"clock {clock / 1e9:.2f} GHz")
    facts.append(f"{report.threads} of {machine.usable_cpus()} usable CPUs")
    caches = [
        f"L{level} {bytes_text(cache.size_bytes)}"
        for level in (1, 2, 3)
        if (cache := machine.cache(level)) is not None
    ]
    work = f"{count_text(counts.macs)} multiply-accumulates a forward"
    if counts.router_share is not None:
        work += f" ({share_text(counts.router_share)} in the router)"
    by_token = counts.intensity_by_token_macs_per_byte
    grouped = counts.intensity_grouped_macs_per_byte
    if by_token is not None and grouped is not None:
        work += (
            f"; intensity {digits_text(by_token)} MAC/byte token by token, "
            f"{digits_text(grouped)} grouped by expert"
        )
    return [
        Text(f"{report.scenario.label}: N {n}, D {d}, H {h}, E {e}, K {k}", style="bold"),
        Text(", ".join((*facts, *caches))),
        Text(work),
    ]


def _proof(report: Report, index: RowIndex) -> list[RenderableType]:
    """That the results are right, and what the two roofline columns stand for."""
    timed = [v for v in report.variants if index.value(v, "time") is not None]
    errors = [e for v in timed if (e := index.value(v, "rel_rmse")) is not None]
    lines: list[RenderableType] = []
    if errors:
        lines.append(
            Text(
                f"Checked against the float64 oracle: relative RMSE {max(errors):.1e} at most. "
                "roofline: the floor by the best instructions of this machine over the time; "
                "of path: by those of the variant's own path.",
                style="dim",
            )
        )
    return lines


def _slots_title(report: Report) -> str:
    how = "modelled" if report.reason else "measured"
    return f"Issue slots, {how}, in %: retiring, bad speculation, frontend, backend (memory + core)"


def _verdicts(report: Report, index: RowIndex) -> list[RenderableType]:
    lines: list[RenderableType] = []
    for variant in report.variants:
        cause = index.text(variant, "verdict")
        if not cause:
            why = index.text(variant, "time")
            lines.append(Text(named_text(variant, why)))
            continue
        text = Text()
        text.append(variant, style="bold")
        text.append(f" {cause}", style="cyan")
        text.append(f": {index.text(variant, 'verdict_evidence')}; ")
        text.append(f"try: {index.text(variant, 'verdict_advice')}")
        lines.append(text)
    return lines


def _remarks(report: Report, index: RowIndex) -> list[RenderableType]:
    lines = _undivided(report, index)
    if report.reason:
        lines.append(f"Not measured because {report.reason}")
        lines.append(
            "Modelled means: instructions, mispredictions and cache misses counted by simulation "
            "over exactly the forward loop, cycles from measured time x calibrated clock, combined "
            "in the interval model (moe_prof/model/interval.py states sources and validity)."
        )
    lines.append(f"Marks: {LEGEND}.")
    lines += [f"Note: {note}" for note in report.notes]
    return [Text(line, style="dim") for line in lines]


def _undivided(report: Report, index: RowIndex) -> list[str]:
    """Why the backend's slots are not divided into memory and core, by reason."""
    names: dict[str, list[str]] = {}
    for variant in report.variants:
        part = index.row(variant, "Backend_Bound.Core_Bound")
        whole = index.value(variant, "Backend_Bound")
        if part is not None and part.value is None and whole is not None:
            names.setdefault(part.source, []).append(variant)
    return [f"No memory and core of {', '.join(v)}: {why}" for why, v in names.items()]


def _title(text: str) -> Text:
    return Text(text, style="bold underline")
