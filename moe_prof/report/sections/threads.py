"""Busy and waiting time of every thread."""

from __future__ import annotations

from moe_prof.figures import threads
from moe_prof.figures.shares import MOST_THREADS
from moe_prof.report.material import Material, Source
from moe_prof.report.parts import Context, Missing, Part, by_source, picture, plain_table
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
    return Part(
        pictures=picture(
            threads(source.rows, source.variants),
            f"threads-{source.number}",
            "Busy and waiting time of each thread, in percent of the forward.",
        ),
        tables=(
            plain_table(
                "Busy and waiting time of each thread, a forward",
                ("variant", "thread", "busy", "waiting", "share of waiting"),
                rows,
            ),
        ),
        notes=notes,
    )
