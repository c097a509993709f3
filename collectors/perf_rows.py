"""``perf stat`` readings as tidy rows.

Counts come under perf's own event names in base units (s, bytes, J; plain counts have unit 1),
perf's derived metrics under perf's names, ratios recomputed from counts, top-down nodes in TMA's
spelling. With intervals each row has its start time and the run's totals follow, summed unless perf
printed them (``--summary``). ``+-`` is a standard error in perf and becomes the standard deviation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from moe_prof.collectors.perf_ratios import Ratio, ratios
from moe_prof.collectors.perf_reading import Block, Reading, Report, count_status, take_apart
from moe_prof.collectors.perf_topdown import Node, counterpart, nodes
from moe_prof.collectors.perf_units import split_metric, to_base
from moe_prof.rows import Row, Scope, Status

_IPC_TEXTS = ("insn per cycle", "insns per cycle", "insn_per_cycle")
_IPC_TOLERANCE = 0.1  # relative: the counts may be multiplexed
_IPC_ROUNDING = 0.06  # absolute: new versions print one decimal
_MISSING = {
    "not_supported": "this CPU, virtual machine or kernel does not count it",
    "not_counted": "the counter never ran: the counters are all taken, or the code did not run",
    "out_of_bounds": "perf printed no finite number",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """What every row of a report is labelled with; see :class:`moe_prof.rows.Row`.

    ``runs`` is the number of repetitions behind ``+-`` where the output does not say it (CSV and
    JSON); ``slots_per_cycle`` the dispatch width for AMD's raw counts.
    """

    scenario: str = ""
    variant: str = ""
    collector: str = "perf_stat"
    scope: Scope = "roi"
    repeat: int | None = None
    runs: int | None = None
    slots_per_cycle: int | None = None


def rows(report: Report, labels: Labels | None = None) -> list[Row]:
    """All rows of a report: counts, perf's metrics, recomputed ratios, top-down nodes, times."""
    maker = _Maker(report, labels or Labels())
    totals = _totals(report)
    counted = [*report.counts, *totals]
    recomputed = ratios(counted)
    found = [maker.count(reading) for reading in counted]
    found += [row for reading in report.readings if (row := maker.metric(reading, recomputed))]
    found += [maker.ratio(ratio) for ratio in recomputed]
    everything = replace(report, readings=(*report.readings, *totals))
    found += [maker.node(node) for node in nodes(
        everything, slots_per_cycle=maker.labels.slots_per_cycle)]  # fmt: skip
    for index, block in enumerate(report.blocks):
        found += maker.times(index, block)
    return found


class _Maker:
    """Turns readings of one report into rows with its labels."""

    def __init__(self, report: Report, labels: Labels) -> None:
        self.labels = labels
        self._blocks = report.blocks
        self._starts = _interval_starts(report.readings)

    def count(self, reading: Reading) -> Row:
        """The row of an event."""
        missing = reading.value is None
        value, unit = (None, to_base(1.0, reading.unit)[1])
        stddev: float | None = None
        if reading.value is not None:
            value, unit = to_base(reading.value, reading.unit)
            stddev = self._deviation(reading, value)
        source = _MISSING.get(reading.status, "") if missing else self._source(reading)
        if reading.status == "out_of_bounds" and not missing:
            negative = reading.value is not None and reading.value < 0
            why = (
                "a negative count" if negative else f"counting {reading.running_pct} % of the time"
            )
            source = f"{source}; {why} is impossible"
        return replace(
            self._row(reading),
            metric=reading.event,
            value=value,
            unit=unit,
            stddev=stddev,
            n=self._runs(reading) if reading.stddev_pct is not None else None,
            status=reading.status,
            provenance="unavailable" if missing else "measured",
            source=source,
        )

    def metric(self, reading: Reading, recomputed: Sequence[Ratio]) -> Row | None:
        """The row of perf's own metric; None where a count has none."""
        if not reading.metric_unit or (reading.event and reading.metric_value is None):
            return None
        metric = split_metric(reading.metric_unit)
        name = metric.name or f"{reading.event or 'events'}/sec"
        top_down = counterpart(metric.name) is not None
        value, unit = (None, to_base(1.0, metric.unit)[1])
        if reading.metric_value is not None:
            value, unit = to_base(reading.metric_value, metric.unit)
        status: Status = "out_of_bounds" if reading.metric_value is None else "ok"
        if not reading.event and reading.metric_value is None:
            status = reading.status
        source = "printed by perf" if value is not None else _MISSING.get(status, "")
        if value is not None and reading.running_pct is not None and reading.running_pct < 100:
            status = "multiplexed"
        true_ipc = _same_place_ipc(reading, recomputed) if metric.name in _IPC_TEXTS else None
        if value is not None and true_ipc and not _agree(value, true_ipc):
            status = "out_of_bounds"
            source = f"printed by perf; the counts of this PMU give {true_ipc:.2f}"
        if top_down and value is not None and not 0 <= value <= 1:
            status = "out_of_bounds"
        return replace(
            self._row(reading),
            metric=name,
            value=value,
            unit="slots" if top_down else unit,
            status=status,
            provenance="measured" if value is not None else "unavailable",
            source=source,
        )

    def ratio(self, ratio: Ratio) -> Row:
        """The row of a recomputed ratio."""
        return replace(
            self._row(ratio.at),
            metric=ratio.metric,
            value=ratio.value,
            unit="1",
            mux_pct=_share(ratio.running_pct),
            status=ratio.status,
            provenance="measured" if ratio.value is not None else "unavailable",
            source=ratio.note,
        )

    def node(self, node: Node) -> Row:
        """The row of a top-down node."""
        source = f"{node.perf_name}; {node.note}" if node.note else node.perf_name
        return replace(
            self._row(node.at),
            metric=node.name,
            level=node.level,
            value=node.value,
            unit="slots",
            status=node.status,
            provenance="measured" if node.value is not None else "unavailable",
            source=source,
        )

    def times(self, index: int, block: Block) -> list[Row]:
        """The footer's times; they are of the whole process, whatever region was counted."""
        named = (
            ("time_elapsed", block.elapsed_s), ("time_user", block.user_s),
            ("time_sys", block.sys_s),
        )  # fmt: skip
        template = self._row(Reading(event="", block=index))
        found = []
        for name, value in named:
            if value is None:
                continue
            stddev = block.elapsed_error_s if name == "time_elapsed" else None
            runs = block.runs or None if stddev is not None else None
            found.append(
                replace(
                    template,
                    scope="process",
                    metric=name,
                    value=value,
                    unit="s",
                    stddev=stddev * math.sqrt(runs) if stddev is not None and runs else None,
                    n=runs,
                    source="perf stat, whole process",
                )
            )
        return found

    def _row(self, reading: Reading) -> Row:
        several = len(self._blocks) > 1 and self.labels.repeat is None
        start = None
        if reading.time_s is not None:
            start = self._starts[reading.block, reading.time_s]
        where = [reading.scope, reading.pmu if reading.pmu not in (None, "cpu") else ""]
        if reading.cgroup:
            where.append(f"cgroup {reading.cgroup}")
        return Row(
            scenario=self.labels.scenario,
            variant=self.labels.variant,
            collector=self.labels.collector,
            scope=self.labels.scope,
            repeat=reading.block if several else self.labels.repeat,
            time_s=start,
            cpu=" ".join(part for part in where if part) or None,
            thread=reading.thread,
            metric="",
            value=None,
            unit="1",
            mux_pct=_share(reading.running_pct),
        )

    def _runs(self, reading: Reading) -> int | None:
        return self._blocks[reading.block].runs or self.labels.runs or None

    def _deviation(self, reading: Reading, value: float) -> float | None:
        runs = self._runs(reading)
        if reading.stddev_pct is None or not runs:
            return None
        return abs(value) * reading.stddev_pct / 100 * math.sqrt(runs)

    def _source(self, reading: Reading) -> str:
        words = [f"perf stat, line {reading.line}" if reading.line else "sum over the intervals"]
        if reading.stddev_pct is not None and not self._runs(reading):
            words.append(f"+-{reading.stddev_pct:g} % of unknown repetitions")
        if reading.status == "multiplexed" and reading.running_pct is not None:
            words.append(f"scaled by perf from {reading.running_pct:g} % of the time")
        return "; ".join(words)


def _share(percent: float | None) -> float | None:
    return None if percent is None else min(100.0, max(0.0, percent))


def _totals(report: Report) -> list[Reading]:
    """Sums over the intervals of each event, for runs whose output has no totals of its own."""
    complete = {reading.block for reading in report.readings if reading.summary}
    groups: dict[tuple[object, ...], list[Reading]] = {}
    for reading in report.counts:
        if reading.time_s is not None and reading.block not in complete:
            key = (
                reading.block, reading.scope, reading.thread, reading.cgroup, reading.pmu,
                reading.event,
            )  # fmt: skip
            groups.setdefault(key, []).append(reading)
    return [_sum(readings) for readings in groups.values()]


def _sum(readings: Sequence[Reading]) -> Reading:
    counted = [reading for reading in readings if reading.value is not None]
    if not counted:
        return replace(readings[0], time_s=None, line=0, metric_value=None, metric_unit="")
    running = [r.running_pct for r in counted if r.running_pct is not None]
    running_pct = min(running, default=None)
    value = math.fsum(r.value for r in counted if r.value is not None)
    return replace(
        counted[0],
        time_s=None,
        line=0,
        value=value,
        runtime_ns=None,
        running_pct=running_pct,
        status=count_status(value, running_pct),
        metric_value=None,
        metric_unit="",
    )


def _interval_starts(readings: Iterable[Reading]) -> dict[tuple[int, float], float]:
    ends: dict[int, set[float]] = {}
    for reading in readings:
        if reading.time_s is not None:
            ends.setdefault(reading.block, set()).add(reading.time_s)
    starts = {}
    for block, times in ends.items():
        previous = 0.0
        for time_s in sorted(times):
            starts[block, time_s] = previous
            previous = time_s
    return starts


def _same_place_ipc(reading: Reading, recomputed: Sequence[Ratio]) -> float | None:
    name = take_apart(reading.event)
    place = (reading.block, reading.time_s, reading.scope, reading.thread, name.pmu or reading.pmu)
    for ratio in recomputed:
        at = ratio.at
        if ratio.metric == "IPC" and place == (
            at.block, at.time_s, at.scope, at.thread, ratio.pmu,
        ):  # fmt: skip
            return ratio.value
    return None


def _agree(printed: float, recomputed: float) -> bool:
    return abs(printed - recomputed) <= max(_IPC_ROUNDING, _IPC_TOLERANCE * recomputed)
