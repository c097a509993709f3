"""Log lines of moe_bench: sizes, times, speedup and error of every run."""

from __future__ import annotations

from collections.abc import Iterator

from moe_prof import scenario as scenarios
from moe_prof.collectors import moe_bench_log
from moe_prof.collectors.moe_bench_log import BenchRun
from moe_prof.errors import InputError, UsageError
from moe_prof.importing.base import Found, Kind, Labels, Part, RowMaker
from moe_prof.rows import Row

NAME = "moe_bench"


def read(part: Part, labels: Labels) -> Found:
    """Rows of every run; raises InputError."""
    runs, remarks = moe_bench_log.parse(part.filled)
    counts: dict[str, int] = {}
    for run in runs:
        label = _scenario(run, labels)
        counts[label] = counts.get(label, 0) + 1
    rows: list[Row] = []
    seen: dict[str, int] = {}
    for run in runs:
        label = _scenario(run, labels)
        repeat = seen.get(label, 0) if counts[label] > 1 else None
        seen[label] = seen.get(label, 0) + 1
        rows += _rows(run, label, repeat, labels)
    if not rows:
        raise InputError("these lines of moe_bench were cut off before their first value")
    return Found(tuple(rows), remarks)


def _scenario(run: BenchRun, labels: Labels) -> str:
    if labels.scenario or run.shape is None:
        return labels.scenario
    sizes = ",".join(str(size) for size in run.shape)
    known = next((n for n, s in scenarios.SCENARIOS.items() if s.shape == run.shape), None)
    if known is not None:
        return known
    try:
        return scenarios.parse(sizes).label
    except UsageError:  # sizes that no layer has: the log's own business
        return sizes


def _rows(run: BenchRun, scenario: str, repeat: int | None, labels: Labels) -> Iterator[Row]:
    sizes = zip(("num_tokens", "d_model", "d_ff", "num_experts", "top_k"), run.shape or (),
                strict=False)  # fmt: skip
    values: list[tuple[str, float | None, str]] = [
        *((name, float(size), "1") for name, size in sizes),
        ("iterations", _float(run.iterations), "1"),
        ("Baseline time", run.baseline_s, "s"),
        ("Optimized time", run.optimized_s, "s"),
        ("speedup", run.speedup, "1"),
        ("rel_rmse", run.rel_rmse, "1"),
        ("worst_token", run.worst_error, "1"),
        ("correct", _float(run.correct), "1"),
    ]
    if run.optimized_s is not None and run.iterations:
        values.append(("time", run.optimized_s / run.iterations, "s"))
    maker = RowMaker(Labels(scenario, labels.variant), NAME)
    for name, value, unit in values:
        if value is None:
            continue
        source = f"line {run.line}" if name != "time" else "Optimized time / iterations"
        if name == "speedup" and (run.correct is False or value <= 0):
            why = "a wrong result has no speedup" if run.correct is False else "it is impossible"
            yield maker.row(
                name, None, unit, source, repeat=repeat, status="out_of_bounds",
                missing=f"{value:g} was printed, but {why}",
            )  # fmt: skip
        else:
            yield maker.row(name, value, unit, source, repeat=repeat, missing="no finite number")


def _float(value: float | None) -> float | None:
    return None if value is None else float(value)


KIND = Kind(
    name=NAME,
    title="log lines of moe_bench (lab2)",
    read=read,
    starts=moe_bench_log.is_line,
    scattered=True,
)
