"""The text of ``hotspots``: one table a variant, work first, waiting apart, then lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from moe_prof.collectors.stacks import Profile
from moe_prof.hotspots.names import short_name
from moe_prof.hotspots.places import file_name, source_text
from moe_prof.hotspots.summary import (
    Hotspot,
    PlaceShare,
    busiest,
    knows_waiting,
    phase_shares,
    share_of,
    thread_weights,
)
from moe_prof.units import count_text, share_text, time_text

MOST_THREADS = 4  # columns; more threads are in the rows of --format json
MOST_WAITS = 6
_TITLES = {
    "perf_record": "perf record", "callgrind": "callgrind (simulated)", "gprof": "gprof",
    "vtune": "VTune",
}  # fmt: skip
_SCOPES = {"roi": "of the forward loop", "process": "of the whole process"}


@dataclass(frozen=True, slots=True)
class Report:
    """What is shown of one variant.

    Attributes:
        most: lines of each table.
        lines / instructions: by share, empty when not asked for or not known.
        texts: assembly by module and address.
    """

    scenario: str
    variant: str
    profile: Profile
    spots: Sequence[Hotspot]
    most: int
    lines: Sequence[PlaceShare] = ()
    instructions: Sequence[PlaceShare] = ()
    texts: Mapping[tuple[str, int], str] | None = None


def body(report: Report) -> list[RenderableType]:
    """Everything about one variant."""
    parts: list[RenderableType] = [
        Text(f"{report.scenario} {report.variant}: {_what(report.profile)}", style="bold"),
        _functions(report),
        "",
        *(Text(line) for line in _sums(report.profile)),
    ]
    if report.lines:
        parts += ["", Text("By source line", style="bold"), _lines(report)]
    if report.instructions:
        parts += ["", Text("By instruction", style="bold"), _instructions(report)]
    parts += [Text(f"{note[0].upper()}{note[1:]}.", style="dim") for note in report.profile.notes]
    return parts


def _what(profile: Profile) -> str:
    size = time_text(profile.total) if profile.unit == "s" else count_text(profile.total)
    unit = "" if profile.unit == "s" else f" {profile.unit}"
    if profile.samples and profile.unit == "samples":
        size, unit = f"{profile.samples}", " samples"
    elif profile.samples:
        size = f"{profile.samples} samples, {size}"
    tool = _TITLES.get(profile.collector, profile.collector)
    event = "" if profile.collector in {"callgrind", "gprof", "vtune"} else f" ({profile.event})"
    threads = len(profile.threads)
    where = f", {threads} threads" if threads > 1 else ""
    return f"{tool}{event}, {size}{unit} {_SCOPES.get(profile.scope, '')}{where}"


def _functions(report: Report) -> Table:
    threads = report.profile.threads if 1 < len(report.profile.threads) <= MOST_THREADS else ()
    table = _table()
    totals = ("total",) if report.profile.has_callers else ()
    for title in ("self", *totals, *(f"T{name}" for name in threads)):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("phase", no_wrap=True)
    table.add_column("function", overflow="fold")
    work = busiest(report.spots, waiting=False, most=report.most)
    waits = busiest(report.spots, waiting=True, most=MOST_WAITS)
    for spot in work:
        table.add_row(*_cells(spot, threads, report.profile))
    if waits:
        if work:
            table.add_section()
        for spot in waits:
            table.add_row(*_cells(spot, threads, report.profile))
    return table


def _cells(spot: Hotspot, threads: Sequence[str], profile: Profile) -> list[RenderableType]:
    phase = "waiting" if spot.key.waiting else spot.key.phase or "-"
    return [
        _percent(spot.own),
        *([_percent(spot.total)] if profile.has_callers else []),
        *(_percent(spot.threads.get(name, 0.0)) for name in threads),
        phase,
        Text(f"{short_name(spot.key.function)}{_module(spot, profile)}"),
    ]


def _module(spot: Hotspot, profile: Profile) -> str:
    """The module, where it is not the one that most of the cost is in."""
    sums: dict[str, float] = {}
    for stack in profile.stacks:
        if stack.frames:
            name = stack.frames[-1].module_name
            sums[name] = sums.get(name, 0.0) + stack.weight
    main = max(sums, key=lambda name: sums[name]) if sums else ""
    return "" if spot.key.module in {"", main} else f" [{spot.key.module.strip('[]')}]"


def _sums(profile: Profile) -> list[str]:
    """Waiting by thread, and work by phase."""
    waiting = [stack for stack in profile.stacks if stack.waiting]
    share = share_of(profile, waiting)
    lines = [f"waiting {share_text(share if knows_waiting(profile) else None)}"]
    weights = thread_weights(profile)
    named = [name for name in profile.threads if weights.get(name)]
    if waiting and 1 < len(named) <= 2 * MOST_THREADS:
        parts = (
            f"thread {name} "
            + share_text(sum(s.weight for s in waiting if s.thread == name) / weights[name])
            for name in named
        )
        lines[0] += f" ({', '.join(parts)})"
    phases = ", ".join(f"{name} {share_text(part)}" for name, part in phase_shares(profile).items())
    return [*lines, f"work by phase: {phases}"] if phases else lines


def _lines(report: Report) -> Table:
    table = _table()
    table.add_column("self", justify="right", no_wrap=True)
    table.add_column("line", no_wrap=True)
    table.add_column("source")
    for place in report.lines[: report.most]:
        text = source_text(place.file, place.line) or short_name(place.function)
        where = f"{file_name(place.file)}:{place.line}"
        source = Text(text, no_wrap=True, overflow="ellipsis")  # cut off before figures are
        table.add_row(_percent(place.share), Text(where), source)
    return table


def _instructions(report: Report) -> Table:
    texts = report.texts or {}
    table = _table()
    table.add_column("self", justify="right", no_wrap=True)
    table.add_column("address", justify="right", no_wrap=True)
    table.add_column("instruction", overflow="fold")
    table.add_column("line", overflow="fold")
    for place in report.instructions[: report.most]:
        address = place.address or 0
        where = f"{file_name(place.file)}:{place.line}" if place.line else "-"
        text = texts.get((place.module, address), short_name(place.function))
        table.add_row(_percent(place.share), f"{address:x}", Text(text), Text(where))
    return table


def _table() -> Table:
    return Table(box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1), pad_edge=False, show_edge=False)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
