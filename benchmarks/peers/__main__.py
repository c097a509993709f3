"""Peers against our variants: ``python -m benchmarks.peers``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter
from rich import box
from rich.table import Table

from benchmarks import peers as table
from benchmarks import variants
from benchmarks.contest import Contest, Standing, hold, interval_dict
from benchmarks.peers import NO_ADAPTER, Peer
from benchmarks.program import Output, add_sampling, add_scenarios, main, scenarios_of
from benchmarks.roofline import sampling_of, time_cells, times_text
from moe_prof.machine import Machine
from moe_prof.progress import Progress
from moe_prof.scenario import SCENARIOS
from moe_prof.stats import Interval
from moe_prof.units import time_text

MISSING = "-"
DEFAULT_TEAMS = (1, 2)


class PeersProgram:
    """Time other libraries against our variants on the same layer, interleaved in one run, each in
    a process of its own. Every contender computes the whole layer with its own library, the router
    included. Beside its time stand two errors (relative RMSE): against the exact W8A8 layer, and
    against the layer with dequantized weights and unquantized activations. Ratios are peer's time
    over that of our fastest variant. Example: python -m benchmarks.peers --scenario S3
    """

    name = "peers"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """--scenario, --peer, --variant and the sampling."""
        add_scenarios(parser, tuple(SCENARIOS))
        known = ", ".join(table.BY_NAME)
        parser.add_argument(
            "--peer", metavar="NAME[,NAME]", default="all", help=f"{known}, or 'all' (default: all)"
        )
        parser.add_argument(
            "--variant", metavar="NAME[,NAME]", default="packed",
            help="our variants, or 'all' that run here (default: packed)",
        )  # fmt: skip
        add_sampling(parser)

    def run(self, args: argparse.Namespace, facts: Machine, progress: Progress) -> Output:
        """Measure; raises MoeProfError."""
        teams = tuple(sorted(set(args.threads or DEFAULT_TEAMS)))
        chosen = table.named(args.peer)
        ours, theirs = variants.names_of(args.variant), table.entries(chosen, teams)
        contests = [
            hold(
                scenario,
                [e for e in (*variants.entries(ours, teams), *theirs) if e.threads == team],
                sampling_of(args),
                progress,
            )
            for scenario in scenarios_of(args)
            for team in teams
        ]
        without = [peer for peer in chosen if not peer.adapter]
        return Output(
            results=[_result(c, s, ours) for c in contests for s in c.standings],
            body=_table(contests, ours),
            draw=lambda figure: _draw(figure, contests),
            notes=_notes(contests, chosen, without),
        )


def our_best(contest: Contest, ours: Sequence[str]) -> Standing | None:
    """The fastest of our variants; None when none has a time."""
    timed = [
        (standing.time.value, index)
        for index, standing in enumerate(contest.standings)
        if standing.entry.name in ours and standing.time is not None
    ]
    return contest.standings[min(timed)[1]] if timed else None


def ratio(contest: Contest, standing: Standing, ours: Sequence[str]) -> Interval | None:
    """A contender's time over that of our fastest variant."""
    best = our_best(contest, ours)
    return None if best is None else standing.over(best)


def _result(contest: Contest, standing: Standing, ours: Sequence[str]) -> dict[str, object]:
    peer = table.BY_NAME.get(standing.entry.name)
    return {
        "scenario": contest.scenario.label, "shape": list(contest.scenario.shape),
        "experts_touched": contest.experts, "kind": "peer" if peer else "variant",
        "numbers": peer.numbers if peer else "W8A8 per token, exact", **standing.as_dict(),
        "over_our_best": interval_dict(ratio(contest, standing, ours)),
    }  # fmt: skip


def _table(contests: Sequence[Contest], ours: Sequence[str]) -> Table:
    out = Table(box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1), pad_edge=False, show_edge=False)
    out.add_column("", no_wrap=True)
    out.add_column("T", no_wrap=True)
    out.add_column("contender", no_wrap=True)
    out.add_column("what ran", overflow="ellipsis", no_wrap=True)
    for title in ("time", "95 % +-", "CPUs", "/ our best", "err. W8A8", "err. float"):
        out.add_column(title, justify="right", no_wrap=True)
    for contest in contests:
        for index, standing in enumerate(contest.standings):
            time, half = time_cells(standing.time, standing.status)
            out.add_row(
                "" if index else contest.scenario.label,
                "" if index else str(standing.entry.threads),
                standing.entry.name, standing.path or MISSING, time, half,
                MISSING if standing.cpus is None else f"{standing.cpus:.1f}",
                times_text(ratio(contest, standing, ours)),
                _error_text(standing.facts.get("oracle_rel_rmse")),
                _error_text(standing.facts.get("unquantized_rel_rmse")),
            )  # fmt: skip
    return out


def _error_text(value: float | None) -> str:
    if value is None:
        return MISSING
    return f"{100 * value:.2f} %" if value >= 1e-4 else f"{value:.0e}"


def _notes(
    contests: Sequence[Contest], chosen: Sequence[Peer], without: Sequence[Peer]
) -> tuple[str, ...]:
    reasons: dict[str, list[str]] = {}
    for contest in contests:
        for standing in contest.standings:
            if standing.reason:
                text = f"{standing.entry.name}: {standing.status}: {standing.reason}"
                label = f"{contest.scenario.label} T={standing.entry.threads}"
                reasons.setdefault(text, []).append(label)
    return (
        "CPUs: that its process kept busy; ratios pair samples of the same round",
        "errors: relative RMSE against the exact W8A8 layer, and against the layer with dequantized"
        " weights and unquantized activations",
        *(f"{peer.name}: {peer.numbers}" for peer in chosen if peer.adapter),
        *(f"{text} ({', '.join(labels)})" for text, labels in reasons.items()),
        *(f"{peer.name}: skipped: {NO_ADAPTER}" for peer in without),
    )


def _draw(figure: Figure, contests: Sequence[Contest]) -> None:
    """A panel a contest: bars of the times, fastest at the top."""
    panels = figure.subplots(len(contests), 1, squeeze=False)[:, 0]
    for axes, contest in zip(panels, contests, strict=True):
        timed = sorted(
            ((s.time.value, s.entry.name) for s in contest.standings if s.time is not None),
            reverse=True,
        )
        bars = axes.barh([name for _, name in timed], [value * 1e6 for value, _ in timed])
        axes.bar_label(bars, [time_text(value) for value, _ in timed], padding=3, fontsize=8)
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.margins(x=0.2)
        threads = contest.standings[0].entry.threads
        axes.set_title(f"{contest.scenario.label}, {threads} thread{'s' if threads > 1 else ''}")
        axes.set_xlabel("us per forward")
    figure.set_size_inches(8, 1.2 + 2.4 * len(contests))


if __name__ == "__main__":
    sys.exit(main(PeersProgram()))
