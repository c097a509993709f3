"""Tidy rows of expert-parallel results. Pure functions.

A case is a scenario, ``fused`` and ``small_ops`` are variants. ``thread`` names a rank, ``phase`` a
stage. The time of a call is that of its slowest rank. ``speedup_over_small_ops`` is paired by
rounds, see ``moe_prof.analysis.decision``.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from moe_prof.analysis.crowding import OTHERS, SHARED
from moe_prof.analysis.decision import Ratio, time_ratio, verdict
from moe_prof.ep.abi import STAGES, TRAFFICS
from moe_prof.ep.cases import SMALL_OPS
from moe_prof.ep.loads import Load, by_rank, load_of
from moe_prof.ep.results import WAITS, CaseResult, VariantResult
from moe_prof.rows import Row, unavailable
from moe_prof.stats import Interval, Samples, median_interval

NAME = "ep"
SPEEDUP = "speedup_over_small_ops"
EXPOSED, EXPOSED_SHARE = "exposed_communication", "exposed_communication_share"
OVERLAP = "overlap_rate"
SHA256 = "output_sha256"
RATE = "tokens_per_second"
MOVED = "memory_bytes"

_Labels = Mapping[str, Any]


def case_rows(result: CaseResult, *, usable_cpus: int) -> list[Row]:
    """All rows of a case: of the case as a whole first, then variant by variant."""
    labels: _Labels = {"scenario": result.case.label, "collector": NAME}
    rows = [*_common_rows(result, labels), *_load_rows(result, labels)]
    base = result.variant(SMALL_OPS)
    for one in result.variants:
        own = {**labels, "variant": one.variant}
        rows += _identity_rows(one, result, own, usable_cpus)
        rows += _check_rows(one, own)
        rows += _time_rows(one, result, own)
        rows += _speedup_rows(one, base, own)
        rows += _stage_rows(one, own)
        rows += _overlap_rows(one, base, own)
        rows += _byte_rows(one, own)
        rows += _wait_rows(one, own)
    return rows


def samples_of(one: VariantResult) -> Samples:
    """Seconds a call by (process, round)."""
    return {(0, index): value for index, value in enumerate(one.call_s)}


def speedup_over(one: VariantResult, base: VariantResult | None) -> Interval | None:
    """Time of the base / time of the variant, paired; None where one of them has no time."""
    if base is None or base is one or one.wrong or base.wrong:
        return None
    ratio = time_ratio(samples_of(base), samples_of(one), same_run=True)
    return None if ratio is None else inverse(ratio)


def inverse(ratio: Ratio) -> Interval:
    """Old time / new time of a ratio of new time / old time."""
    found = ratio.interval
    low = None if found.high is None else 1 / found.high
    high = None if found.low is None else 1 / found.low
    return Interval(1 / found.value, low, high, found.n, found.method, found.reason)


def _common_rows(result: CaseResult, labels: _Labels) -> list[Row]:
    case = result.case
    how = "one process, no MPI" if not result.mpi else f"{result.transport}; {result.mpi}"
    rows = [
        _row("ranks", case.ranks, "ranks", labels, source=how),
        _row("tokens", case.tokens, "tokens", labels, source="of all ranks together"),
    ]
    for metric, value, source in (
        ("workspace_bytes", result.workspace_bytes, "segments that share memory; largest rank"),
        ("workspace_apart_bytes", result.workspace_apart_bytes, "each segment separate"),
        ("window_bytes", result.window_bytes, "dispatch, combine and flags of one rank"),
        ("weight_bytes", _weight_bytes(result), "int8 weights of the experts that get rows"),
    ):
        if value is not None:
            rows.append(_row(metric, value, "bytes", labels, provenance="modelled", source=source))
    if result.others_cpus is not None and result.cpus is not None:
        source = "average by /proc/stat, steal time included"
        rows.append(_row(OTHERS, result.others_cpus, "CPUs", labels, scope="system", source=source))
        rows.append(
            _row(SHARED, result.cpus, "CPUs", labels, scope="system", source="CPU affinity")
        )
    return rows


def _weight_bytes(result: CaseResult) -> int | None:
    """Read once a call, whatever is fused."""
    if not result.expert_rows:
        return None
    used = sum(rows > 0 for rows in result.expert_rows)
    return used * result.case.h * result.case.n * 3 // 2


def _load_rows(result: CaseResult, labels: _Labels) -> list[Row]:
    if not result.expert_rows:
        return []
    experts = np.array(result.expert_rows, np.int64)
    rows = []
    for phase, load in (
        ("experts", load_of(experts)),
        ("ranks", load_of(by_rank(experts, result.case.ranks))),
    ):
        rows += _one_load(phase, load, labels)
    return rows


def _one_load(phase: str, load: Load, labels: _Labels) -> list[Row]:
    source = f"rows of {len(load.rows)} {phase}: {_few(load.rows)}"
    return [
        Row(metric=metric, value=value, unit="1", phase=phase, source=source, **labels)
        if value is not None
        else unavailable(metric, "1", "no rows were routed", phase=phase, **labels)
        for metric, value in (
            ("load_max_over_mean", load.max_over_mean),
            ("load_variation", load.variation),
        )
    ]


def _few(rows: Sequence[int]) -> str:
    shown = ", ".join(map(str, rows[:16]))
    return shown if len(rows) <= 16 else f"{shown}, ..."


def _identity_rows(
    one: VariantResult, result: CaseResult, labels: _Labels, usable_cpus: int
) -> list[Row]:
    rows = [
        Row(metric="isa", value=None, unit="1", source=one.isa, **labels),
        Row(metric="microkernel", value=None, unit="1", source=one.microkernel, **labels),
    ]
    total = one.threads * result.case.ranks
    row = _row(
        "threads", total, "1", labels, source=f"{result.case.ranks} ranks x {one.threads} threads"
    )
    if total > usable_cpus:
        source = (
            f"oversubscribed: {total} threads of all ranks on {usable_cpus} usable CPUs take "
            "turns, so that waits and overlap are the scheduler's"
        )
        row = Row(
            metric="threads", value=float(total), unit="1", status="out_of_bounds", source=source,
            **labels,
        )  # fmt: skip
    rows.append(row)
    sha = Row(metric=SHA256, value=None, unit="1", source=one.sha256, **labels)
    rows.append(sha if one.sha256 else unavailable(SHA256, "1", "it gave no output", **labels))
    if one.note:
        rows.append(Row(metric="note", value=None, unit="1", source=one.note, **labels))
    return rows


def _check_rows(one: VariantResult, labels: _Labels) -> list[Row]:
    if one.rel_rmse is None or one.worst_token is None:
        reason = one.wrong or "it was not compared with the oracle; use --verify"
        return [unavailable(name, "1", reason, **labels) for name in ("rel_rmse", "worst_token")]
    source = one.wrong or "float64 oracle, all tokens"
    return [
        _row("rel_rmse", one.rel_rmse, "1", labels, source=source),
        _row("worst_token", one.worst_token, "1", labels, source=source),
    ]


def _time_rows(one: VariantResult, result: CaseResult, labels: _Labels) -> list[Row]:
    samples = samples_of(one)
    interval = median_interval(samples)
    if interval is None or one.wrong:
        reason = one.wrong or result.interrupted or "no sample was taken"
        return [
            unavailable("time", "s", reason, **labels),
            unavailable(RATE, "tokens/s", reason, **labels),
        ]
    rows = [
        _row("time", value, "s", labels, repeat=index, source=f"process 0, round {index}")
        for index, value in enumerate(one.call_s)
    ]
    values = list(samples.values())
    stddev = statistics.stdev(values) if len(values) > 1 else None
    source = f"median; slowest rank; {one.calls} calls a sample"
    rows.append(
        _row("time", interval.value, "s", labels, stddev=stddev, n=len(values), source=source)
    )
    rows += _interval_rows("time", interval, "s", labels)
    if one.cpu_s is not None:
        rows.append(_row("cpu_time", one.cpu_s, "s", labels, source="a call, all ranks, mean"))
    rate = result.case.tokens / interval.value
    rows.append(
        _row(RATE, rate, "tokens/s", labels, source=f"{result.case.tokens} tokens / median time")
    )
    return rows


def _speedup_rows(one: VariantResult, base: VariantResult | None, labels: _Labels) -> list[Row]:
    if base is None or base is one:
        return []
    found = speedup_over(one, base)
    if found is None:
        reason = one.wrong or base.wrong or "one of both has no time"
        return [unavailable(SPEEDUP, "1", reason, **labels)]
    ratio = time_ratio(samples_of(base), samples_of(one), same_run=True)
    source = "median time of small_ops / median time, paired by rounds"
    words = verdict(None if ratio is None else ratio.interval)
    return [
        Row(metric=SPEEDUP, value=found.value, unit="1", n=found.n, source=source, **labels),
        *_interval_rows(SPEEDUP, found, "1", labels),
        Row(metric="comparison", value=None, unit="1", source=words, **labels),
    ]  # fmt: skip


def _stage_rows(one: VariantResult, labels: _Labels) -> list[Row]:
    """Working time by stage, busy and waiting time by rank."""
    if not one.stage_s:
        return []
    source = "mean of the calls that were recorded, summed over threads"
    rows = []
    sums: dict[str, float] = {}
    waited_s = busy_s = 0.0
    for rank, stages in enumerate(one.stage_s):
        wait_s = sum(stages.get(name, 0.0) for name in WAITS) / one.threads
        whole_s = one.wall_s[rank] if rank < len(one.wall_s) else 0.0
        work_s = max(0.0, whole_s - wait_s)
        thread = f"rank {rank}"
        rows.append(_row("busy_time", work_s, "s", labels, thread=thread, source="mean of threads"))
        rows.append(_row("wait_time", wait_s, "s", labels, thread=thread, source="mean of threads"))
        waited_s, busy_s = waited_s + wait_s, busy_s + work_s
        for name, value in stages.items():
            if value:
                sums[name] = sums.get(name, 0.0) + value
                rows.append(
                    _row(_time_of(name), value, "s", labels, thread=thread, phase=name,
                         source=source)
                )  # fmt: skip
    rows += [
        _row(_time_of(name), sums[name], "s", labels, phase=name, source=f"all ranks; {source}")
        for name in STAGES
        if name in sums
    ]
    if busy_s + waited_s > 0:
        share = waited_s / (busy_s + waited_s)
        rows.append(_row("spin_fraction", share, "1", labels, source="waits of ranks for ranks"))
    return rows


def _time_of(stage: str) -> str:
    return "wait_time" if stage in WAITS else "phase_time"


def _overlap_rows(one: VariantResult, base: VariantResult | None, labels: _Labels) -> list[Row]:
    exposed, whole = one.exposed_s, one.recorded_s
    if exposed is None or not whole:
        return []
    rows = [
        _row(EXPOSED, exposed, "s", labels,
             source="waits for ranks and rows moved apart from products, mean of ranks"),
        _row(EXPOSED_SHARE, min(1.0, exposed / whole), "1", labels, source="of the call"),
    ]  # fmt: skip
    if base is None or base is one or len(one.stage_s) == 1:
        return rows
    reference = base.exposed_s
    if not reference:
        return [*rows, unavailable(OVERLAP, "1", "small_ops exposes no communication", **labels)]
    source = "1 - exposed communication / that of small_ops"
    return [*rows, _row(OVERLAP, 1 - exposed / reference, "1", labels, source=source)]


def _byte_rows(one: VariantResult, labels: _Labels) -> list[Row]:
    rows = []
    if one.counted:
        moved = sum(
            traffics.get(name, 0)
            for traffics in one.counted.values()
            for name in TRAFFICS
            if name.startswith("memory")
        )
        source = "through memory, a call, all ranks; counted where they are moved"
        rows.append(_row(MOVED, moved, "bytes", labels, source=source))
    for stage in STAGES:
        for traffic in TRAFFICS:
            counted = one.counted.get(stage, {}).get(traffic, 0)
            predicted = one.predicted.get(stage, {}).get(traffic, 0)
            if not counted and not predicted:
                continue
            rows.append(
                _row(f"bytes_{traffic}", counted, "bytes", labels, phase=stage,
                     source="counted where they are moved, a call, all ranks")
            )  # fmt: skip
            rows.append(
                _row(f"bytes_{traffic}_predicted", predicted, "bytes", labels, phase=stage,
                     provenance="modelled", source="the plan's prediction")
            )  # fmt: skip
    return rows


def _wait_rows(one: VariantResult, labels: _Labels) -> list[Row]:
    """The matrix: who waited how long for whom."""
    return [
        _row(f"wait_for_rank_{peer}", value, "s", labels, thread=f"rank {rank}", phase=stage,
             source="mean of the calls that were recorded")
        for stage, matrix in one.waits_s.items()
        for rank, row in enumerate(matrix)
        for peer, value in enumerate(row)
        if rank != peer
    ]  # fmt: skip


def _interval_rows(metric: str, interval: Interval, unit: str, labels: _Labels) -> list[Row]:
    source = f"95 % interval, {interval.method}"
    return [
        unavailable(f"{metric}_{end}", unit, interval.reason, **labels)
        if value is None
        else _row(f"{metric}_{end}", value, unit, labels, source=source)
        for end, value in (("ci_low", interval.low), ("ci_high", interval.high))
    ]


def _row(metric: str, value: float, unit: str, labels: _Labels, **more: Any) -> Row:  # noqa: ANN401
    return Row(metric=metric, value=float(value), unit=unit, **more, **labels)
