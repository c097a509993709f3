"""Sessions made by hand for the rules."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from moe_prof.rows import Row
from moe_prof.session import SCHEMA, Manifest, SavedSession

CACHES = [
    {"level": 1, "type": "Data", "size_bytes": 32 << 10},
    {"level": 2, "type": "Unified", "size_bytes": 1 << 20},
    {"level": 3, "type": "Unified", "size_bytes": 32 << 20},
]
MACHINE = {"model_name": "made", "caches": CACHES, "usable_cpus": 2}
MANIFEST = Manifest(
    schema=SCHEMA, run_id="r0", command="topdown", argv=(), scenario="S3", shape=(), variants=(),
    seed=0, state="complete", started="", elapsed_s=1.0, moe_prof_version="1", python_version="3",
    machine=MACHINE, tools={}, environment={},
)  # fmt: skip
UNITS = {"time": "s", "cpu_time": "s", "time_elapsed": "s", "task-clock": "s", "Retiring": "slots"}


def row(metric, value, **more):
    """One row of variant ``v`` at S3."""
    fields = {
        "scenario": "S3", "variant": "v", "collector": "made", "metric": metric, "value": value,
        "unit": UNITS.get(metric, "1"),
    }  # fmt: skip
    return Row(**(fields | more))


def session(*rows, run_id="r0", folder="first", **changes):
    """A session with these rows."""
    manifest = replace(MANIFEST, run_id=run_id, **changes)
    return SavedSession(Path(folder), manifest, tuple(rows))


def counted(cycles, instructions, *, time_s=1.0, variant="v", scope="process", **events):
    """What perf stat gives: counts, time and ratios."""
    rows = [
        row("time_elapsed", time_s, variant=variant, scope="process"),
        row("cycles", cycles, variant=variant, scope=scope),
        row("instructions", instructions, variant=variant, scope=scope),
        row("IPC", instructions / cycles, variant=variant, scope=scope),
    ]
    names = {"misses": "cache-misses", "references": "cache-references",
             "branch_misses": "branch-misses", "branches": "branches"}  # fmt: skip
    rows += [row(names[k], v, variant=variant, scope=scope) for k, v in events.items()]
    if {"misses", "references"} <= set(events):
        rate = events["misses"] / events["references"]
        rows.append(row("cache_miss_rate", rate, variant=variant, scope=scope))
    return rows
