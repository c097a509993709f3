"""Whether comparisons say ``same`` of equal code and find a planted slowdown, with real runs.

``python -m benchmarks.agreement``; the decision is that of ``moe_prof.analysis.decision``.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure
from rich import box
from rich.table import Table

from benchmarks.planted import FACTORY, twin
from benchmarks.program import Output, add_scenarios, main, scenarios_of
from moe_prof.analysis.decision import MARGIN, Ratio, Verdict, settled, time_ratio, verdict
from moe_prof.errors import WorkloadError
from moe_prof.kernels.build import build
from moe_prof.kernels.selection import variant as checked_variant
from moe_prof.machine import Machine
from moe_prof.measure import Request, measure
from moe_prof.measure.jobs import job_of
from moe_prof.measure.results import Job
from moe_prof.progress import Progress
from moe_prof.scenario import Scenario
from moe_prof.stats import Samples

BASE, TWIN = "a", "b"
SHORTEST_RUN_S = 3.0


class AgreementProgram:
    """Time a variant against itself and against a copy that a busy loop makes slower by a known
    part, interleaved as `bench` does, many times, and count the verdicts: equal code should be
    called the same in at least 95 of 100 runs, the planted slowdown slower. Example:
    python -m benchmarks.agreement --scenario S1 S3 --runs 100 --max-time 3600
    """

    name = "agreement"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """--scenario, --variant, --runs, --run-time, --max-time, --planted, --processes."""
        add_scenarios(parser, ("S1", "S3"))
        parser.add_argument(
            "--variant", default="packed", help="the variant to compare with itself (packed)"
        )
        parser.add_argument(
            "--runs", type=int, default=100, metavar="R",
            help="comparisons of each scenario and team (default: 100)",
        )  # fmt: skip
        parser.add_argument(
            "--run-time", type=float, default=20.0, metavar="S", dest="run_time_s",
            help="most seconds of one comparison, which ends when both verdicts are clear "
            "(default: 20)",
        )  # fmt: skip
        parser.add_argument(
            "--max-time", type=float, default=3600.0, metavar="S", dest="max_time_s",
            help="seconds after which no further comparison begins (default: 3600)",
        )  # fmt: skip
        parser.add_argument(
            "--planted", type=float, default=3.0, metavar="P",
            help="slowdown of the slower copy in percent (default: 3)",
        )  # fmt: skip
        parser.add_argument(
            "--processes", type=int, default=3, metavar="P",
            help="processes of one comparison before it may end (default: 3)",
        )  # fmt: skip

    def run(self, args: argparse.Namespace, facts: Machine, progress: Progress) -> Output:
        """Measure; raises MoeProfError."""
        checked_variant(args.variant)  # a wrong name is better known now
        scenarios = scenarios_of(args)
        teams = tuple(args.threads) if args.threads else (facts.usable_cpus(),)
        settings = Settings(
            args.variant, f"+{args.planted:g}%", max(SHORTEST_RUN_S, args.run_time_s),
            max(1, args.processes),
        )  # fmt: skip
        build("release", progress)  # a first build would fill the first comparisons
        tallies = [Tally(scenario, team) for scenario in scenarios for team in teams]
        notes = _run_all(args, settings, tallies, progress)
        return Output(
            results=[tally.as_dict(settings) for tally in tallies],
            body=_table(tallies, settings),
            draw=lambda figure: _draw(figure, tallies),
            notes=(*_notes(tallies, args.runs), *notes),
        )


@dataclass(frozen=True, slots=True)
class Settings:
    """What each comparison measures."""

    variant: str
    mark: str
    run_time_s: float
    processes: int

    @property
    def names(self) -> tuple[str, str, str]:
        """The old side, its equal, and the slower copy."""
        first, second, third = (twin(self.variant, mark) for mark in (BASE, TWIN, self.mark))
        return first, second, third


class Tally:
    """All comparisons of one scenario and team."""

    def __init__(self, scenario: Scenario, threads: int) -> None:
        self.scenario, self.threads = scenario, threads
        self.equal: list[Ratio] = []
        self.planted: list[Ratio] = []
        self.scatter: list[float] = []
        self.taken_s: list[float] = []
        self.processes: list[int] = []
        self.failed = 0

    @property
    def label(self) -> str:
        """Scenario and team."""
        noun = "thread" if self.threads == 1 else "threads"
        return f"{self.scenario.label}, {self.threads} {noun}"

    def said(self) -> str:
        """The verdicts so far, in short."""
        counts = (
            f"{name} {', '.join(f'{count} {word}' for word, count in _verdicts(ratios).items())}"
            for name, ratios in (("equal:", self.equal), ("planted:", self.planted))
            if ratios
        )
        failed = (f"{self.failed} failed",) if self.failed else ()
        return "; ".join((*counts, *failed))

    def add(self, samples: Sequence[Samples], *, taken_s: float, processes: int) -> None:
        """One run's samples: old, equal, slower."""
        self.taken_s.append(taken_s)
        self.processes.append(processes)
        old, same, slower = samples
        for found, new in ((self.equal, same), (self.planted, slower)):
            ratio = time_ratio(old, new, same_run=True)
            if ratio is not None:
                found.append(ratio)
        self.scatter.append(_scatter(old, same))

    def as_dict(self, settings: Settings) -> dict[str, object]:
        """As JSON types."""
        return {
            "scenario": self.scenario.label, "threads": self.threads, "variant": settings.variant,
            "margin": MARGIN, "scatter_between_processes": _median(self.scatter),
            "equal": dict(_verdicts(self.equal)), "planted": dict(_verdicts(self.planted)),
            "planted_percent": settings.mark,
            "taken_s": self.taken_s, "processes": self.processes, "failed": self.failed,
            "ratios": [
                {"equal": one.interval.value, "planted": other.interval.value}
                for one, other in zip(self.equal, self.planted, strict=False)
            ],
        }  # fmt: skip


def _run_all(
    args: argparse.Namespace, settings: Settings, tallies: Sequence[Tally], progress: Progress
) -> tuple[str, ...]:
    """All comparisons that the time allows; Ctrl-C ends them with what there is. Gives remarks."""
    notes: list[str] = []
    start_s = time.monotonic()
    end_s = start_s + args.max_time_s
    try:
        for number in range(args.runs):
            for tally in tallies:
                if time.monotonic() + settings.run_time_s > end_s:
                    continue
                passed_s = time.monotonic() - start_s
                progress.step(
                    f"{tally.label}: comparison {number + 1} of {args.runs} at {passed_s:.0f} s"
                    + (f" ({said})" if (said := tally.said()) else "")
                )
                try:
                    _compare(settings, tally, number)
                except WorkloadError as error:
                    tally.failed += 1
                    notes.append(f"{tally.label}, comparison {number + 1}: {error}")
    except KeyboardInterrupt:
        notes.append("interrupted: these are the comparisons before")
    return tuple(notes)


def _compare(settings: Settings, tally: Tally, number: int) -> None:
    """One interleaved run; raises WorkloadError when one of the three has no time."""
    base = job_of(settings.variant)
    old, *others = settings.names

    def enough(samples: Mapping[str, Samples]) -> bool:
        return all(settled(samples[old], samples[name]) for name in others)

    measured = measure(
        Request(
            scenario=tally.scenario,
            jobs=tuple(
                Job(name, base.isa, base.threads, base.rel_rmse, base.worst_token)
                for name in settings.names
            ),
            threads=tally.threads,
            seed=number,
            max_time_s=settings.run_time_s,
            processes=settings.processes,
            enough=enough,
            plan_factory=FACTORY,
        )
    )
    if measured.interrupted:
        raise KeyboardInterrupt
    for timing in measured.timings:
        if not timing.trusted:
            raise WorkloadError(f"{timing.variant}: {timing.reason}; allow more --run-time")
    samples = [timing.samples_s for timing in measured.timings]
    tally.add(samples, taken_s=measured.elapsed_s, processes=measured.processes)


def _scatter(old: Samples, new: Samples) -> float:
    """Standard deviation between processes of the logarithm of the paired ratio of equal code."""
    logs: dict[int, list[float]] = {}
    for key in set(old) & set(new):
        logs.setdefault(key[0], []).append(math.log(new[key] / old[key]))
    medians = [statistics.median(values) for values in logs.values()]
    return statistics.stdev(medians) if len(medians) > 1 else math.nan


def _verdicts(ratios: Sequence[Ratio]) -> Counter[Verdict]:
    return Counter(verdict(ratio.interval) for ratio in ratios)


def _median(values: Sequence[float]) -> float | None:
    known = [value for value in values if not math.isnan(value)]
    return statistics.median(known) if known else None


def _table(tallies: Sequence[Tally], settings: Settings) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1), pad_edge=False, show_edge=False)
    for title in ("", "code"):
        table.add_column(title, no_wrap=True)
    counted = ("T", "runs", "same", "slower", "faster", "too noisy", "ratio", "95 % +-")
    for title in (*counted, "processes", "seconds"):
        table.add_column(title, justify="right", no_wrap=True)
    for tally in tallies:
        for code, ratios in (("equal", tally.equal), (settings.mark, tally.planted)):
            said = _verdicts(ratios)
            words: tuple[Verdict, ...] = ("same", "slower", "faster", "too noisy")
            widths = [half for one in ratios if (half := one.interval.half_width) is not None]
            table.add_row(
                tally.scenario.label, code, str(tally.threads), str(len(ratios)),
                *(str(said[word]) for word in words),
                f"{statistics.median(one.interval.value for one in ratios):.4f}" if ratios else "-",
                f"{100 * statistics.median(widths):.1f} %" if widths else "-",
                f"{statistics.mean(tally.processes):.1f}" if ratios else "-",
                f"{statistics.mean(tally.taken_s):.1f}" if ratios else "-",
            )  # fmt: skip
    return table


def _notes(tallies: Sequence[Tally], runs: int) -> tuple[str, ...]:
    notes = [
        f"{tally.label}: processes scatter by "
        f"{100 * scatter:.2f} % (standard deviation of the ratio of equal code)"
        for tally in tallies
        if (scatter := _median(tally.scatter)) is not None
    ]
    notes += [
        f"{tally.label}: {len(tally.equal)} of {runs} "
        "comparisons in the time; allow more --max-time"
        for tally in tallies
        if len(tally.equal) + tally.failed < runs
    ]
    return tuple(notes)


def _draw(figure: Figure, tallies: Sequence[Tally]) -> None:
    """Every interval of equal code (left) and of the slower copy (right), one panel a tally."""
    panels = figure.subplots(len(tallies), 2, squeeze=False, sharex=True)
    for row, tally in zip(panels, tallies, strict=True):
        for axes, code, ratios in zip(
            row, ("equal code", "planted"), (tally.equal, tally.planted), strict=True
        ):
            for place, ratio in enumerate(ratios):
                low, high = ratio.interval.low, ratio.interval.high
                if low is not None and high is not None:
                    axes.plot([low, high], [place, place], color="C0", linewidth=1)
            axes.axvspan(1 / (1 + MARGIN), 1 + MARGIN, color="black", alpha=0.1)
            axes.set_title(f"{tally.label}: {code}")
            axes.set_xlabel("new / old, 95 % interval")
    figure.set_size_inches(9, 3.0 * len(tallies))


if __name__ == "__main__":
    sys.exit(main(AgreementProgram()))
