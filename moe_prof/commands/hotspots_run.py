"""The run behind ``hotspots``: profiles of all variants, kept in the session and shown."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from moe_prof.collectors import perf_samples
from moe_prof.collectors.stacks import Profile
from moe_prof.commands.base import Result
from moe_prof.commands.workload import Workload, isa_for
from moe_prof.deadline import Deadline
from moe_prof.errors import MoeProfError, UnavailableError, WorkloadError
from moe_prof.export import FORMATS
from moe_prof.hotspots import summary
from moe_prof.hotspots.annotate import instruction_texts
from moe_prof.hotspots.collect import COLLECTORS, Setting, Target
from moe_prof.hotspots.kept import keep_profile
from moe_prof.kernels import driver
from moe_prof.kernels.selection import folder_name
from moe_prof.kernels.table import BY_NAME
from moe_prof.machine import Machine
from moe_prof.measure.checked import CHECK_SHARE, refused_libraries
from moe_prof.measure.results import WORKLOAD_FAILURES, VariantTiming
from moe_prof.progress import Progress
from moe_prof.render import hotspots_report
from moe_prof.rows import unavailable
from moe_prof.session import Session
from moe_prof.units import named_text

TIMEOUT_S = 240.0
NAMES = {"perf": perf_samples.NAME}  # of collectors in rows, where they differ


@dataclass
class ProfileRun:
    """Profiles the variants of a workload one after the other, and what is shown of them."""

    work: Workload
    machine: Machine
    session: Session
    progress: Progress
    deadline: Deadline
    args: argparse.Namespace
    tools: tuple[str, ...]  # the one in use first, then those to take when it refuses
    why: str
    collectors: Mapping[str, Callable[[Target, Setting], Profile]] = field(
        default_factory=lambda: COLLECTORS
    )
    profiles: dict[str, Profile] = field(default_factory=dict)
    exported: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    def all(self) -> None:
        """One profile a variant; one that fails does not cost the others."""
        refused = refused_libraries(
            self.work.variants, self.work.scenario, threads=self.work.threads, seed=self.work.seed,
            max_time_s=self.deadline.share_s(CHECK_SHARE), progress=self.progress,
        )  # fmt: skip
        for name in self.work.variants:
            if name in refused:
                self._refuse(refused[name])
                continue
            try:
                profile = self._best_profile(name)
            except WorkloadError as error:
                if self.deadline.passed:  # stopped by the limit: the workload is not to blame
                    self._missing(name, self.deadline.reason)
                    continue
                self._missing(name, str(error))
                self.failures.append(f"variant {named_text(name, str(error))}")
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
                last = len(self.tools) == 1 or bool(self.profiles) or self.deadline.passed
                if last or not driver.runs(name):
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
            folder=self._place(name),
            timeout_s=self.deadline.left_s(TIMEOUT_S),
            machine=self.machine,
            progress=self.progress,
            stacks=self.args.stacks,
            analysis=self.args.analysis or "hotspots",
            rounds=self.args.repeat or 1,
        )
        return self.collectors[self.tool](target, setting)

    def _refuse(self, timing: VariantTiming) -> None:
        """A library that is wrong, crashed or hung, or that time did not suffice to check."""
        self._missing(timing.variant, timing.reason)
        if timing.status in WORKLOAD_FAILURES:
            self.failures.append(f"variant {named_text(timing.variant, timing.reason)}")

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

    def _place(self, name: str) -> Path:
        return self.session.raw / self.tool / folder_name(name)

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
            texts=instruction_texts(instructions, self._place(name)),
        )
