"""Made-up sides of comparisons: rows as bench leaves them."""

from __future__ import annotations

from moe_prof.analysis.comparison import Side
from moe_prof.rows import Row, unavailable


def time_rows(samples, *, scenario="S1", variant="packed", rounds=True, metric="time"):
    """One row a sample, and their summary."""
    labels = {"scenario": scenario, "variant": variant, "collector": "builtin", "unit": "s"}
    rows = []
    for repeat, ((process, index), value) in enumerate(sorted(samples.items())):
        source = f"process {process}, round {index}" if rounds else f"process {process}"
        rows.append(Row(metric=metric, value=value, repeat=repeat, source=source, **labels))
    ordered = sorted(samples.values())
    rows.append(Row(metric=metric, value=ordered[len(ordered) // 2], source="median", **labels))
    return rows


def failed_rows(reason, *, scenario="S1", variant="packed"):
    """A variant without a time."""
    labels = {"scenario": scenario, "variant": variant, "collector": "builtin"}
    return [unavailable("time", "s", reason, **labels)]


def side(run_id, *groups):
    """A run of these rows."""
    return Side(run_id, tuple(row for group in groups for row in group))
