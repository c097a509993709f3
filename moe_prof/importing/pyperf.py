"""pyperf's JSON: the values of every worker process and their summary."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator

from moe_prof.collectors import pyperf_format
from moe_prof.collectors.pyperf_format import PyperfBenchmark
from moe_prof.errors import InputError
from moe_prof.importing.base import Found, Kind, Labels, Part
from moe_prof.rows import Row

NAME = "pyperf"


def read(part: Part, labels: Labels) -> Found:
    """Rows of every benchmark; raises InputError."""
    benchmarks = pyperf_format.parse(part.text)
    rows = [row for one in benchmarks for row in _rows(one, labels)]
    if not rows:
        raise InputError("this file of pyperf holds no values: it was only calibrated")
    return Found(tuple(rows), (), benchmarks[0].command)


def _rows(benchmark: PyperfBenchmark, labels: Labels) -> Iterator[Row]:
    values = benchmark.flat
    if not values:
        return
    common = {
        "scenario": labels.scenario,
        "variant": labels.variant,
        "collector": NAME,
        "scope": "process",
        "unit": benchmark.unit,
    }
    several = len(values) > 1
    n = len(values)
    mean = math.fsum(values) / n
    spread = statistics.stdev(values) if several else None
    yield Row(metric=benchmark.name, value=mean, stddev=spread, n=n, source="mean", **common)  # type: ignore[arg-type]
    median = statistics.median(values)
    yield Row(metric=f"{benchmark.name} median", value=median, n=n, source="median", **common)  # type: ignore[arg-type]
    repeat = 0
    for worker, run in enumerate(benchmark.values):
        for value in run:
            yield Row(
                metric=benchmark.name, value=value, repeat=repeat, source=f"worker {worker}",
                **common,  # type: ignore[arg-type]
            )  # fmt: skip
            repeat += 1


KIND = Kind(
    name=NAME,
    title="pyperf JSON",
    read=read,
    whole=lambda part: pyperf_format.looks_like(part.text),
)
