"""``hotspots``: where the forward's time goes, by function, phase and thread, and by line."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field, replace

from rich.console import Group, RenderableType
from rich.text import Text

from moe_prof.collectors import callgrind, gprof, perf_facts, perf_samples, vtune
from moe_prof.collectors.stacks import Profile
from moe_prof.collectors.vtune import ANALYSES
from moe_prof.commands.base import Result, with_trouble
from moe_prof.commands.layer import with_layer
from moe_prof.commands.options import add_workload, positive_int, split_output
from moe_prof.commands.workload import Workload, isa_for, open_session, workload_from
from moe_prof.deadline import Deadline
from moe_prof.errors import MoeProfError, UnavailableError, UsageError, WorkloadError
from moe_prof.export import FORMATS
from moe_prof.hotspots import summary
from moe_prof.hotspots.annotate import instruction_texts
from moe_prof.hotspots.collect import COLLECTORS, Setting, Target
from moe_prof.hotspots.kept import keep_profile
from moe_prof.kernels.selection import isas
from moe_prof.kernels.table import BY_NAME
from moe_prof.machine import Machine
from moe_prof.machine import read as read_machine
from moe_prof.progress import Progress
from moe_prof.render import hotspots_report
from moe_prof.rows import unavailable
from moe_prof.session import Session

BEST = "best"
TIMEOUT_S = 240.0
DEFAULT_LINES = 16
NAMES = {"perf": perf_samples.NAME}  # of collectors in rows, where they differ


class HotspotsCommand:
    """show where the forward's time goes: functions by their own and total share, by phase and
    thread, waiting apart from work. Only the forward loop is sampled, except by gprof, which sees
    the whole process. Without --with the best tool that works here is taken: perf record, else
    callgrind, else gprof. Example: moe-prof hotspots S3 --variant openmp --lines
    """

    name = "hotspots"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """The common options, the tool, lines and exports."""
        add_workload(parser, default_variants=BEST)
        parser.add_argument(
            "--with", dest="tool", choices=tuple(COLLECTORS), default=None,
            help="the profiler (default: the best that can be used here)",
        )  # fmt: skip
        parser.add_argument(
            "--lines", action="store_true",
            help="also by source line and by instruction, with their texts",
        )  # fmt: skip
        parser.add_argument(
            "--top", metavar="N", type=positive_int, default=DEFAULT_LINES,
            help=f"lines of each table (default: {DEFAULT_LINES}); --format json has all",
        )  # fmt: skip
        parser.add_argument(
            "--stacks", choices=("dwarf", "fp", "none"), default="dwarf",
            help="how perf finds call stacks (default: dwarf; fp needs frame pointers)",
        )  # fmt: skip
        parser.add_argument(
            "--analysis", choices=tuple(ANALYSES), default=None,
            help="VTune's analysis type (default: hotspots); only with --with vtune",
        )  # fmt: skip
        parser.add_argument(
            "--export", choices=tuple(FORMATS), default=None,
            help="write the profile into the session's folder, in the form of another viewer",
        )  # fmt: skip

    def run(self, args: argparse.Namespace, progress: Progress) -> Result:
        """Profile each variant; raises UnavailableError when no tool can be used."""
        deadline = Deadline(args.max_time_s)
        folder = split_output(args)
        machine = read_machine()
        if args.analysis and args.tool != vtune.NAME:
            raise UsageError("--analysis is VTune's: add --with vtune")
        if args.variant == BEST:
            args.variant = best_variant()
        work = workload_from(args, machine)
        tools, why = ((args.tool,), "") if args.tool else usable_tools(machine)
        with open_session(self.name, work, machine, argv=args.argv, folder=folder) as session:
            run = _Run(work, machine, session, progress, deadline, args, tools, why)
            run.all()
            result = with_layer(run.result(), work.scenario, session)
        return with_trouble(result, session.trouble)


def best_variant() -> str:
    """The last stage of the table that the native driver runs here.

    Raises:
        UsageError: there is none.
    """
    names = [name for name, spec in BY_NAME.items() if spec.language == "c++" and isas(name)]
    if not names:
        raise UsageError("no variant of the native driver runs here; see 'moe-prof doctor'")
    return names[-1]


def usable_tools(machine: Machine) -> tuple[tuple[str, ...], str]:
    """The tools that can be used here, best first, and why better ones cannot, "" if none is.

    Raises:
        UnavailableError: there is none.
    """
    found = {
        "perf": perf_facts.judge(perf_facts.gather(machine)),
        "callgrind": callgrind.availability(),
        "gprof": gprof.availability(),
    }
    names = tuple(name for name, state in found.items() if state.usable)
    reasons = [
        f"{name}: {state.reason}" + (f" ({state.remedy})" if state.remedy else "")
        for name, state in found.items()
        if not state.usable
    ]
    if not names:
        raise UnavailableError(f"no profiler can be used here; {'; '.join(reasons)}")
    before = list(found)[: list(found).index(names[0])]
    return names, "; ".join(reasons[: len(before)])


@dataclass
class _Run:
    work: Workload
    machine: Machine
    session: Session
    progress: Progress
    deadline: Deadline
    args: argparse.Namespace
    tools: tuple[str, ...]  # the one in use first, then those to take when it refuses
    why: str
    profiles: dict[str, Profile] = field(default_factory=dict)
    exported: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    def all(self) -> None:
        """One profile a variant; one that fails does not cost the others."""
        for name in self.work.variants:
            try:
                profile = self._best_profile(name)
            except WorkloadError as error:
                if self.deadline.passed:  # stopped by the limit: the workload is not to blame
                    self._missing(name, self.deadline.reason)
                    continue
                self._missing(name, str(error))
                self.failures.append(f"variant {name}: {error}")
            except MoeProfError as error:
                self._missing(name, str(error))
            else:
                self._keep(name, profile)

    def result(self) -> Result:
        """The tables, and exit 3 when not one profile could be had."""
        if not self.profiles and not self.failures:
            raise UnavailableError("; ".join(dict.fromkeys(self.reasons)))
        return Result(
            rows=self.session.rows,
            body=Group(*self._body()),
            machine=self.machine.as_dict(),
            session=self.session.folder,
            exit_code=6 if self.failures else 0,
            errors=tuple(self.failures),
        )

    @property
    def tool(self) -> str:
        """The tool in use."""
        return self.tools[0]

    def _best_profile(self, name: str) -> Profile:
        """By the next tool where one turns out to be refused; all variants then by the same."""
        while True:
            try:
                return self._profile(name)
            except UnavailableError as error:
                spec = BY_NAME.get(name)
                last = len(self.tools) == 1 or bool(self.profiles) or self.deadline.passed
                if last or spec is None or spec.language != "c++":
                    raise
                self.why = "; ".join(part for part in (self.why, f"{self.tool}: {error}") if part)
                self.tools = self.tools[1:]

    def _profile(self, name: str) -> Profile:
        self.progress.step(f"{name}: {self.tool}", slow=True)
        if self.deadline.passed:
            raise UnavailableError(self.deadline.reason)
        spec = BY_NAME.get(name)
        threads = self.work.threads if spec is None or spec.threads else 1
        target = Target(
            self.work.scenario, name, isa_for(name, self.work.isa), threads, self.work.seed
        )
        setting = Setting(
            folder=self.session.raw / self.tool / name,
            timeout_s=self.deadline.left_s(TIMEOUT_S),
            machine=self.machine,
            progress=self.progress,
            stacks=self.args.stacks,
            analysis=self.args.analysis or "hotspots",
            rounds=self.args.repeat or 1,
        )
        return COLLECTORS[self.tool](target, setting)

    def _keep(self, name: str, profile: Profile) -> None:
        self.profiles[name] = profile
        label = self.work.scenario.label
        self.session.add(summary.rows(profile, scenario=label, variant=name, lines=self.args.lines))
        for note in profile.notes:
            self.session.note(f"{name}: {note}")
        with self.session.writing():
            keep_profile(self.session.folder, name, profile)
        if self.args.export:
            form = FORMATS[self.args.export]
            path = self.session.folder / f"{name.replace('/', '_')}{form.suffix}"
            with self.session.writing():
                path.write_text(form.write(profile, f"{label} {name}"), encoding="utf-8")
                self.exported.append(f"{path} (for {form.reader})")

    def _missing(self, name: str, reason: str) -> None:
        self.reasons.append(reason)
        row = unavailable(
            "self_share", "1", reason, collector=NAMES.get(self.tool, self.tool), variant=name,
            scenario=self.work.scenario.label,
        )  # fmt: skip
        self.session.add([row])

    def _body(self) -> list[RenderableType]:
        parts: list[RenderableType] = []
        for name, profile in self.profiles.items():
            if parts:
                parts.append("")
            parts += hotspots_report.body(self._report(name, profile))
        if self.why:
            parts.append(
                Text(f"Taken for want of a better tool: {self.tool}. {self.why}.", style="dim")
            )
        missing = [n for n in self.work.variants if n not in self.profiles]
        for name, reason in zip(missing, self.reasons, strict=True):
            parts.append(Text(f"{name}: {reason}", style="dim"))
        for line in self.exported:
            parts.append(Text(f"Exported: {line}"))
        return parts

    def _report(self, name: str, profile: Profile) -> hotspots_report.Report:
        report = hotspots_report.Report(
            scenario=self.work.scenario.label,
            variant=name,
            profile=profile,
            spots=summary.hotspots(profile),
            most=self.args.top,
        )
        if not self.args.lines:
            return report
        instructions = summary.places(profile, instructions=True)[: self.args.top]
        return replace(
            report,
            lines=summary.places(profile, instructions=False),
            instructions=instructions,
            texts=instruction_texts(instructions, self.session.raw / self.tool / name),
        )
