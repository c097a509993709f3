"""Time over floor of our variants, per scenario and number of threads.

``python -m benchmarks.roofline``; the floor is that of ``moe_prof.analysis.roofline`` with the
experts that the scenario's tokens really touch, and with ceilings measured before, between and
after the contests of the same run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure
from rich import box
from rich.table import Table

from benchmarks.contest import Contest, Sampling, Standing, hold, interval_dict, scaled
from benchmarks.floors import Roof, floor_of
from benchmarks.log_axis import label_plainly
from benchmarks.program import Output, add_sampling, add_scenarios, main, scenarios_of, threads_of
from benchmarks.variants import entries, names_of
from moe_prof.analysis.ceilings import Ceilings
from moe_prof.analysis.roofline import Floor
from moe_prof.machine import Machine
from moe_prof.progress import Progress
from moe_prof.scenario import SCENARIOS
from moe_prof.stats import Interval
from moe_prof.units import digits_text, time_text

MISSING = "-"


class RooflineProgram:
    """Time our kernel variants, interleaved, each in a process of its own, and divide by the floor:
    the least time that the arithmetic and the weights' bytes allow at rates measured on this
    machine in the same run. Two floors: with the machine's best exact int8 path, and with the path
    that the variant ran on. Example: python -m benchmarks.roofline --scenario S1 S3 --variant
    openmp,packed --threads 1 2 --json roofline.json --plot roofline.png
    """

    name = "roofline"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """--scenario, --variant and the sampling."""
        add_scenarios(parser, tuple(SCENARIOS))
        parser.add_argument(
            "--variant", metavar="NAME[,NAME]", default="all",
            help="our variants, or 'all' that run here (default: all)",
        )  # fmt: skip
        add_sampling(parser)

    def run(self, args: argparse.Namespace, facts: Machine, progress: Progress) -> Output:
        """Measure; raises MoeProfError."""
        scenarios, teams = scenarios_of(args), threads_of(args, facts)
        contenders = entries(names_of(args.variant), teams)
        sampling = sampling_of(args)
        roof = Roof(facts, teams, progress)
        ceilings = roof.look()
        contests = []
        for scenario in scenarios:
            contests.append(hold(scenario, contenders, sampling, progress))
            ceilings = roof.look()
        lines = [
            judge(contest, standing, ceilings)
            for contest in contests
            for standing in contest.standings
        ]
        return Output(
            results=[line.as_dict() for line in lines],
            body=_table(lines),
            draw=lambda figure: _draw(figure, lines),
            ceilings=ceilings,
            notes=_notes(lines),
        )


@dataclass(frozen=True, slots=True)
class Line:
    """One contender's standing against both floors.

    Attributes:
        machine: the floor with the best exact path of the machine.
        own: the floor with the contender's own path; without a time where the path is unknown.
    """

    contest: Contest
    standing: Standing
    machine: Floor
    own: Floor

    @property
    def over_machine(self) -> Interval | None:
        """Time over the machine's floor; the interval is that of the time, the floor is fixed."""
        return _over(self.standing, self.machine)

    @property
    def over_own(self) -> Interval | None:
        """Time over the own path's floor."""
        return _over(self.standing, self.own)

    def as_dict(self) -> dict[str, object]:
        """As JSON types."""
        return {
            "scenario": self.contest.scenario.label, "shape": list(self.contest.scenario.shape),
            "experts_touched": self.contest.experts, **self.standing.as_dict(),
            "floor_s": self.machine.time_s, "floor_limit": self.machine.limit,
            "floor_level": self.machine.level, "floor_source": self.machine.source,
            "time_over_floor": interval_dict(self.over_machine),
            "path_floor_s": self.own.time_s, "path_floor_source": self.own.source,
            "time_over_path_floor": interval_dict(self.over_own),
        }  # fmt: skip


def judge(contest: Contest, standing: Standing, ceilings: Ceilings) -> Line:
    """A standing beside its floors."""
    threads = standing.entry.threads
    return Line(
        contest,
        standing,
        floor_of(contest.scenario, contest.experts, ceilings, threads),
        floor_of(contest.scenario, contest.experts, ceilings, threads, standing.path),
    )


def sampling_of(args: argparse.Namespace) -> Sampling:
    """The options of ``add_sampling``."""
    return Sampling(args.rounds, args.processes, args.min_sample_s, args.max_time_s, args.seed)


def time_cells(interval: Interval | None, missing: str = MISSING) -> tuple[str, str]:
    """A time and the half width of its interval."""
    if interval is None:
        return missing, MISSING
    half = interval.half_width
    return time_text(interval.value), MISSING if half is None else f"{100 * half:.1f} %"


def times_text(interval: Interval | None) -> str:
    """A ratio with its interval: ``1.31 [1.29, 1.34]``."""
    if interval is None:
        return MISSING
    text = digits_text(interval.value)
    if interval.low is None or interval.high is None:
        return text
    return f"{text} [{digits_text(interval.low)}, {digits_text(interval.high)}]"


def _over(standing: Standing, bound: Floor) -> Interval | None:
    return scaled(standing.time, None if bound.time_s is None else 1 / bound.time_s)


def _table(lines: Sequence[Line]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1), pad_edge=False, show_edge=False)
    for title in ("", "variant", "path"):
        table.add_column(title, no_wrap=True)
    for title in ("T", "time", "floor", "time / floor", "path's floor", "time / it"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("limit", no_wrap=True)
    before = ""
    for line in lines:
        label = line.contest.scenario.label
        standing = line.standing
        table.add_row(
            "" if label == before else label, standing.entry.name, standing.path or MISSING,
            str(standing.entry.threads), time_cells(standing.time, standing.status)[0],
            _floor_text(line.machine), times_text(line.over_machine), _floor_text(line.own),
            MISSING if line.over_own is None else digits_text(line.over_own.value),
            f"{line.machine.limit or MISSING}, {line.machine.level}",
        )  # fmt: skip
        before = label
    return table


def _floor_text(bound: Floor) -> str:
    return MISSING if bound.time_s is None else time_text(bound.time_s)


def _notes(lines: Sequence[Line]) -> tuple[str, ...]:
    counts = [len(line.standing.samples_s) for line in lines if line.standing.status == "ok"]
    notes = []
    if counts:
        notes.append(f"medians of {min(counts)} to {max(counts)} samples, interleaved")
    notes += [
        f"{line.contest.scenario.label} {line.standing.entry.name}, "
        f"{line.standing.entry.threads} threads: {line.standing.reason}"
        for line in lines
        if line.standing.reason
    ]
    return tuple(notes)


def _draw(figure: Figure, lines: Sequence[Line]) -> None:
    """One panel a scenario: time over floor of every contender and team, floor = 1."""
    labels = list(dict.fromkeys(line.contest.scenario.label for line in lines))
    panels = figure.subplots(1, len(labels), squeeze=False, sharey=True)[0]
    names = list(dict.fromkeys(line.standing.entry.name for line in lines))
    for axes, label in zip(panels, labels, strict=True):
        for team in dict.fromkeys(line.standing.entry.threads for line in lines):
            points = [
                (line.over_machine.value, names.index(line.standing.entry.name))
                for line in lines
                if line.contest.scenario.label == label
                and line.standing.entry.threads == team
                and line.over_machine is not None
            ]
            axes.plot(
                [x for x, _ in points], [y for _, y in points], "o",
                label=f"{team} thread{'s' if team > 1 else ''}",
            )  # fmt: skip
        axes.set_xscale("log")
        axes.axvline(1.0, color="black", linewidth=0.8)
        axes.set_title(label)
        axes.set_xlabel("time / floor")
        label_plainly(axes.xaxis)
        axes.grid(axis="x", alpha=0.3)
    panels[0].set_yticks(range(len(names)), names)
    panels[0].invert_yaxis()
    panels[0].legend()
    figure.set_size_inches(3.2 * len(labels) + 1.5, 4.0)


if __name__ == "__main__":
    sys.exit(main(RooflineProgram()))
