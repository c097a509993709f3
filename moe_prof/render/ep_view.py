"""The text of ``ep``, made of tidy rows alone, so that reports show the same tables.

One case is shown in full: times, bytes by stage beside the plan's, loads, who waited for whom. Of
several cases one line each is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.text import Text

from moe_prof.analysis.query import RowIndex
from moe_prof.ep.abi import STAGES, TRAFFICS
from moe_prof.ep.cases import FUSED, SMALL_OPS
from moe_prof.ep.result_rows import (
    EXPOSED,
    EXPOSED_SHARE,
    NAME,
    OVERLAP,
    RATE,
    SHA256,
    SPEEDUP,
)
from moe_prof.ep.results import WAITS
from moe_prof.render.fitted import Column, FittedTable
from moe_prof.render.headline import crowd_line, oversubscribed_line
from moe_prof.render.tables import MISSING
from moe_prof.rows import Row
from moe_prof.units import (
    byte_pair_text,
    bytes_text,
    count_text,
    digits_text,
    share_text,
    time_range_text,
    time_text,
)

Form = Callable[[float], str]
HASH_DIGITS = 16
MOST_RANKS = 16
"""Ranks of a wait matrix that are shown; the rows have all."""


@dataclass(frozen=True, slots=True)
class EpCase:
    """The rows of one case."""

    label: str
    index: RowIndex
    variants: tuple[str, ...]

    @property
    def ranks(self) -> int:
        """P; 1 when unknown."""
        return int(self.index.value("", "ranks") or 1)


def cases_of(rows: Iterable[Row]) -> tuple[EpCase, ...]:
    """The expert-parallel cases among rows, in their order."""
    by_scenario: dict[str, list[Row]] = {}
    for row in rows:
        if row.collector == NAME:
            by_scenario.setdefault(row.scenario, []).append(row)
    found = []
    for label, own in by_scenario.items():
        index = RowIndex(own)
        found.append(EpCase(label, index, tuple(index.variants)))
    return tuple(found)


def ep_body(rows: Sequence[Row], notes: Sequence[str] = ()) -> RenderableType:
    """Everything that ``ep`` prints."""
    cases = cases_of(rows)
    view: list[RenderableType] = []
    for case in cases:
        view += crowd_line(case.index, case.variants)[: 0 if view else 1]
    if len(cases) == 1:
        view += _in_full(cases[0])
    else:
        view += [overview_table(cases), ""]
        view.append(Text("bytes through memory, counted / planned; load; output", style="bold"))
        view += [output_table(cases), *_ablation_views(cases), *_oversubscribed(cases)]
        view.append(Text("stages, loads and waits of each case stand in --format json and reports"))
    view += [Text(note) for note in notes]
    return Group(*view)


def answer_text(case: EpCase) -> str:
    """``fused takes 0.81 of small_ops' time (1.21 .. 1.26 times as fast)``; "" without times."""
    ratio = case.index.row(FUSED, SPEEDUP)
    if ratio is None:
        return ""
    if ratio.value is None:
        return f"fused over small_ops: no ratio: {ratio.source}"
    words = case.index.text(FUSED, "comparison")
    told = {
        "faster": "fused is faster than small ops",
        "slower": "fused loses against small ops here",
        "same": "fused and small ops take the same time",
    }.get(words, "whether fusing helps is too noisy to say")
    interval = _interval(case, FUSED, SPEEDUP, _plain_range)
    return f"{told}: {digits_text(ratio.value)} times its speed (95 %: {interval})"


def times_table(case: EpCase) -> FittedTable:
    """A line a variant: time, tokens a second, ratio to small ops, communication."""
    titles = (
        "time", "95 % interval", "tokens/s", "over small", "95 % interval", "exposed", "of call",
        "overlap",
    )  # fmt: skip
    table = FittedTable("variant", (*map(Column, titles), Column("path", "left"), Column("T")))
    for name in case.variants:
        table.add_row(
            name,
            _cell(case, name, "time", time_text),
            _interval(case, name, "time", time_range_text),
            _cell(case, name, RATE, count_text),
            _cell(case, name, SPEEDUP, _times),
            _interval(case, name, SPEEDUP, _plain_range),
            _cell(case, name, EXPOSED, time_text),
            _cell(case, name, EXPOSED_SHARE, share_text),
            _cell(case, name, OVERLAP, share_text),
            case.index.text(name, "isa") or MISSING,
            _threads(case, name),
        )
    return table


def overview_table(cases: Sequence[EpCase]) -> FittedTable:
    """A line a case: fused against small ops."""
    titles = (
        "fused", "small_ops", "speedup", "95 % interval", "exposed", "overlap",
    )  # fmt: skip
    table = FittedTable("case", (*map(Column, titles), Column("verdict", "left")))
    for case in cases:
        table.add_row(
            case.label,
            _cell(case, FUSED, "time", time_text),
            _cell(case, SMALL_OPS, "time", time_text),
            _cell(case, FUSED, SPEEDUP, _times),
            _interval(case, FUSED, SPEEDUP, _plain_range),
            _cell(case, FUSED, EXPOSED_SHARE, share_text),
            _cell(case, FUSED, OVERLAP, share_text),
            case.index.text(FUSED, "comparison") or MISSING,
        )
    return table


def output_table(cases: Sequence[EpCase]) -> FittedTable:
    """A line a case: bytes through memory, the largest load, the output's hash."""
    titles = ("fused bytes", "small ops' bytes", "max/mean rows")
    table = FittedTable("case", (*map(Column, titles), Column("sha256", "left")))
    for case in cases:
        hashes = {case.index.text(name, SHA256) for name in case.variants}
        table.add_row(
            case.label,
            _total_bytes(case, FUSED),
            _total_bytes(case, SMALL_OPS),
            _load(case, "load_max_over_mean", "experts"),
            hashes.pop()[:HASH_DIGITS] if len(hashes) == 1 else "differs",
        )
    return table


def bytes_table(case: EpCase) -> FittedTable:
    """Bytes of a call through memory by stage, all ranks: counted / as the plan predicts."""
    table = FittedTable("stage", [Column(name) for name in case.variants])
    totals = dict.fromkeys(case.variants, (0.0, 0.0))
    for stage in STAGES:
        cells = []
        for name in case.variants:
            counted, planned = (
                _bytes(case, name, "memory", stage, suffix) for suffix in ("", "_predicted")
            )
            known = (counted or 0.0, planned or 0.0)
            totals[name] = (totals[name][0] + known[0], totals[name][1] + known[1])
            cells.append(byte_pair_text(*known) if any(known) else MISSING)
        if any(cell != MISSING for cell in cells):
            table.add_row(stage, *cells)
    if table.row_count:
        table.add_row("total", *(byte_pair_text(*totals[name]) for name in case.variants))
    return table


def cache_table(case: EpCase) -> FittedTable:
    """Bytes of a call through blocks that stay in caches, counted; the plan has none."""
    table = FittedTable("stage", [Column(name) for name in case.variants])
    for stage in STAGES:
        values = [_bytes(case, name, "cache", stage, "") for name in case.variants]
        if any(values):
            table.add_row(stage, *(MISSING if not v else bytes_text(v) for v in values))
    return table


def stages_table(case: EpCase) -> FittedTable:
    """Time of a call by stage, all threads of all ranks together."""
    table = FittedTable("stage", [Column(name) for name in case.variants])
    for stage in STAGES:
        metric = "wait_time" if stage in WAITS else "phase_time"
        values = [case.index.value(name, metric, phase=stage) for name in case.variants]
        if any(values):
            table.add_row(stage, *(MISSING if v is None else time_text(v) for v in values))
    return table


def waits_table(case: EpCase, variant: str) -> FittedTable | None:
    """Who waited for whom, dispatch and combine together; None where it is not known."""
    ranks = range(min(case.ranks, MOST_RANKS))
    table = FittedTable("waits", [Column(f"for rank {peer}") for peer in ranks])
    known = False
    for rank in ranks:
        cells = []
        for peer in ranks:
            metric, thread = f"wait_for_rank_{peer}", f"rank {rank}"
            parts = [
                case.index.value(variant, metric, phase=stage, thread=thread) for stage in WAITS
            ]
            told = [part for part in parts if part is not None]
            known = known or bool(told)
            cells.append(time_text(sum(told)) if told else MISSING)
        table.add_row(f"rank {rank}", *cells)
    return table if known else None


def tables_of(case: EpCase) -> list[tuple[str, FittedTable]]:
    """Titles and tables by stage that have rows."""
    found = [
        ("bytes through memory (windows, workspace, weights, x, output): counted / planned",
         bytes_table(case)),
        ("bytes through blocks that stay in caches: counted", cache_table(case)),
        ("time by stage, threads of all ranks together", stages_table(case)),
    ]  # fmt: skip
    return [(title, table) for title, table in found if table.row_count]


def load_text(case: EpCase) -> str:
    """Maximum over mean, and the coefficient of variation, of experts and of ranks."""
    parts = [
        f"{phase}: largest {_load(case, 'load_max_over_mean', phase)} times the mean, coefficient "
        f"of variation {_load(case, 'load_variation', phase)}"
        for phase in ("experts", "ranks")
    ]
    return f"rows of {'; of '.join(parts)}"


def ablation_table(cases: Sequence[EpCase]) -> FittedTable:
    """A line a case: speed over small ops of every variant, with the interval's ends."""
    names = [n for n in dict.fromkeys(n for case in cases for n in case.variants) if n != SMALL_OPS]
    table = FittedTable("case", [Column(name) for name in names])
    for case in cases:
        cells = []
        for name in names:
            value = _cell(case, name, SPEEDUP, _times)
            interval = _interval(case, name, SPEEDUP, _plain_range)
            cells.append(value if MISSING in (value, interval) else f"{value} ({interval})")
        table.add_row(case.label, *cells)
    return table


def _ablation_views(cases: Sequence[EpCase]) -> list[RenderableType]:
    if all(set(case.variants) <= {FUSED, SMALL_OPS} for case in cases):
        return []
    return ["", Text("speed over small ops (95 % interval)", style="bold"), ablation_table(cases)]


def _oversubscribed(cases: Sequence[EpCase]) -> list[RenderableType]:
    """The warning of every number of ranks that is too many, once."""
    rows = [case.index.row(FUSED, "threads") for case in cases]
    told = [row.source for row in rows if row is not None and row.status == "out_of_bounds"]
    return [Text(line) for line in dict.fromkeys(told)]


def _total_bytes(case: EpCase, variant: str) -> str:
    """Of all stages: counted / planned."""
    sums = [
        sum(_bytes(case, variant, "memory", stage, suffix) or 0.0 for stage in STAGES)
        for suffix in ("", "_predicted")
    ]
    return byte_pair_text(*sums) if any(sums) else MISSING


def _in_full(case: EpCase) -> list[RenderableType]:
    how = case.index.text("", "ranks")
    view: list[RenderableType] = [Text(f"{case.label}: {how}", style="bold")]
    answer = answer_text(case)
    view += [Text(answer)] if answer else []
    view += [times_table(case), *oversubscribed_line(case.index, case.variants), *_legend(case), ""]
    for title, table in tables_of(case):
        view += [Text(title, style="bold"), table, ""]
    view += [Text(load_text(case)), *_memory_lines(case)]
    for name in case.variants:
        waits = waits_table(case, name)
        if waits is not None:
            view += ["", Text(f"{name}: who waited how long for whom, a call"), waits]
    return view


def _legend(case: EpCase) -> list[Text]:
    lines = [
        "time: of the slowest rank, median; exposed: waits and rows moved apart from products; "
        "overlap: share of small ops' exposed communication that is hidden"
    ]
    hashes = {name: case.index.text(name, SHA256) for name in case.variants}
    if len(set(hashes.values())) == 1:
        lines.append("output: the same bits in all variants; sha256:")
        lines.append(next(iter(hashes.values())))
    else:
        told = ", ".join(f"{name} {text[:HASH_DIGITS]}" for name, text in hashes.items())
        lines.append(f"output: sha256 differs: {told}")
    checked = {name: case.index.row(name, "rel_rmse") for name in case.variants}
    if any(row is not None and row.value is not None for row in checked.values()):
        told = ", ".join(
            f"{name} {row.value:.1e}"
            for name, row in checked.items()
            if row is not None and row.value is not None
        )
        lines.append(f"relative RMSE against the float64 oracle: {told}")
    return [Text(line) for line in lines]


def _memory_lines(case: EpCase) -> list[Text]:
    values = [
        case.index.value("", name)
        for name in ("workspace_bytes", "workspace_apart_bytes", "window_bytes")
    ]
    if any(value is None for value in values):
        return []
    shared, apart, window = (bytes_text(value or 0.0) for value in values)
    return [
        Text(
            f"a rank's workspace: {shared} with segments that share memory, {apart} without; its "
            f"window: {window}"
        )
    ]


def _bytes(case: EpCase, variant: str, level: str, stage: str, suffix: str) -> float | None:
    kinds = [name for name in TRAFFICS if name.startswith(level)]
    values = [case.index.value(variant, f"bytes_{kind}{suffix}", phase=stage) for kind in kinds]
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _load(case: EpCase, metric: str, phase: str) -> str:
    value = case.index.value("", metric, phase=phase)
    return MISSING if value is None else digits_text(value)


def _threads(case: EpCase, variant: str) -> str:
    row = case.index.row(variant, "threads")
    if row is None or row.value is None:
        return MISSING
    return f"{row.value:.0f}{'!' if row.status == 'out_of_bounds' else ''}"


def _cell(case: EpCase, variant: str, metric: str, form: Form) -> str:
    value = case.index.value(variant, metric)
    return MISSING if value is None else form(value)


def _interval(case: EpCase, variant: str, metric: str, form: Callable[[float, float], str]) -> str:
    low, high = (case.index.value(variant, f"{metric}_ci_{end}") for end in ("low", "high"))
    return MISSING if low is None or high is None else form(low, high)


def _times(value: float) -> str:
    return f"{digits_text(value)}x"


def _plain_range(low: float, high: float) -> str:
    return f"{digits_text(low)} .. {digits_text(high)}"
