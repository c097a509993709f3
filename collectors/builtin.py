"""The built-in collector: clocks only, so it works everywhere.

Wall time comes from samples of the release build (:func:`timing_rows`), busy and waiting time of
threads and the times of phases from the ``phases`` build (:func:`phase_rows`), whose own wall time
is larger and is never reported as the variant's. Both are pure; the measuring itself is
``moe_prof.measure``.

``spin_fraction`` is the share of the threads' time inside forward in which they wait for each
other, whether they spin or sleep.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from moe_prof.analysis.crowding import OTHERS, SHARED
from moe_prof.analysis.fastest import RATIO, SLOWER
from moe_prof.analysis.speedup import Distance, NoRatio, distances, speedup_of
from moe_prof.analysis.timelines import FORWARD, SPAN
from moe_prof.analysis.work import count_work
from moe_prof.collectors.base import Availability
from moe_prof.measure.crowd import Crowd
from moe_prof.measure.results import Measurement, PhaseTimes, VariantTiming
from moe_prof.measure.timeline import Timeline
from moe_prof.rows import Row, unavailable
from moe_prof.scenario import Scenario
from moe_prof.stats import Interval, Samples, median_interval
from moe_prof.units import time_text

NAME = "builtin"
BASELINES = (("speedup", "scalar"), ("speedup_over_autovec", "autovec"))
"""Metric and the variant over which it is."""

_Labels = Mapping[str, Any]


def availability() -> Availability:
    """Always usable: it needs a clock."""
    return Availability(NAME, True, "uses the monotonic clock and the kernels' own timers")


def timing_rows(measurement: Measurement, scenario: Scenario, *, usable_cpus: int) -> list[Row]:
    """Identity, correctness, time, speedups and rate of every variant; use by other programs.

    A variant that is wrong, crashed or was not measured has no time and no speedup but the reason.

    Args:
        usable_cpus: those that this process may use; more threads are told as out of bounds.
    """
    rows: list[Row] = []
    if measurement.crowd is not None:
        rows += _crowd_rows(measurement.crowd, {"scenario": scenario.label, "collector": NAME})
    distance = distances(measurement.timings)
    for timing in measurement.timings:
        labels: _Labels = {
            "scenario": scenario.label, "variant": timing.variant, "collector": NAME,
        }  # fmt: skip
        rows += _identity_rows(timing, labels, usable_cpus)
        rows += _error_rows(timing, measurement, labels)
        if timing.trusted:
            rows += _time_rows(timing, count_work(scenario).macs, labels)
        else:
            reason = timing.reason or "no sample was taken"
            rows += [
                unavailable(name, unit, reason, **labels)
                for name, unit in (("time", "s"), ("macs_per_second", "MAC/s"))
            ]
        for metric, baseline in BASELINES:
            rows += _speedup_rows(metric, timing, measurement.timing(baseline), labels)
        if timing.variant in distance:
            rows += _distance_rows(distance[timing.variant], labels)
    return rows


def phase_rows(times: PhaseTimes, scenario: Scenario) -> list[Row]:
    """Phase, busy and waiting times per thread and summed, per forward, and ``spin_fraction``."""
    labels: _Labels = {
        "scenario": scenario.label, "variant": times.variant, "collector": NAME,
    }  # fmt: skip
    if not times.threads:
        reason = times.reason or "no phase timers"
        return [
            unavailable(name, unit, reason, **labels)
            for name, unit in (
                ("phase_time", "s"), ("busy_time", "s"), ("wait_time", "s"), ("spin_fraction", "1"),
            )
        ]  # fmt: skip
    source = f"phases build, mean of {times.forwards} forwards in the least disturbed window"

    def row(metric: str, value: float, unit: str, **where: str) -> Row:
        return _row(metric, value, unit, labels, source=source, **where)

    rows = []
    for index, thread in enumerate(times.threads):
        name = str(index)
        rows += [
            row("phase_time", value, "s", thread=name, phase=phase)
            for phase, value in thread.phases_s.items()
        ]
        rows += [
            row("busy_time", thread.busy_s, "s", thread=name),
            row("wait_time", thread.wait_s, "s", thread=name),
        ]
    for phase in times.threads[0].phases_s:
        total_s = sum(thread.phases_s[phase] for thread in times.threads)
        rows.append(row("phase_time", total_s, "s", phase=phase))
    busy_s = sum(thread.busy_s for thread in times.threads)
    wait_s = sum(thread.wait_s for thread in times.threads)
    rows += [row("busy_time", busy_s, "s"), row("wait_time", wait_s, "s")]
    if times.timeline is not None:
        rows += _timeline_rows(times.timeline, labels)
    if times.crowd is not None:
        rows += _crowd_rows(times.crowd, labels)
    if busy_s + wait_s > 0:
        rows.append(row("spin_fraction", wait_s / (busy_s + wait_s), "1"))
    return rows


def _timeline_rows(found: Timeline, labels: _Labels) -> list[Row]:
    """The steps of one forward: each step's length, with its begin in ``time_s``."""
    source = "phases build, one forward"
    if found.slot_s is not None:
        source += f"; what took most of every {time_text(found.slot_s)}"
    rows = [_row(FORWARD, found.wall_s, "s", labels, source=source)]
    for number, lane in enumerate(found.threads):
        rows += [
            Row(metric=SPAN, value=step.length_s, unit="s", time_s=step.begin_s, phase=step.phase,
                thread=str(number), source=source, **labels)
            for step in lane
        ]  # fmt: skip
    return rows


def _crowd_rows(crowd: Crowd, labels: _Labels) -> list[Row]:
    """What other programs used meanwhile, of the CPUs that this process may use."""
    return [
        Row(metric=metric, value=float(value), unit="CPUs", scope="system", source=source, **labels)
        for metric, value, source in (
            (OTHERS, crowd.others, "average by /proc/stat, steal time included"),
            (SHARED, crowd.cpus, "CPU affinity"),
        )
    ]


def _identity_rows(timing: VariantTiming, labels: _Labels, usable_cpus: int) -> list[Row]:
    """What really ran; texts stand in ``source``."""
    if not timing.info:
        reason = timing.reason or "it was not prepared"
        return [unavailable("isa", "1", reason, **labels)]
    kernel = str(timing.info.get("microkernel", ""))
    rows = [Row(metric="isa", value=None, unit="1", source=timing.isa, **labels)]
    if kernel:
        rows.append(Row(metric="microkernel", value=None, unit="1", source=kernel, **labels))
    if timing.threads is not None:
        rows.append(_threads_row(timing.threads, usable_cpus, labels))
    if timing.prepare_s is not None:
        rows.append(_row("prepare_time", timing.prepare_s, "s", labels))
    return rows


def _error_rows(timing: VariantTiming, measurement: Measurement, labels: _Labels) -> list[Row]:
    if timing.worst_error is None and timing.status != "wrong":
        reason = timing.reason or "it was not checked"
        return [unavailable(name, "1", reason, **labels) for name in ("rel_rmse", "worst_token")]
    if timing.rel_rmse is None or timing.worst_error is None:
        return [
            Row(metric=name, value=None, unit="1", status="out_of_bounds", source=timing.reason,
                **labels)
            for name in ("rel_rmse", "worst_token")
        ]  # fmt: skip
    checked = f"float64 oracle, {measurement.checked_tokens} tokens"
    token = "every token is exact" if timing.worst_token is None else f"token {timing.worst_token}"
    return [
        _row("rel_rmse", timing.rel_rmse, "1", labels, source=checked),
        _row("worst_token", timing.worst_error, "1", labels, source=f"{token}; {checked}"),
    ]


def _time_rows(timing: VariantTiming, macs: int, labels: _Labels) -> list[Row]:
    rows = [
        _row("time", value, "s", labels, repeat=repeat, source=f"process {process}, round {index}")
        for repeat, ((process, index), value) in enumerate(sorted(timing.samples_s.items()))
    ]
    interval = median_interval(timing.samples_s)
    if interval is None:
        return rows
    source = f"median; {timing.loops} forwards a sample"
    rows.append(_summary("time", timing.samples_s, labels, source))
    rows += _interval_rows("time", interval, "s", labels)
    rows.append(_summary("cpu_time", timing.cpu_s, labels, "median; all threads, process clock"))
    if macs:
        rate = macs / interval.value
        rows.append(_row("macs_per_second", rate, "MAC/s", labels, source=f"{macs} useful MACs"))
    return rows


def _speedup_rows(
    metric: str, timing: VariantTiming, baseline: VariantTiming | None, labels: _Labels
) -> list[Row]:
    found = speedup_of(timing, baseline)
    if isinstance(found, NoRatio):
        row = unavailable(metric, "1", found.reason, **labels)
        return [replace(row, status="below_threshold") if found.noisy else row]
    name = baseline.variant if baseline is not None else ""
    source = f"median time of {name} / median time, interleaved"
    row = Row(metric=metric, value=found.value, unit="1", n=found.n, source=source, **labels)
    return [row, *_interval_rows(metric, found, "1", labels)]


def _threads_row(threads: int, usable_cpus: int, labels: _Labels) -> Row:
    """More threads than CPUs wait for each other however good the kernel is."""
    row = _row("threads", threads, "1", labels)
    if threads <= usable_cpus:
        return row
    source = f"oversubscribed: {threads} threads on {usable_cpus} usable CPUs"
    return replace(row, status="out_of_bounds", source=source)


def _distance_rows(distance: Distance, labels: _Labels) -> list[Row]:
    ratio = distance.ratio
    source = "median time / lowest median time, interleaved"
    return [
        Row(metric=RATIO, value=ratio.value, unit="1", n=ratio.n, source=source, **labels),
        *_interval_rows(RATIO, ratio, "1", labels),
        _row(
            SLOWER, distance.separable, "1", labels,
            source="1: the samples tell it from the fastest, 0: they do not",
        ),
    ]  # fmt: skip


def _interval_rows(metric: str, interval: Interval, unit: str, labels: _Labels) -> list[Row]:
    source = f"95 % interval, {interval.method}"
    ends = (("ci_low", interval.low), ("ci_high", interval.high))
    return [
        unavailable(f"{metric}_{end}", unit, interval.reason, **labels)
        if value is None
        else _row(f"{metric}_{end}", value, unit, labels, source=source)
        for end, value in ends
    ]


def _summary(metric: str, samples: Samples, labels: _Labels, source: str) -> Row:
    """Median, standard deviation and number of samples in seconds."""
    values = list(samples.values())
    stddev = statistics.stdev(values) if len(values) > 1 else None
    median = statistics.median(values)
    return _row(metric, median, "s", labels, stddev=stddev, n=len(values), source=source)


def _row(metric: str, value: float, unit: str, labels: _Labels, **more: Any) -> Row:  # noqa: ANN401
    return Row(metric=metric, value=float(value), unit=unit, **more, **labels)
