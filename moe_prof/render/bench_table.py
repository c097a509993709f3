"""The text of ``bench``: one line a variant, within 100 columns, and the notes below."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from moe_prof.analysis.work import count_work
from moe_prof.collectors.builtin import speedup_of
from moe_prof.measure.results import Measurement, VariantTiming
from moe_prof.scenario import Scenario
from moe_prof.stats import Interval, median_interval
from moe_prof.units import count_text, digits_text, time_range_text, time_text

MISSING = "-"


def bench_body(
    measurement: Measurement, scenario: Scenario, left_out: Sequence[tuple[str, str]]
) -> RenderableType:
    """Title, table, notes."""
    n, d, h, e, k = scenario.shape
    macs = count_text(count_work(scenario).macs)
    title = f"{scenario.label}: N={n} D={d} H={h} E={e} K={k}, {macs} MACs per forward"
    return Group(Text(title), _table(measurement), *_notes(measurement, scenario, left_out))


def _table(measurement: Measurement) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1), pad_edge=False, show_edge=False)
    table.add_column("variant", overflow="fold")
    table.add_column("path", no_wrap=True)
    titles = (
        "T", "time", "95 % interval", "speedup", "95 % interval", "/autovec", "rel RMSE",
    )  # fmt: skip
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True)
    for timing in measurement.timings:
        table.add_row(*(Text(cell) for cell in _cells(timing, measurement)))
    return table


def _cells(timing: VariantTiming, measurement: Measurement) -> tuple[str, ...]:
    time = median_interval(timing.samples_s) if timing.trusted else None
    speedup = speedup_of(timing, measurement.timing("scalar"))
    over_autovec = speedup_of(timing, measurement.timing("autovec"))
    return (
        timing.variant,
        timing.isa or MISSING,
        MISSING if timing.threads is None else str(timing.threads),
        timing.status if time is None else time_text(time.value),
        MISSING if time is None else _range(time, seconds=True),
        _times(speedup),
        MISSING if isinstance(speedup, str) else _range(speedup, seconds=False),
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
        f"{timing.variant}: {timing.reason or timing.note}"
        for timing in measurement.timings
        if timing.reason or timing.note
    ]
    lines += [f"not measured: {reason}" for _, reason in left_out]
    if measurement.interrupted:
        lines.append("interrupted: only what was measured before is shown")
    return [Text(line) for line in (*lines, *measurement.notes)]


def _times(ratio: Interval | str) -> str:
    return MISSING if isinstance(ratio, str) else f"{digits_text(ratio.value)}x"


def _range(interval: Interval, *, seconds: bool) -> str:
    if interval.low is None or interval.high is None:
        return MISSING
    if seconds:
        return time_range_text(interval.low, interval.high)
    return f"{digits_text(interval.low)} .. {digits_text(interval.high)}"
