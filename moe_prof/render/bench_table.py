"""The text of ``bench``: one line a variant, within 100 columns, and the notes below."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from moe_prof.analysis.query import RowIndex
from moe_prof.analysis.speedup import NoRatio, speedup_of
from moe_prof.analysis.work import count_work
from moe_prof.measure.results import Measurement, VariantTiming
from moe_prof.render.fitted import Column, FittedTable
from moe_prof.render.headline import crowd_line, fastest_text, oversubscribed_line
from moe_prof.render.tables import MISSING, NOISY
from moe_prof.rows import Row
from moe_prof.scenario import Scenario
from moe_prof.stats import Interval, median_interval
from moe_prof.units import count_text, digits_text, named_text, time_range_text, time_text


def bench_body(
    measurement: Measurement,
    scenario: Scenario,
    left_out: Sequence[tuple[str, str]],
    rows: Sequence[Row],
    usable_cpus: int,
) -> RenderableType:
    """What a reader must know first, title, the fastest, table, notes."""
    n, d, h, e, k = scenario.shape
    macs = count_text(count_work(scenario).macs)
    title = f"{scenario.label}: N={n} D={d} H={h} E={e} K={k}, {macs} MACs per forward"
    index, names = RowIndex(rows), [timing.variant for timing in measurement.timings]
    fastest = fastest_text(index, names)
    return Group(
        *crowd_line(index, names),
        Text(title),
        *([Text(fastest)] if fastest else []),
        _table(measurement, usable_cpus),
        *oversubscribed_line(index, names),
        *_notes(measurement, scenario, left_out),
    )


def _table(measurement: Measurement, usable_cpus: int) -> FittedTable:
    titles = (
        "T", "time", "95 % interval", "speedup", "95 % interval", "/autovec", "rel RMSE",
    )  # fmt: skip
    table = FittedTable("variant", (Column("path", "left"), *map(Column, titles)))
    for timing in measurement.timings:
        table.add_row(*_cells(timing, measurement, usable_cpus))
    return table


def _cells(timing: VariantTiming, measurement: Measurement, usable_cpus: int) -> tuple[str, ...]:
    time = median_interval(timing.samples_s) if timing.trusted else None
    speedup = speedup_of(timing, measurement.timing("scalar"))
    over_autovec = speedup_of(timing, measurement.timing("autovec"))
    return (
        timing.variant,
        timing.isa or MISSING,
        _threads(timing.threads, usable_cpus),
        timing.status if time is None else time_text(time.value),
        MISSING if time is None else _range(time, seconds=True),
        _times(speedup),
        MISSING if isinstance(speedup, NoRatio) else _range(speedup, seconds=False),
        _times(over_autovec),
        MISSING if timing.rel_rmse is None else f"{timing.rel_rmse:.1e}",
    )


def _notes(
    measurement: Measurement, scenario: Scenario, left_out: Sequence[tuple[str, str]]
) -> list[Text]:
    lines = []
    samples = [len(t.samples_s) for t in measurement.timings if t.trusted]
    if samples:
        span = f"{min(samples)}..{max(samples)}" if min(samples) < max(samples) else samples[0]
        noun = "process" if measurement.processes == 1 else "processes"
        lines.append(
            f"time: median of {span} samples in {measurement.processes} {noun}, interleaved; "
            "speedup: over scalar"
        )
    checked = measurement.checked_tokens
    lines.append(f"rel RMSE: against the float64 oracle, {checked} of {scenario.num_tokens} tokens")
    lines += [
        named_text(timing.variant, timing.reason or timing.note)
        for timing in measurement.timings
        if timing.reason or timing.note
    ]
    lines += [f"not measured: {reason}" for _, reason in left_out]
    if measurement.interrupted:
        lines.append("interrupted: only what was measured before is shown")
    return [Text(line) for line in (*lines, *measurement.notes)]


def _threads(threads: int | None, usable_cpus: int) -> str:
    if threads is None:
        return MISSING
    return f"{threads}!" if threads > usable_cpus else str(threads)


def _times(ratio: Interval | NoRatio) -> str:
    if isinstance(ratio, NoRatio):
        return NOISY if ratio.noisy else MISSING
    return f"{digits_text(ratio.value)}x"


def _range(interval: Interval, *, seconds: bool) -> str:
    if interval.low is None or interval.high is None:
        return MISSING
    if seconds:
        return time_range_text(interval.low, interval.high)
    return f"{digits_text(interval.low)} .. {digits_text(interval.high)}"
