"""A measurement as a pyperf suite: one benchmark a variant, one run a worker process.

So that ``python -m pyperf show`` and ``compare_to`` read it. Source: pyperf's API documentation
(Run, Benchmark, BenchmarkSuite).
"""

from __future__ import annotations

from pathlib import Path

import pyperf

from moe_prof.measure.results import Measurement, VariantTiming
from moe_prof.scenario import Scenario

FILE_NAME = "pyperf.json"


def write_suite(measurement: Measurement, scenario: Scenario, folder: Path) -> Path | None:
    """Write ``pyperf.json`` into ``folder``; None when no variant was timed.

    Variants that are not to be trusted are left out.
    """
    machine = pyperf.Run([1.0]).get_metadata()
    machine.pop("mem_max_rss", None)  # of this process, not of the workers
    benchmarks = [
        _benchmark(timing, scenario, machine) for timing in measurement.timings if timing.trusted
    ]
    if not benchmarks:
        return None
    path = folder / FILE_NAME
    pyperf.BenchmarkSuite(benchmarks).dump(str(path), replace=True)
    return path


def _benchmark(
    timing: VariantTiming, scenario: Scenario, machine: dict[str, object]
) -> pyperf.Benchmark:
    metadata = {
        **machine,
        "name": f"{scenario.label} {timing.variant}",
        "unit": "second",
        "loops": timing.loops or 1,
        "moe_variant": timing.variant,
        "moe_isa": timing.isa or "unknown",
        "moe_threads": timing.threads or 1,
        "moe_scenario": scenario.shape_text,
    }
    runs = []
    for process in sorted({process for process, _ in timing.samples_s}):
        values = [value for key, value in sorted(timing.samples_s.items()) if key[0] == process]
        warmups = list(timing.warmups_s.get(process, ()))
        runs.append(pyperf.Run(values, warmups=warmups, metadata=metadata, collect_metadata=False))
    return pyperf.Benchmark(runs)
