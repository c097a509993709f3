"""Rows about the machine's ceilings and how near a variant comes to them."""

from __future__ import annotations

from typing import Any

from moe_prof.analysis import roofline
from moe_prof.analysis.ceilings import COLLECTOR, Ceilings
from moe_prof.analysis.roofline import Floor, LayerWork
from moe_prof.rows import Row, unavailable

CEILING = "roofline_ceiling"
"""Metric of a row whose text names the ceiling that sets most of the floor."""


def floor_rows(
    scenario: str,
    variant: str,
    *,
    time_s: float | None,
    work: LayerWork,
    ceilings: Ceilings,
    threads: int,
    isa: str,
) -> tuple[list[Row], Floor]:
    """``roofline_fraction`` against the machine's best exact paths, the ceiling behind it in words,
    ``roofline_fraction_path`` against the path that ran; and the latter's floor, which the verdict
    uses.
    """
    best = roofline.floor(work, ceilings, threads)
    own = roofline.floor(work, ceilings, threads, isa)
    labels: dict[str, Any] = {"scenario": scenario, "variant": variant, "collector": COLLECTOR}
    rows = [
        _fraction_row("roofline_fraction", best, time_s, labels),
        _fraction_row("roofline_fraction_path", own, time_s, labels),
    ]
    if best.ceiling and time_s is not None:
        rows.append(
            Row(
                **labels,
                metric=CEILING,
                value=None,
                unit="1",
                provenance="modelled",
                source=f"this machine's best {best.ceiling}",
            )
        )
    return rows, own


def _fraction_row(metric: str, bound: Floor, time_s: float | None, labels: dict[str, Any]) -> Row:
    value = None if time_s is None else roofline.fraction(bound, time_s)
    if value is None:
        why = "the variant has no time" if time_s is None else bound.source
        return unavailable(metric, "1", why, **labels)
    return Row(
        **labels,
        metric=metric,
        value=value,
        unit="1",
        status="ok" if value <= 1 else "out_of_bounds",
        provenance="modelled",
        source=f"floor / time, floor {bound.time_s:.4g} s by {bound.limit}: {bound.source}",
    )
