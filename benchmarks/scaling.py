"""How a variant scales with threads and with the number of tokens.

``python -m benchmarks.scaling``. With threads: time, speedup over one thread, and efficiency per
core, beside the efficiency that the memory roofline allows. With N: time per token and the share of
the roofline, for the scenario's layer with 1, 2, 4 ... tokens.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

from matplotlib.figure import Figure
from rich import box
from rich.table import Table

from benchmarks.contest import Contest, Standing, hold, interval_dict, scaled
from benchmarks.floors import Roof
from benchmarks.log_axis import label_plainly
from benchmarks.program import Output, add_sampling, add_scenarios, main, scenarios_of, threads_of
from benchmarks.roofline import Line, judge, sampling_of, time_cells, times_text
from benchmarks.variants import entries, names_of
from moe_prof.analysis.ceilings import Ceilings
from moe_prof.analysis.work import count_work
from moe_prof.commands.options import positive_int
from moe_prof.machine import Machine
from moe_prof.progress import Progress
from moe_prof.scenario import Scenario
from moe_prof.stats import Interval
from moe_prof.units import count_text, share_text, time_text

MISSING = "-"
MOST_TOKENS = 1024


class ScalingProgram:
    """Scale our variants with threads and with tokens. For each scenario: teams of 1 to T threads,
    interleaved, with the efficiency per core, and what the memory roofline allows of it; and the
    scenario's layer with N = 1 to 1024 tokens, with the time per token and the share of the
    roofline. Example: python -m benchmarks.scaling --scenario S3 --variant packed --threads 1 2 4
    """

    name = "scaling"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """--scenario, --variant, --tokens and the sampling."""
        add_scenarios(parser, ("S3",))
        parser.add_argument(
            "--variant", metavar="NAME[,NAME]", default="packed",
            help="our variants, or 'all' that run here (default: packed)",
        )  # fmt: skip
        parser.add_argument(
            "--tokens", metavar="N", type=positive_int, nargs="*", default=None,
            help=f"numbers of tokens (default: 1, 2, 4 ... {MOST_TOKENS}); none: threads only",
        )  # fmt: skip
        add_sampling(parser)

    def run(self, args: argparse.Namespace, facts: Machine, progress: Progress) -> Output:
        """Measure; raises MoeProfError."""
        scenarios, teams = scenarios_of(args), sorted({1, *threads_of(args, facts)})
        contenders = entries(names_of(args.variant), teams)
        sampling = sampling_of(args)
        roof = Roof(facts, teams, progress)
        roof.look()
        contests = [
            hold(scenario, contenders, sampling, progress)
            for scenario in _sweep(scenarios, args.tokens)
        ]
        ceilings = roof.look()
        points = [
            Point(judge(contest, standing, ceilings), _alone(contest, standing, ceilings))
            for contest in contests
            for standing in contest.standings
        ]
        return Output(
            results=[point.as_dict() for point in points],
            body=_table(points),
            draw=lambda figure: _draw(figure, points, scenarios),
            ceilings=ceilings,
            notes=_notes(points),
        )


@dataclass(frozen=True, slots=True)
class Point:
    """A contender beside the same variant with one thread (``alone``, from the same contest)."""

    line: Line
    alone: Line | None

    @property
    def threads(self) -> int:
        """Size of the team."""
        return self.line.standing.entry.threads

    @property
    def efficiency(self) -> Interval | None:
        """Speedup over one thread, divided by the threads."""
        if self.alone is None:
            return None
        return scaled(self.alone.standing.over(self.line.standing), 1 / self.threads)

    @property
    def allowed(self) -> float | None:
        """The same of the two floors: what arithmetic and memory allow of perfect scaling."""
        if self.alone is None or not self.alone.machine.time_s or not self.line.machine.time_s:
            return None
        return self.alone.machine.time_s / self.line.machine.time_s / self.threads

    @property
    def share_of_roofline(self) -> float | None:
        """Floor over time."""
        over = self.line.over_machine
        return None if over is None else 1 / over.value

    def as_dict(self) -> dict[str, object]:
        """As JSON types."""
        return {
            **self.line.as_dict(), "tokens": self.line.contest.scenario.num_tokens,
            "macs": count_work(self.line.contest.scenario).macs,
            "efficiency": interval_dict(self.efficiency), "efficiency_allowed": self.allowed,
            "roofline_fraction": self.share_of_roofline,
        }  # fmt: skip


def _sweep(scenarios: Sequence[Scenario], tokens: Sequence[int] | None) -> list[Scenario]:
    """Each scenario as it is and with every number of tokens, ascending, none twice."""
    if tokens is None:
        tokens = [1 << power for power in range(MOST_TOKENS.bit_length())]
    found: dict[tuple[int, ...], Scenario] = {}
    for scenario in scenarios:
        others = [replace(scenario, num_tokens=number, name="") for number in tokens]
        for each in sorted((scenario, *others), key=lambda one: (one.num_tokens, not one.name)):
            found.setdefault(each.shape, each)
    return list(found.values())


def _alone(contest: Contest, standing: Standing, ceilings: Ceilings) -> Line | None:
    """The same variant with one thread in the same contest."""
    found = contest.find(standing.entry.name, 1)
    return None if found is None else judge(contest, found, ceilings)


def _table(points: Sequence[Point]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1), pad_edge=False, show_edge=False)
    for title in ("N,D,H,E,K", "variant"):
        table.add_column(title, no_wrap=True)
    for title in (
        "T", "time", "95 % +-", "per token", "MAC/s", "of roofline", "efficiency per core",
        "allowed",
    ):  # fmt: skip
        table.add_column(title, justify="right", no_wrap=True)
    before = ""
    for point in points:
        contest, standing = point.line.contest, point.line.standing
        label = contest.scenario.shape_text
        time, half = time_cells(standing.time, standing.status)
        table.add_row(
            "" if label == before else label, standing.entry.name, str(point.threads), time, half,
            *_rates(point), share_text(point.share_of_roofline), times_text(point.efficiency),
            MISSING if point.allowed is None else f"{point.allowed:.2f}",
        )  # fmt: skip
        before = label
    return table


def _rates(point: Point) -> tuple[str, str]:
    time_s = point.line.standing.time
    if time_s is None:
        return MISSING, MISSING
    scenario = point.line.contest.scenario
    per_token = time_text(time_s.value / scenario.num_tokens)
    return per_token, count_text(count_work(scenario).macs / time_s.value)


def _notes(points: Sequence[Point]) -> tuple[str, ...]:
    return (
        "efficiency per core: speedup over one thread, divided by the threads; allowed: the same "
        "of the floors",
        *(
            f"{point.line.contest.scenario.label} {point.line.standing.entry.name}, "
            f"{point.threads} threads: {point.line.standing.reason}"
            for point in points
            if point.line.standing.reason
        ),
    )


def _draw(figure: Figure, points: Sequence[Point], scenarios: Sequence[Scenario]) -> None:
    """A row a scenario's layer: time per token and share of the roofline over N."""
    panels = figure.subplots(len(scenarios), 2, squeeze=False)
    for row, scenario in zip(panels, scenarios, strict=True):
        mine = [p for p in points if p.line.contest.scenario.shape[1:] == scenario.shape[1:]]
        for key in dict.fromkeys(point.line.standing.entry.key for point in mine):
            series = [point for point in mine if point.line.standing.entry.key == key]
            timed = [(p, p.line.standing.time) for p in series]
            tokens = [p.line.contest.scenario.num_tokens for p, time_s in timed if time_s]
            label = f"{key[0]}, {key[1]} thread{'s' if key[1] > 1 else ''}"
            row[0].loglog(
                tokens,
                [1e6 * t.value / p.line.contest.scenario.num_tokens for p, t in timed if t],
                "o-", label=label,
            )  # fmt: skip
            row[1].semilogx(
                tokens, [100 * (p.share_of_roofline or 0.0) for p, t in timed if t], "o-",
                label=label,
            )  # fmt: skip
        label_plainly(row[0].yaxis)
        row[0].set_ylabel(f"{scenario.label}: us per token")
        row[1].set_ylabel("% of the roofline")
        row[1].set_ylim(bottom=0)
        for axes in row:
            axes.set_xlabel("tokens N")
            label_plainly(axes.xaxis)
            axes.grid(alpha=0.3)
        row[0].legend()
    figure.set_size_inches(10, 3.6 * len(scenarios))


if __name__ == "__main__":
    sys.exit(main(ScalingProgram()))
