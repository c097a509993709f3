"""What all benchmarks share: options, the table on stdout, the JSON file, the plot, the errors.

A benchmark computes an :class:`Output`; :func:`main` alone prints, writes and turns typed errors
into an exit code.

Form of the JSON file (``schema`` 1): program, command, date (UTC), machine, settings, crowd (CPUs'
worth of time that other programs used during the run, null where not known), ceilings, results (one
object a line of the table, SI units, null for missing) and notes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from matplotlib.figure import Figure
from rich.console import Console, Group, RenderableType
from rich.text import Text

from benchmarks.load import Load, Watch
from moe_prof import machine
from moe_prof.analysis.ceilings import Ceilings
from moe_prof.commands.options import seed_int, thread_count
from moe_prof.errors import MoeProfError, UsageError
from moe_prof.machine import Machine
from moe_prof.progress import Progress
from moe_prof.scenario import Scenario, parse

SCHEMA = 1
PAGE_COLUMNS = 118
PLOT_DPI = 130
QUIET_CPUS = 0.1
"""Use by other programs below this share of one CPU hardly moves a median."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What a benchmark found.

    Attributes:
        results: one object a line of the table, JSON types only.
        body: the table.
        draw: draws the plot into an empty figure.
        ceilings: those that were used, None when none were measured.
        notes: remarks for the reader, a line each.
    """

    results: Sequence[Mapping[str, object]]
    body: RenderableType
    draw: Callable[[Figure], None]
    ceilings: Ceilings | None = None
    notes: tuple[str, ...] = field(default=())


class Program(Protocol):
    """One benchmark; its docstring is the help text."""

    name: str

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Its own options, beside the common ones."""

    def run(self, args: argparse.Namespace, facts: Machine, progress: Progress) -> Output:
        """Measure; raises MoeProfError."""


def main(program: Program, argv: Sequence[str] | None = None) -> int:
    """Run a benchmark from the command line; returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    progress = Progress()
    try:
        args = _parser(program).parse_args(arguments)
        _check_files(args)
        facts = machine.read()
        watch = Watch()
        output = program.run(args, facts, progress)
        load = watch.stop()
        progress.clear()
        _print(output, facts, load)
        document = {
            "schema": SCHEMA,
            "program": program.name,
            "command": ["python", "-m", f"benchmarks.{program.name}", *arguments],
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": facts.as_dict(),
            "settings": _settings(args),
            **_found(load, output),
        }
        if args.json is not None:
            args.json.write_text(json.dumps(document, indent=1, allow_nan=False) + "\n")
        if args.plot is not None:
            _plot(output, args.plot)
    except MoeProfError as error:
        progress.clear()
        sys.stderr.write(f"{program.name}: {error}\n")
        return error.exit_code
    except OSError as error:
        sys.stderr.write(f"{program.name}: cannot write {error.filename}: {error.strerror}\n")
        return MoeProfError.exit_code
    return 0


def add_scenarios(parser: argparse.ArgumentParser, default: Sequence[str]) -> None:
    """``--scenario``: one or more."""
    parser.add_argument(
        "--scenario", metavar="SCENARIO", nargs="+", default=list(default),
        help="S1, S2, S3, S4, or sizes N,D,H,E,K such as 128,256,128,16,4; several are separated "
        f"by spaces (default: {' '.join(default)})",
    )  # fmt: skip


def add_sampling(parser: argparse.ArgumentParser) -> None:
    """How much to measure: --rounds, --processes, --min-sample, --max-time, --seed."""
    parser.add_argument(
        "--rounds", type=thread_count, default=15, metavar="R",
        help="samples of each contender in each process, interleaved (default: 15)",
    )  # fmt: skip
    parser.add_argument(
        "--processes", type=thread_count, default=2, metavar="P",
        help="how often to start every contender anew, with another memory layout (default: 2)",
    )  # fmt: skip
    parser.add_argument(
        "--min-sample", type=float, default=0.02, metavar="S", dest="min_sample_s",
        help="shortest sample in seconds; forwards are repeated to fill it (default: 0.02)",
    )  # fmt: skip
    parser.add_argument(
        "--max-time", type=float, default=60.0, metavar="S", dest="max_time_s",
        help="seconds after which no further round of a scenario begins (default: 60)",
    )  # fmt: skip
    parser.add_argument(
        "--seed", type=seed_int, default=0, help="seed of weights and tokens (default: 0)"
    )


def scenarios_of(args: argparse.Namespace) -> tuple[Scenario, ...]:
    """The scenarios asked for.

    Raises:
        UsageError: one is malformed or has no tokens.
    """
    found = tuple(parse(text) for text in args.scenario)
    for scenario in found:
        if scenario.num_tokens < 1:
            raise UsageError(f"scenario {scenario.label} has no tokens, so no time to measure")
    return found


def threads_of(args: argparse.Namespace, facts: Machine) -> tuple[int, ...]:
    """The team sizes asked for, ascending; by default one thread up to all usable CPUs."""
    if args.threads:
        return tuple(sorted(set(args.threads)))
    return team_sizes(facts.usable_cpus())


def team_sizes(most: int) -> tuple[int, ...]:
    """1, 2, 4 ... up to ``most``, which is always among them."""
    sizes = {most}
    size = 1
    while size < most:
        sizes.add(size)
        size *= 2
    return tuple(sorted(sizes))


def _parser(program: Program) -> argparse.ArgumentParser:
    text = " ".join((type(program).__doc__ or "").split())
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{program.name}", description=text)
    program.configure(parser)
    parser.add_argument(
        "--threads", metavar="T", type=thread_count, nargs="+", default=None,
        help="team sizes, separated by spaces (default: 1, 2, 4 ... up to all usable CPUs)",
    )  # fmt: skip
    parser.add_argument(
        "--json", metavar="FILE", type=Path, default=None, help="write the figures to FILE"
    )
    parser.add_argument(
        "--plot", metavar="FILE", type=Path, default=None,
        help="draw them into FILE; its ending says the form: .png, .svg, .pdf",
    )  # fmt: skip
    return parser


def _check_files(args: argparse.Namespace) -> None:
    """Find out before an hour of measuring that the result cannot be written."""
    for option in ("json", "plot"):
        path: Path | None = getattr(args, option)
        if path is not None and not path.absolute().parent.is_dir():
            raise UsageError(f"--{option} {path}: there is no folder {path.parent}; make it first")
    if args.plot is not None and args.plot.suffix not in (".png", ".svg", ".pdf"):
        raise UsageError(f"--plot {args.plot}: the name must end in .png, .svg or .pdf")


def _print(output: Output, facts: Machine, load: Load | None) -> None:
    console = Console(
        width=None if sys.stdout.isatty() else PAGE_COLUMNS,
        highlight=False,
        no_color="NO_COLOR" in os.environ,
    )
    lines = (_machine_text(facts), _load_text(load), *output.notes)
    console.print(Group(output.body, *(Text(line) for line in lines if line)))


def _machine_text(facts: Machine) -> str:
    name = facts.processor.model_name or facts.processor.architecture
    return f"machine: {name}, {facts.usable_cpus()} CPUs usable"


def _load_text(load: Load | None) -> str:
    if load is None:
        return "how much CPU other programs used is not known here"
    line = f"other programs used {load.others:.2f} of {load.cpus} CPUs during this run"
    return line if load.others < QUIET_CPUS else f"{line}: repeat on an idle machine"


def _settings(args: argparse.Namespace) -> dict[str, object]:
    return {
        name: value
        for name, value in vars(args).items()
        if not isinstance(value, Path) and value is not None
    }


def _found(load: Load | None, output: Output) -> dict[str, object]:
    entries = output.ceilings.entries if output.ceilings is not None else ()
    return {
        "crowd": None if load is None else {"cpus": load.cpus, "others": load.others},
        "ceilings": [
            {
                "name": entry.name, "threads": entry.threads, "value": entry.value,
                "unit": entry.unit, "provenance": entry.provenance, "source": entry.source,
            }
            for entry in entries
        ],
        "results": [dict(result) for result in output.results],
        "notes": list(output.notes),
    }  # fmt: skip


def _plot(output: Output, path: Path) -> None:
    figure = Figure(layout="constrained")
    output.draw(figure)
    figure.savefig(path, dpi=PLOT_DPI)
