"""The machine's ceilings: exact int8 and fp32 arithmetic, reads of every level, latencies, clock.

``python -m benchmarks.ceilings``; what each ceiling is stands in ``moe_prof.analysis.ceilings``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from matplotlib.figure import Figure
from rich import box
from rich.table import Table

from benchmarks.program import Output, main, threads_of
from moe_prof.analysis.ceilings import Ceiling, Ceilings, best_of
from moe_prof.machine import Machine
from moe_prof.measure.ceilings import measure
from moe_prof.progress import Progress
from moe_prof.units import count_text, digits_text, time_text

MISSING = "-"


class CeilingsProgram:
    """Measure the highest rates of this machine with teams of 1 to T threads: exact int8 and fp32
    multiply-adds on every path that the CPU has, reads from every level of the memory, the latency
    of a load, the clock. The best of several passes counts, since other programs can only slow a
    probe down. Example: python -m benchmarks.ceilings --thorough --json ceilings.json
    """

    name = "ceilings"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """--thorough, --passes."""
        parser.add_argument(
            "--thorough", action="store_true",
            help="longer batches, and sets that leave even a very large last-level cache (default: "
            "one to two seconds a team)",
        )  # fmt: skip
        parser.add_argument(
            "--passes", type=int, default=1, metavar="P",
            help="repeat everything and keep the best of each (default: 1)",
        )  # fmt: skip

    def run(self, args: argparse.Namespace, facts: Machine, progress: Progress) -> Output:
        """Measure; raises BuildError."""
        teams = threads_of(args, facts)
        found = measure(facts, teams, quick=not args.thorough, progress=progress)
        for _ in range(args.passes - 1):
            again = measure(facts, teams, quick=not args.thorough, progress=progress)
            found = best_of(found, again)
        shown = tuple(entry for entry in found.entries if entry.threads in teams)
        return Output(
            results=[ceiling_dict(entry) for entry in shown],
            body=_table(Ceilings(shown), teams),
            draw=lambda figure: _draw(figure, Ceilings(shown), teams),
            ceilings=Ceilings(shown),
            notes=_notes(shown),
        )


def ceiling_dict(entry: Ceiling) -> dict[str, object]:
    """A ceiling as JSON types."""
    return {
        "name": entry.name, "threads": entry.threads, "value": entry.value, "unit": entry.unit,
        "source": entry.source,
    }  # fmt: skip


def _table(found: Ceilings, teams: Sequence[int]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1), pad_edge=False, show_edge=False)
    table.add_column("ceiling", no_wrap=True)
    for team in teams:
        table.add_column(f"{team} thread{'s' if team > 1 else ''}", justify="right", no_wrap=True)
    if len(teams) > 1:
        table.add_column("per thread", justify="right", no_wrap=True)
    for name in dict.fromkeys(entry.name for entry in found.entries):
        cells = [_cell(found.find(name, team)) for team in teams]
        if len(teams) > 1:
            cells.append(_per_thread(found, name, teams))
        table.add_row(name, *cells)
    return table


def _cell(entry: Ceiling | None) -> str:
    if entry is None or entry.value is None:
        return MISSING
    if entry.unit == "s":
        return time_text(entry.value)
    return f"{count_text(entry.value)}{'' if entry.unit == 'Hz' else ' '}{entry.unit}"


def _per_thread(found: Ceilings, name: str, teams: Sequence[int]) -> str:
    """Rate of each thread of the largest team as a share of what one thread reaches alone."""
    one, all_of_them = found.value(name, 1), found.value(name, max(teams))
    if one is None or all_of_them is None:
        return MISSING
    return f"{digits_text(all_of_them / max(teams) / one)}x"


def _notes(entries: Sequence[Ceiling]) -> tuple[str, ...]:
    missing = {entry.name: entry.source for entry in entries if entry.value is None}
    return tuple(f"{name}: {reason}" for name, reason in missing.items())


def _draw(figure: Figure, found: Ceilings, teams: Sequence[int]) -> None:
    for axes, unit, title in zip(
        figure.subplots(1, 2), ("MAC/s", "bytes/s"), ("G MAC/s", "GB/s read"), strict=True
    ):
        names = [
            name
            for name in dict.fromkeys(e.name for e in found.entries if e.unit == unit)
            if any(found.value(name, team) for team in teams)
        ]
        height = 0.8 / len(teams)
        for index, team in enumerate(teams):
            values = [(found.value(name, team) or 0.0) / 1e9 for name in names]
            places = [place + index * height for place in range(len(names))]
            bars = axes.barh(
                places, values, height, label=f"{team} thread{'s' if team > 1 else ''}"
            )
            axes.bar_label(bars, [f"{value:.3g}" for value in values], padding=2, fontsize=7)
        axes.set_yticks([place + 0.4 - height / 2 for place in range(len(names))], names)
        axes.invert_yaxis()
        axes.margins(x=0.12)
        axes.grid(axis="x", alpha=0.3)
        axes.set_xlabel(title)
        axes.legend()
    figure.set_size_inches(11, 4.5)


if __name__ == "__main__":
    sys.exit(main(CeilingsProgram()))
