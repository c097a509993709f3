"""Whether other programs took CPUs that a team of threads wanted. Pure functions on tidy rows.

One thread that is held up holds up its whole team at the next barrier, so that a small part of one
CPU counts however large the team is: what is then seen as waiting may be the other programs' doing.
"""

from __future__ import annotations

from collections.abc import Sequence

from moe_prof.analysis.query import RowIndex

OTHERS, SHARED = "cpus_used_by_others", "cpus_shared"
"""Metrics: CPUs' worth of time that other programs used, and the CPUs that this process may use."""
CROWDED_CPUS = 0.15
"""CPUs' worth of time that may be missing for a team before it counts."""


def is_crowded(threads: int, cpus: float | None, others: float | None) -> bool:
    """Whether other programs left fewer CPUs than the team has threads, or CPUs where it has more.

    Args:
        cpus: CPUs that the team may use, None when unknown.
        others: CPUs' worth of time that other programs used on them, None when unknown.
    """
    if cpus is None or others is None or not threads:
        return False
    return others > CROWDED_CPUS and others + threads > cpus + CROWDED_CPUS


def shared_cpus(index: RowIndex, variant: str) -> float | None:
    """CPUs that the variant's threads might use, as seen while it was timed or its phases were."""
    cpus = index.value("", SHARED)
    return index.value(variant, SHARED) if cpus is None else cpus


def used_by_others(index: RowIndex, variant: str) -> float | None:
    """The most that others used while the variant was timed, or while its phases were."""
    found = [index.value(name, OTHERS) for name in ("", variant)]
    return max((value for value in found if value is not None), default=None)


def warning(index: RowIndex, variants: Sequence[str]) -> str:
    """What a reader must know before all figures, "" where no team was disturbed."""
    disturbed = [
        (others, cpus)
        for variant in variants
        if (others := used_by_others(index, variant)) is not None
        and (cpus := shared_cpus(index, variant)) is not None
        and is_crowded(int(index.value(variant, "threads") or 0), cpus, others)
    ]
    if not disturbed:
        return ""
    most, cpus = max(disturbed)
    return (
        f"other programs kept {most:.1f} of {cpus:.0f} CPUs busy meanwhile, so times and "
        "waiting are not the kernels' alone; repeat on an idle machine, with fewer --threads, or "
        "with OMP_WAIT_POLICY=passive"
    )
