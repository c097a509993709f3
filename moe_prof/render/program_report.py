"""What was found about a program, for people and as tidy rows."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from moe_prof.analysis.program_demands import ProgramEvidence
from moe_prof.analysis.verdict import Verdict
from moe_prof.program.watch import Watched
from moe_prof.render.fitted import Column, FittedTable
from moe_prof.rows import Provenance, Row, unavailable
from moe_prof.units import bytes_text, count_text, share_text, time_text

_SIMULATION = "callgrind"
_SCALED = "scaled from the part that was simulated"


def rows(
    label: str, seen: Watched, evidence: ProgramEvidence, verdict: Verdict | None
) -> list[Row]:
    """Every figure that the verdict could rest on, and the verdict."""
    made = []
    for metric, value, unit, source in _measured(seen, evidence):
        made.append(_row(label, metric, value, unit, source))
    for metric, value, unit, source in _simulated(evidence):
        how_counted: Provenance = "modelled" if _SCALED in source else "simulated"
        made.append(_row(label, metric, value, unit, source, provenance=how_counted))
    cycles = evidence.cycles
    if cycles is not None and evidence.instructions is not None:
        source = "instructions / (user time x calibrated clock)"
        made.append(
            _row(label, "IPC", evidence.instructions / cycles, "1", source, provenance="modelled")
        )
    if evidence.loop_cycles is not None:
        source = f"{evidence.loop_model}, bound by {evidence.loop_bound}"
        made.append(
            _row(label, "loop_cycles", evidence.loop_cycles, "cycles", source,
                 provenance="modelled")
        )  # fmt: skip
    if verdict is None:
        return made
    how: Provenance = "measured" if evidence.loop_cycles is None else "modelled"
    texts = (
        ("verdict", verdict.cause), ("verdict_evidence", verdict.evidence),
        ("verdict_advice", verdict.advice),
    )  # fmt: skip
    for metric, text in texts:
        made.append(
            Row(collector="verdict", variant=label, scope="process", metric=metric, value=None,
                unit="1", provenance=how, source=text)
        )  # fmt: skip
    return made


def body(
    command: str,
    seen: Watched,
    evidence: ProgramEvidence,
    verdict: Verdict | None,
    notes: Sequence[str],
) -> RenderableType:
    """The verdict first, then the figures."""
    table = FittedTable("figure", [Column("value"), Column("how", "left", wraps=True)])
    for metric, value, unit, source in (*_measured(seen, evidence), *_simulated(evidence)):
        if value is not None:
            table.add_row(metric, _value(value, unit), source)
    parts: list[RenderableType] = [_head(command, verdict), "", table]
    if notes:
        parts += ["", *(Text(f"Note: {note}", style="dim") for note in notes)]
    return Group(*parts)


def _head(command: str, verdict: Verdict | None) -> Text:
    head = Text()
    head.append(command, style="bold")
    if verdict is None:
        return head
    return head.append(verdict_text(verdict.cause, verdict.evidence, verdict.advice))


def verdict_text(cause: str, evidence: str, advice: str) -> str:
    """A verdict as the rest of a sentence that begins with the program's name."""
    if cause == "unknown":
        return f": what bounds it could not be told: {evidence}. Next: {advice}."
    return f" is {cause.replace('_', ' ')}: {evidence}. Next: {advice}."


_Figure = tuple[str, float | None, str, str]


def _measured(seen: Watched, e: ProgramEvidence) -> list[_Figure]:
    watched = "one run, watched from outside"
    threads = "scheduler's times of its threads"
    return [
        ("time_elapsed", seen.wall_s, "s", watched),
        ("time_user", seen.user_s, "s", watched),
        ("time_sys", seen.sys_s, "s", watched),
        ("minor-faults", float(seen.minor_faults), "1", watched),
        ("major-faults", float(seen.major_faults), "1", watched),
        ("voluntary-switches", float(seen.voluntary), "1", watched),
        ("involuntary-switches", float(seen.involuntary), "1", watched),
        ("max_rss", _float(seen.max_rss_bytes), "bytes", watched),
        ("exit_code", float(seen.exit_code), "1", watched),
        ("threads", float(seen.most_threads), "1", f"{threads}, the most at a time"),
        ("runnable_threads", e.runnable, "1", f"{threads}, running or ready, mean"),
        ("busiest_over_mean", e.busiest, "1", threads),
        ("single_thread_share", e.single_share, "share", "share of the time with one thread"),
        ("spin_fraction", e.polling, "share", f"{e.sampled_by}: in code that only waits"),
        ("shared_line_share", e.shared_line, "share", f"{e.sampled_by} with registers"),
        ("time_user_flushed", e.flushed_s, "s", "second run, denormals flushed to zero"),
    ]


def _simulated(e: ProgramEvidence) -> list[_Figure]:
    needed = e.cut_off or e.whole_misses or e.instructions is not None
    in_part = needed and not e.whole_misses
    misses = f"{_SIMULATION}, {_SCALED} by its hot loops" if in_part else _SIMULATION
    figures: list[_Figure] = [
        ("l1d_misses", e.l1_misses, "misses", f"{misses}, L1 of this machine"),
        ("l2_misses", e.l2_misses, "misses", f"{misses}, L2 of this machine"),
        ("l3_misses", e.l3_misses, "misses", f"{misses}, L3 of this machine"),
    ]
    if not e.measured_instructions:
        counts = f"{_SIMULATION}, {_SCALED}" if e.cut_off else _SIMULATION
        figures = [
            ("instructions", e.instructions, "instructions", counts),
            ("branch_mispredictions", e.mispredictions, "branches", misses),
            *figures,
        ]
    return figures


def _float(value: int | None) -> float | None:
    return None if value is None else float(value)


def _row(
    label: str,
    metric: str,
    value: float | None,
    unit: str,
    source: str,
    *,
    provenance: Provenance = "measured",
) -> Row:
    collector = "callgrind" if source.startswith(_SIMULATION) else "builtin"
    unit = "1" if unit == "share" else unit
    if value is None:
        why = f"{source}: not needed for the verdict, or not to be had"
        if _SCALED in source:
            why = f"{source}, and nothing tells how much of it that was: more time by --max-time"
        return unavailable(metric, unit, why, collector=collector, variant=label, scope="process")
    return Row(
        collector=collector, variant=label, scope="process", metric=metric, value=value,
        unit=unit, provenance=provenance, source=source,
    )  # fmt: skip


def _value(value: float, unit: str) -> str:
    if unit == "s":
        return time_text(value)
    if unit == "bytes":
        return bytes_text(value)
    return share_text(value) if unit == "share" else count_text(value)
