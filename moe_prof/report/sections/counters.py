"""Events of each variant: instructions, cycles, branches, misses."""

from __future__ import annotations

from moe_prof.figures import counters
from moe_prof.render.tables import counters_table
from moe_prof.report.material import Material, Source
from moe_prof.report.parts import Context, Missing, Part, by_source, picture, table_of


def make(material: Material) -> Context | Missing:
    """A table and a figure for each session with counts."""
    return by_source(material, _part, "no session counted events; 'moe-prof counters' counts them")


def _part(source: Source) -> Part | None:
    index = source.index
    table = counters_table(index, source.variants)
    counted = [name for name in source.variants if _has_counts(source, name)]
    if not counted or len(table.titles) < 2:
        return None
    scopes = {row.scope for row in source.rows if row.metric == "instructions"}
    what = "the whole process" if "process" in scopes else "one forward"
    return Part(
        pictures=picture(
            counters(source.rows, counted),
            f"counters-{source.number}",
            f"Counts of {what}; every panel has a scale of its own, from zero.",
        ),
        tables=(table_of(counters_table(index, counted), f"Counts of {what}"),),
    )


def _has_counts(source: Source, variant: str) -> bool:
    metrics = ("instructions", "cycles", "cache-misses", "branch-misses", "task-clock")
    return any(source.index.value(variant, metric) is not None for metric in metrics)
