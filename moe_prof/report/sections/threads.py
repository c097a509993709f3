"""Busy and waiting time of every thread, in all and over the time of one forward."""

from __future__ import annotations

from collections.abc import Sequence

from moe_prof.analysis.timelines import timeline_of
from moe_prof.figures import threads, timeline
from moe_prof.figures.shares import MOST_THREADS
from moe_prof.figures.timeline import MOST_LANES
from moe_prof.report.material import Material, Source
from moe_prof.report.parts import Context, Missing, Part, Picture, by_source, picture, plain_table
from moe_prof.units import share_text, time_text


def make(material: Material) -> Context | Missing:
    """A figure and a table for each session with timed teams."""
    return by_source(material, _part, "no session timed a team of threads; 'moe-prof topdown' does")


def _part(source: Source) -> Part | None:
    rows = []
    for variant in source.variants:
        busy = source.index.by_thread(variant, "busy_time")
        wait = source.index.by_thread(variant, "wait_time")
        if len(busy) < 2:
            continue
        for thread, busy_s in busy.items():
            wait_s = wait.get(thread, 0.0)
            whole = busy_s + wait_s
            share = share_text(wait_s / whole if whole > 0 else None)
            rows.append((variant, thread, time_text(busy_s), time_text(wait_s), share))
    if not rows:
        return None
    notes: tuple[str, ...] = ()
    if len(rows) > MOST_THREADS:
        notes = (f"The figure shows the first {MOST_THREADS} of {len(rows)} threads.",)
    lines, missing = _timelines(source, list(dict.fromkeys(variant for variant, *_ in rows)))
    return Part(
        pictures=(
            *picture(
                threads(source.rows, source.variants),
                f"threads-{source.number}",
                "Busy and waiting time of each thread, in percent of the forward.",
            ),
            *lines,
        ),
        tables=(
            plain_table(
                "Busy and waiting time of each thread, a forward",
                ("variant", "thread", "busy", "waiting", "share of waiting"),
                rows,
            ),
        ),
        notes=(*notes, *missing),
    )


def _timelines(
    source: Source, variants: Sequence[str]
) -> tuple[tuple[Picture, ...], tuple[str, ...]]:
    """A picture of one forward for each variant, and why others have none."""
    found: list[Picture] = []
    without: list[str] = []
    for number, variant in enumerate(variants):
        figure = timeline(source.rows, variant)
        if figure is None:
            without.append(variant)
            continue
        known = timeline_of(source.rows, variant)
        assert known is not None
        caption = f"{variant}: one forward of {time_text(known.wall_s)}, step by step"
        if known.threads[MOST_LANES:]:
            caption += f", the first {MOST_LANES} of {len(known.threads)} threads"
        found += picture(figure, f"timeline-{source.number}-{number}", f"{caption}.")
    if not without:
        return tuple(found), ()
    why = (
        f"No timeline of {', '.join(without)}: the session was measured without one (an older "
        "version, or a library without moe_plan_spans)."
    )
    return tuple(found), (why,)
