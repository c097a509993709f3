"""``import``: profilers' outputs from elsewhere, recognised by content, as rows and a session."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich.console import Group, RenderableType

from moe_prof import scenario as scenarios
from moe_prof import session as sessions
from moe_prof import toolversions
from moe_prof.commands.base import EXIT_ERROR, Result, with_trouble
from moe_prof.commands.options import add_output, split_output
from moe_prof.errors import InputError, MoeProfError, UnavailableError, UsageError
from moe_prof.importing import load as loading
from moe_prof.importing import repeats
from moe_prof.importing.base import Labels
from moe_prof.importing.keep import keep
from moe_prof.importing.load import Imported
from moe_prof.importing.source import STDIN, Source, opened
from moe_prof.machine import read as read_machine
from moe_prof.progress import Progress
from moe_prof.render.import_view import file_view
from moe_prof.rows import Row
from moe_prof.scenario import Scenario
from moe_prof.session import Session

_STEPS = 20  # a progress line every 5 %


class ImportCommand:
    """read profilers' outputs brought from another machine, whatever tool wrote them. The kind is
    found by content; logs, compressed files and several tools in one file are read too. Values come
    in base units under the tools' own names. Example: moe-prof import perf.txt --variant packed
    """

    name = "import"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """The files and their labels."""
        parser.add_argument(
            "files", metavar="FILE", nargs="+",
            help=f"a tool's output, or - for stdin; known tools: {loading.known_titles()}",
        )  # fmt: skip
        parser.add_argument(
            "--scenario", metavar="SCENARIO", default="",
            help="what was measured: S1..S4 or sizes N,D,H,E,K (default: what the log says, if it "
            "does)",
        )  # fmt: skip
        parser.add_argument(
            "--variant", metavar="NAME", default="",
            help="the variant that was measured; several files of one variant are repetitions "
            "(default: the label, else each file's own name)",
        )  # fmt: skip
        parser.add_argument(
            "--label", metavar="TEXT", default="",
            help="a name for this measurement, kept in its session (default: none)",
        )  # fmt: skip
        add_output(parser)

    def run(self, args: argparse.Namespace, progress: Progress) -> Result:
        """Import; raises InputError or UnavailableError when not one file could be read."""
        folder = split_output(args)
        scenario = scenarios.parse(args.scenario) if args.scenario else None
        if args.files.count(STDIN) > 1:
            raise UsageError("- stands for stdin and can be given only once")
        name = args.variant or args.label
        job = _Job(tuple(args.files), scenario, name, folder, progress, args.argv)
        with ExitStack() as stack:
            job.load(stack)
            session = job.session
            if session is None:
                for failure in job.failures[1:]:
                    job.failures[0].add_note(str(failure))
                raise job.failures[0]
            rows = job.rows()
            session.add(rows)
            session.update(variants=tuple(dict.fromkeys(row.variant for row in rows)))
            for remark in (f"label: {args.label}" if args.label else "", *job.remarks()):
                if remark:
                    session.note(remark)
        result = Result(
            rows=session.rows,
            body=Group(*_body(job)),
            machine=job.machine,
            session=session.folder,
            exit_code=EXIT_ERROR if job.failures else 0,
            errors=tuple(str(failure) for failure in job.failures),
            remarks=job.remarks(),
        )
        return with_trouble(result, session.trouble)


@dataclass
class _Job:
    """One command line's files, and what has become of them."""

    names: tuple[str, ...]
    scenario: Scenario | None
    variant: str
    folder: Path | None
    progress: Progress
    argv: tuple[str, ...]
    files: list[Imported] = field(default_factory=list)
    failures: list[MoeProfError] = field(default_factory=list)
    session: Session | None = None
    machine: dict[str, object] = field(default_factory=dict)

    def load(self, stack: ExitStack) -> None:
        """Read every file; the session begins with the first one that can be read."""
        stems = Counter(_stem(name) for name in self.names)
        label = self.scenario.label if self.scenario is not None else ""
        for number, name in enumerate(self.names):
            variant = self.variant or (_stem(name) if stems[_stem(name)] == 1 else name)
            try:
                with opened(name) as source:
                    one = loading.load(source, Labels(label, variant), self._step(source))
                    if self.session is None:
                        self.session = stack.enter_context(self._create())
                    with self.session.writing():
                        remark = keep(source, self.session.raw, number)
            except (InputError, UnavailableError) as error:
                self.failures.append(error)
                continue
            self.files.append(replace(one, remarks=(*one.remarks, remark)) if remark else one)

    def rows(self) -> list[Row]:
        """All rows; several files of one variant are repetitions and get a mean."""
        if not self.variant or len(self.files) < 2:
            return [row for one in self.files for row in one.rows]
        found: list[Row] = []
        for number, one in enumerate(self.files):
            found += repeats.numbered(one.rows, number)
        return repeats.with_means(found)

    def remarks(self) -> tuple[str, ...]:
        """What a reader has to know, with the file's name."""
        return tuple(f"{one.name}: {remark}" for one in self.files for remark in one.remarks)

    def _create(self) -> Session:
        self.machine = read_machine().as_dict()
        session = sessions.create(
            ImportCommand.name,
            scenario=self.scenario.label if self.scenario is not None else "",
            shape=self.scenario.shape if self.scenario is not None else (),
            variants=(),
            seed=0,
            machine=self.machine,
            tools=toolversions.read(),
            argv=self.argv,
            folder=self.folder,
        )
        session.note("the machine is the one that imported, not the one that was measured")
        return session

    def _step(self, source: Source) -> Callable[[float], None]:
        def step(share: float) -> None:
            percent = int(share * _STEPS) * 100 // _STEPS
            self.progress.step(f"reading {source.name}: {percent} %")

        return step


def _stem(name: str) -> str:
    """What a file's rows are called without ``--variant``."""
    if name == STDIN:
        return "stdin"
    path = Path(name)
    return path.name.split(".")[0] or path.name or name


def _body(job: _Job) -> Sequence[RenderableType]:
    """One view a file."""
    view: list[RenderableType] = []
    for one in job.files:
        view += file_view(one.name, one.titles, one.rows)
    return view
