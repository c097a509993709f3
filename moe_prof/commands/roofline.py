"""The ``roofline`` command: this machine's ceilings, and where variants stand under them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from moe_prof import machine as machines
from moe_prof import session as sessions
from moe_prof import toolversions
from moe_prof.analysis import ceilings as ceiling_rows
from moe_prof.analysis import roofline_points
from moe_prof.analysis.ceilings import Ceilings, with_capacities
from moe_prof.analysis.differences import machine_differences
from moe_prof.analysis.query import RowIndex
from moe_prof.analysis.roofline_points import Point
from moe_prof.collectors import builtin
from moe_prof.commands.base import Result, with_trouble
from moe_prof.commands.options import (
    SCENARIO_HELP,
    add_run,
    output_path,
    split_output,
    try_to_write,
)
from moe_prof.commands.workload import Workload, isa_for, workload_from
from moe_prof.deadline import Deadline
from moe_prof.errors import MoeProfError, UnavailableError, UsageError
from moe_prof.interrupts import EXIT_INTERRUPTED
from moe_prof.machine import Machine
from moe_prof.measure import Request, ceiling_store, measure, measure_phases
from moe_prof.measure.ceiling_store import Stored
from moe_prof.measure.jobs import job_of
from moe_prof.measure.results import Measurement
from moe_prof.progress import Progress
from moe_prof.render.headline import crowd_line
from moe_prof.render.roofline_view import (
    OLD_S,
    age_text,
    ceilings_view,
    missing_lines,
    points_view,
)
from moe_prof.rows import Row
from moe_prof.session import IMPORT_COMMAND, MANIFEST, SavedSession, Session

PLOT_SUFFIXES = (".svg", ".png")
CEILINGS_SHARE, TIMING_SHARE, PHASES_SHARE = 0.2, 0.55, 0.25
"""Of ``--max-time``."""


class RooflineCommand:
    """show this machine's ceilings and where variants and phases stand under them. Ceilings are
    measured once and kept; points are measured now for a SCENARIO, or taken from a session of bench
    or topdown. Without either: the ceilings alone. Example: moe-prof roofline S1 S3 --plot roof.svg
    """

    name = "roofline"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """What to place, and the options of a run."""
        parser.add_argument(
            "places", metavar="SCENARIO", nargs="*",
            help=f"{SCENARIO_HELP}; or the folder of a session (default: the ceilings alone)",
        )  # fmt: skip
        parser.add_argument(
            "--remeasure", action="store_true",
            help="measure the ceilings now (default: those kept, where there are any)",
        )  # fmt: skip
        parser.add_argument(
            "--plot", metavar="FILE", type=output_path, default=None,
            help="draw the roofline into FILE, .svg or .png (default: no picture)",
        )  # fmt: skip
        add_run(parser, default_variants="all")

    def run(self, args: argparse.Namespace, progress: Progress) -> Result:
        """Measure what is missing; raises MoeProfError."""
        folder = split_output(args)
        _check_plot(args.plot)
        facts = machines.read()
        saved = [sessions.load(text) for text in args.places if _is_session(text)]
        work = [
            workload_from(argparse.Namespace(**{**vars(args), "scenario": text}), facts)
            for text in args.places
            if not _is_session(text)
        ]
        job = _Job(args, facts, progress, Deadline(args.max_time_s))
        if not work:
            if folder is not None:
                raise UsageError(
                    f"--output {folder}: nothing is timed, so there is no session to keep; name a "
                    "file in .json, .csv or .txt, or a SCENARIO"
                )
            job.place_saved(saved)
            return job.result(None)
        with _session(work, facts, args, folder) as opened:
            job.place_saved(saved)
            job.measure(work, opened)
        return with_trouble(job.result(opened), opened.trouble)


@dataclass
class _Job:
    """One command line's ceilings, points and remarks."""

    args: argparse.Namespace
    facts: Machine
    progress: Progress
    deadline: Deadline
    stored: Stored | None = None
    foreign: Ceilings | None = None
    points: list[Point] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    timed: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    interrupted: bool = False

    def ceilings(self, teams: Sequence[int]) -> Ceilings:
        """This machine's, for these teams at least."""
        known = self.stored
        if known is not None and set(teams) <= set(known.ceilings.thread_counts):
            return known.ceilings
        self.stored = ceiling_store.obtain(
            self.facts,
            [*_team_sizes(self.facts.usable_cpus()), *teams],
            remeasure=self.args.remeasure and known is None,
            progress=self.progress,
            deadline=self.deadline.part(CEILINGS_SHARE),
        )
        return self.stored.ceilings

    def place_saved(self, saved: Sequence[SavedSession]) -> None:
        """The points of sessions; their own ceilings where they have them."""
        if not saved:
            self.ceilings(())
        for one in saved:
            found, reasons = roofline_points.points(
                one.rows, self._ceilings_for(one), usable_cpus=_usable(one)
            )
            self._keep(found, [*one.remarks, *(f"{one.folder}: {reason}" for reason in reasons)])

    def measure(self, work: Sequence[Workload], opened: Session) -> None:
        """Time the variants of every scenario, then their phases."""
        for one in work:
            ceilings = self.ceilings([min(one.threads, self.facts.usable_cpus())])
            rows = self._timed(one, len(work), opened)
            self.timed += opened.add(rows)
            found, reasons = roofline_points.points(
                rows, ceilings, usable_cpus=self.facts.usable_cpus()
            )
            self._keep(found, reasons)
            if self.interrupted:
                opened.update(state="partial")
                break
        stored = self.stored
        assert stored is not None
        opened.add([*ceiling_rows.rows(stored.ceilings), *roofline_points.rows(self.points)])
        for note in self.notes:
            opened.note(note)

    def result(self, opened: Session | None) -> Result:
        """What the printer needs; the picture is written here.

        Raises:
            UnavailableError: points were asked for, and there is none.
            MoeProfError: the picture cannot be written.
        """
        if self.args.places and not self.points and not self.interrupted:
            reasons = "; ".join(self.reasons) or "nothing was timed"
            raise UnavailableError(f"nothing to place under the roofline: {reasons}")
        ceilings = self._shown()
        view = [*self._heading(), *points_view(self.points)]
        view += [Text("Ceilings", style="bold"), ceilings_view(ceilings)]
        view += [Text(line, style="dim") for line in (*missing_lines(ceilings), *self.notes)]
        if self.args.plot is not None:
            _plot(self.args.plot, self.points, ceilings)
        rows = [*ceiling_rows.rows(ceilings), *roofline_points.rows(self.points)]
        return Result(
            rows=tuple(opened.rows if opened is not None else rows),
            body=Group(*view),
            machine=self.facts.as_dict(),
            session=None if opened is None else opened.folder,
            exit_code=EXIT_INTERRUPTED if self.interrupted else 0,
            errors=("interrupted",) if self.interrupted else (),
            remarks=(*self.reasons, *self._picture()),
        )

    def _timed(self, work: Workload, scenarios: int, opened: Session) -> list[Row]:
        """Rows of times and phases of one scenario."""
        jobs = tuple(job_of(name, isa_for(name, work.isa)) for name in work.variants)
        request = Request(
            scenario=work.scenario, jobs=jobs, threads=work.threads, seed=work.seed,
            repeat=self.args.repeat, max_time_s=self._share(TIMING_SHARE / scenarios),
        )  # fmt: skip
        folder = opened.raw / work.scenario.label
        measured: Measurement = measure(request, self.progress, folder=folder / "timing")
        rows = builtin.timing_rows(measured, work.scenario, usable_cpus=self.facts.usable_cpus())
        self.notes += measured.notes
        self.interrupted = measured.interrupted
        trusted = {timing.variant for timing in measured.timings if timing.trusted}
        timed = tuple(job for job in jobs if job.variant in trusted)
        if self.interrupted or not timed:
            return rows
        limit_s = self._share(PHASES_SHARE / scenarios)
        try:
            times = measure_phases(
                replace(request, jobs=timed, max_time_s=limit_s), self.progress,
                folder=folder / "phases",
            )  # fmt: skip
        except KeyboardInterrupt:
            self.interrupted = True
            return rows
        except MoeProfError as error:  # the times measured before are worth a picture
            self.notes.append(f"no phase timers: {error}")
            return rows
        return [*rows, *(row for one in times for row in builtin.phase_rows(one, work.scenario))]

    def _share(self, share: float) -> float | None:
        limit: float | None = self.args.max_time_s
        return None if limit is None else share * limit

    def _ceilings_for(self, saved: SavedSession) -> Ceilings:
        """Raises UnavailableError where the session's machine is another and tells no ceilings."""
        own = ceiling_rows.from_rows(saved.rows)
        made = saved.manifest
        known = any(entry.value is not None for entry in own.entries)
        if known and made.command != IMPORT_COMMAND:
            self.foreign = with_capacities(own, made.machine.get("caches", ()))
            return self.foreign
        differ = machine_differences(made.machine, self.facts.as_dict())
        if differ or made.command == IMPORT_COMMAND:
            where = "imported, from an unknown machine" if not differ else differ[0].text
            raise UnavailableError(
                f"{saved.folder} is of another machine ({where}), and has no ceilings of it: run "
                "'moe-prof roofline' or 'moe-prof topdown' there"
            )
        threads = {int(row.value) for row in saved.rows if row.metric == "threads" and row.value}
        return self.ceilings(sorted(min(t, self.facts.usable_cpus()) for t in threads))

    def _keep(self, found: Sequence[Point], reasons: Sequence[str]) -> None:
        self.points += found
        self.reasons += reasons

    def _shown(self) -> Ceilings:
        """The ceilings that were used: this machine's, else the session's own."""
        if self.stored is not None:
            return self.stored.ceilings
        assert self.foreign is not None
        return self.foreign

    def _heading(self) -> list[RenderableType]:
        """Warnings, and how old the ceilings are."""
        lines: list[RenderableType] = []
        names = list(dict.fromkeys(point.variant for point in self.points))
        lines += crowd_line(RowIndex(self.timed), names)
        if self.stored is None:
            lines += [Text("ceilings: the session's own"), ""]
            return lines
        stored = self.stored
        cpu = self.facts.processor.model_name or self.facts.architecture
        line = f"{cpu}: ceilings measured {age_text(stored.age_s())}"
        if stored.crowded:
            line += (
                f", while other programs used {stored.others:.1f} of {stored.cpus} CPUs: too low "
                "perhaps; they are measured again the next time"
            )
        elif stored.age_s() > OLD_S:
            line += "; --remeasure measures them again"
        lines.append(Text(line))
        if stored.note:
            lines.append(Text(stored.note))
        return [*lines, ""]

    def _picture(self) -> tuple[str, ...]:
        return () if self.args.plot is None else (f"picture: {self.args.plot}",)


def _is_session(text: str) -> bool:
    """Whether a place is the folder of a session: anything that is a folder, or looks like one."""
    return Path(text).is_dir() or "/" in text or (Path(text) / MANIFEST).exists()


def _usable(saved: SavedSession) -> int:
    found = saved.manifest.machine.get("usable_cpus")
    return found if isinstance(found, int) and found > 0 else 1


def _session(
    work: Sequence[Workload], facts: Machine, args: argparse.Namespace, folder: Path | None
) -> Session:
    """One session for all scenarios."""
    return sessions.create(
        RooflineCommand.name,
        scenario="+".join(one.scenario.label for one in work),
        shape=work[0].scenario.shape if len(work) == 1 else (),
        variants=work[0].variants,
        seed=work[0].seed,
        machine=facts.as_dict(),
        tools=toolversions.read("release"),
        argv=args.argv,
        folder=folder,
    )


def _team_sizes(most: int) -> list[int]:
    """1, 2, 4 ... up to ``most``, which is always among them."""
    return sorted({most, *(1 << power for power in range(most.bit_length()) if 1 << power <= most)})


def _check_plot(path: Path | None) -> None:
    """Before anything is measured; raises UsageError, or MoeProfError if it is not writable."""
    if path is None:
        return
    if path.suffix.lower() not in PLOT_SUFFIXES:
        raise UsageError(f"--plot {path}: end the name in {' or '.join(PLOT_SUFFIXES)}")
    if path.is_dir():
        raise UsageError(f"--plot {path}: this is a folder; name a file")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"--plot {path}: there is no folder {path.parent}; make it first")
    try:
        try_to_write(path)
    except OSError as error:
        raise _unwritable(path, error) from error


def _plot(path: Path, points: Sequence[Point], ceilings: Ceilings) -> None:
    from matplotlib.figure import Figure  # noqa: PLC0415  (slow to import)

    from moe_prof.render import roofline_plot  # noqa: PLC0415

    figure = Figure()
    roofline_plot.draw(figure, points, ceilings)
    try:
        figure.savefig(path, dpi=roofline_plot.DPI)
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> MoeProfError:
    return MoeProfError(
        f"cannot write {path}: {error.strerror or error}; name a writable file with --plot"
    )
