"""``topdown``: what bounds each stage of the layer on this machine."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from moe_prof.analysis import ceilings as ceiling_rows
from moe_prof.analysis import crowding, roofline
from moe_prof.analysis.ceilings import Ceilings
from moe_prof.analysis.query import RowIndex
from moe_prof.analysis.roofline import Floor
from moe_prof.analysis.work import count_work
from moe_prof.collectors import builtin
from moe_prof.collectors.simulate import SimulatedCounts
from moe_prof.commands.base import Result, with_trouble
from moe_prof.commands.layer import with_layer
from moe_prof.commands.options import add_weights, add_workload, require_scenario, split_output
from moe_prof.commands.program import run_program
from moe_prof.commands.workload import (
    Workload,
    build_kernels,
    isa_for,
    open_session,
    workload_from,
)
from moe_prof.deadline import Deadline
from moe_prof.errors import BuildError, MoeProfError, WorkloadError
from moe_prof.kernels import build as kernel_build
from moe_prof.kernels import driver
from moe_prof.kernels.features import CpuFeatures, read_cpu
from moe_prof.kernels.table import BY_NAME
from moe_prof.machine import Machine
from moe_prof.machine import read as read_machine
from moe_prof.measure import ceilings as measured_ceilings
from moe_prof.measure.jobs import job_of
from moe_prof.measure.parent import measure, measure_phases
from moe_prof.measure.pyperf_suite import write_suite
from moe_prof.measure.results import (
    DEFAULT_BUDGET_S,
    DEFAULT_PROCESSES,
    WORKLOAD_FAILURES,
    Job,
    Measurement,
    PhaseTimes,
    Request,
)
from moe_prof.progress import Progress
from moe_prof.render import topdown_report
from moe_prof.rows import Row
from moe_prof.session import Session
from moe_prof.topdown import counted, simulation, stand_ins
from moe_prof.topdown.counted import Counters
from moe_prof.topdown.counting import TIMEOUT_S, Counting, simulations_end_s
from moe_prof.topdown.machine_rows import floor_rows
from moe_prof.topdown.modelled import Platform, model, platform_of, subject_of
from moe_prof.topdown.stand_ins import StandIns
from moe_prof.topdown.untimed import untimed_rows
from moe_prof.topdown.verdicts import verdict_rows
from moe_prof.units import named_text

TIMING_SHARE = 0.4
PHASES_SHARE = 0.12
CEILINGS_SHARE = 0.12
STAND_INS_SHARE = 0.05
STAND_INS_S = 6.0
"""Of timing the paths that stand in: the model wants medians, no intervals."""
EXIT_UNAVAILABLE = 3
EXIT_WORKLOAD = 6


class Topdown:
    """show what bounds each stage of the layer here, and what to try next. Every variant is
    verified and timed, its waiting and phases are measured, and its issue slots are counted by
    hardware counters where there are any, else modelled from simulated counts. Example: moe-prof
    topdown S3 --variant scalar,packed. With -- COMMAND: what bounds any program.
    """

    name = "topdown"
    takes_program = True

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """The common options."""
        add_workload(parser, default_variants="all", or_program=True)
        add_weights(parser)

    def run(self, args: argparse.Namespace, progress: Progress) -> Result:
        """Measure, model, judge."""
        if args.program:
            return run_program(self.name, args, progress)
        require_scenario(args)
        folder = split_output(args)
        machine = read_machine()
        work = workload_from(args, machine)
        build_kernels(work, progress)
        deadline = Deadline(args.max_time_s)
        with open_session(self.name, work, machine, argv=args.argv, folder=folder) as session:
            run = _Run(work, machine, session, progress, deadline, args.max_time_s, args.repeat)
            run.all()
            result = with_layer(run.result(), work.scenario, session)
        return with_trouble(result, session.trouble)


def _of_timing(note: str) -> str:
    """A note of the timing, whose limit is a share of the whole run's."""
    return note.replace("stopped at the time limit of", "timing stopped at its share of the limit,")


@dataclass
class _Run:
    """One run of the command, step by step; rows go to the session as they arrive."""

    work: Workload
    machine: Machine
    session: Session
    progress: Progress
    deadline: Deadline
    max_time_s: float | None
    repeat: int | None
    cpu: CpuFeatures = field(default_factory=read_cpu)
    measurement: Measurement | None = None
    ceilings: Ceilings | None = None
    floors: dict[str, Floor] = field(default_factory=dict)
    simulated: Mapping[str, SimulatedCounts] = field(default_factory=dict)
    stand_ins: Mapping[str, str] = field(default_factory=dict)
    counters: Counters = counted.NO_COUNTERS
    reason: str = ""
    notes: list[str] = field(default_factory=list)

    def all(self) -> None:
        """Every step; Ctrl-C between or within steps leaves the rows of those before."""
        self.progress.step("asking perf what can be counted")
        self.counters = counted.find_counters(self.machine)
        self.reason = self.counters.topdown_reason
        self._time()
        self._phases()
        self._ceilings()
        if self.counters.has_hardware:
            self._count()
        if self.reason:
            self._simulate()
        self._judge()

    def result(self) -> Result:
        """What the printer needs."""
        exit_code, errors = self._outcome()
        report = topdown_report.Report(
            scenario=self.work.scenario,
            counts=count_work(self.work.scenario),
            machine=self.machine,
            threads=self.work.threads,
            variants=self.work.variants,
            rows=self.session.rows,
            reason=self.reason,
            notes=tuple(self.notes),
        )
        return Result(
            rows=self.session.rows,
            body=topdown_report.body(report),
            machine=self.machine.as_dict(),
            session=self.session.folder,
            exit_code=exit_code,
            errors=errors,
        )

    def _outcome(self) -> tuple[int, tuple[str, ...]]:
        """The exit code, and a line for every variant that is to blame for it."""
        assert self.measurement is not None
        bad = [t for t in self.measurement.timings if t.status in WORKLOAD_FAILURES]
        code = EXIT_WORKLOAD
        if not bad:
            if self._trusted():
                return 0, ()
            bad, code = list(self.measurement.timings), EXIT_UNAVAILABLE
        return code, tuple(f"variant {named_text(t.variant, t.reason)}" for t in bad)

    def _note(self, *texts: str) -> None:
        """Remarks for the text and the manifest."""
        self.notes += texts
        for text in texts:
            self.session.note(text)

    def _jobs(self) -> tuple[Job, ...]:
        wished = {name: isa_for(name, self.work.isa) for name in self.work.variants}
        if self.reason:
            self.stand_ins = stand_ins.stand_ins(self.work.variants, self.cpu, wished)
            self._note(*stand_ins.notes(self.stand_ins))
        return tuple(job_of(name, isa) for name, isa in wished.items())

    def _request(
        self,
        jobs: Sequence[Job],
        share: float,
        budget_s: float = DEFAULT_BUDGET_S,
        processes: int = DEFAULT_PROCESSES,
    ) -> Request:
        return Request(
            scenario=self.work.scenario,
            jobs=tuple(jobs),
            threads=self.work.threads,
            seed=self.work.seed,
            repeat=self.repeat,
            max_time_s=None if self.max_time_s is None else self.max_time_s * share,
            budget_s=budget_s,
            processes=processes,
        )

    def _time(self) -> None:
        jobs = self._jobs()
        self.measurement = self._measured(self._request(jobs, TIMING_SHARE))
        left_s = self.deadline.left_s(self.max_time_s or 0.0)
        late = all(timing.status == "no_time" for timing in self.measurement.timings)
        if late and self.max_time_s is not None and left_s > TIMING_SHARE * self.max_time_s:
            # Times are worth more than all that would follow.
            self.measurement = self._measured(self._request(jobs, left_s / self.max_time_s))
        self.session.add(
            builtin.timing_rows(
                self.measurement, self.work.scenario, usable_cpus=self.machine.usable_cpus()
            )
        )
        with self.session.writing():
            write_suite(self.measurement, self.work.scenario, self.session.raw)
        self._note(
            *(_of_timing(note) for note in self.measurement.notes),
            *(named_text(t.variant, t.note) for t in self.measurement.timings if t.note),
            *(f"left out: {reason}" for _, reason in self.work.left_out),
        )
        if self.measurement.interrupted:
            raise KeyboardInterrupt

    def _measured(self, request: Request) -> Measurement:
        return measure(request, self.progress, folder=self.session.raw / "timing")

    def _trusted(self) -> list[Job]:
        assert self.measurement is not None
        trusted = {t.variant: t.isa for t in self.measurement.timings if t.trusted}
        return [
            job_of(name, trusted[name] if name in BY_NAME else None)
            for name in self.work.variants
            if name in trusted
        ]

    def _phases(self) -> None:
        jobs = self._trusted()
        if not jobs:
            return
        request = self._request(jobs, PHASES_SHARE)
        folder = self.session.raw / "phases"
        found: Sequence[PhaseTimes]
        try:
            with self.deadline.stopped():
                kernel_build.build("phases", self.progress)
            found = measure_phases(request, self.progress, folder=folder)
        except MoeProfError as error:  # the times measured before are worth a report
            self.notes.append(f"no phase timers: {error}")
            found = [PhaseTimes(job.variant, reason=str(error)) for job in jobs]
        for times in found:
            self.session.add(builtin.phase_rows(times, self.work.scenario))

    def _ceilings(self) -> None:
        assert self.measurement is not None
        teams = {self._team(t.threads) for t in self.measurement.timings if t.threads is not None}
        if not teams:
            return
        try:
            self.ceilings = measured_ceilings.measure(
                self.machine,
                sorted(teams),
                progress=self.progress,
                deadline=self.deadline.part(CEILINGS_SHARE),
            )
        except BuildError as error:
            self._note(f"no ceilings: {error}")
            return
        self.session.add(ceiling_rows.rows(self.ceilings))
        layer = roofline.layer_work(self.work.scenario)
        index = RowIndex(self.session.rows)
        for timing in self.measurement.timings:
            rows, own = floor_rows(
                self.work.scenario.label,
                timing.variant,
                time_s=index.value(timing.variant, "time"),
                work=layer,
                ceilings=self.ceilings,
                threads=self._team(timing.threads),
                isa=timing.isa or "native",
            )
            self.session.add(rows)
            self.floors[timing.variant] = own

    def _team(self, threads: int | None) -> int:
        """Threads of a team that run at once: their ceilings are the team's."""
        return min(threads or self.work.threads, self.machine.usable_cpus())

    def _count(self) -> None:
        """Hardware counters: events of every variant, and its slots where the core tells them."""
        label, native = self.work.scenario.label, self._native_jobs()
        counting = Counting(
            self.work.scenario, self.work.threads, self.work.seed, self.counters, self.deadline,
            self.session.raw / "perf",
        )  # fmt: skip
        for job in self._trusted():
            if job not in native:
                why = counted.why_not_counted(job.variant)
                self.session.add(counted.missing_counts(label, job.variant, why))
                self.session.add(counted.missing_nodes(label, job.variant, why))
                continue
            self.progress.step(f"{job.variant}: perf stat")
            try:
                self.session.add(counting.counts(job.variant, job.isa))
            except WorkloadError as error:
                self.session.add(counted.missing_counts(label, job.variant, str(error)))
            if not self.reason:
                self.session.add(self._nodes(counting, job))

    def _nodes(self, counting: Counting, job: Job) -> list[Row]:
        """Slots by perf; once it refuses them, the model answers for the others and for this."""
        try:
            return counting.nodes(job.variant, job.isa)
        except WorkloadError as error:
            why = str(error)
            self._note(f"{job.variant}: its slots were not counted: {why}")
        except MoeProfError as error:
            why = self.reason = str(error)
        return counted.missing_nodes(self.work.scenario.label, job.variant, why)

    def _native_jobs(self) -> list[Job]:
        return [job for job in self._trusted() if driver.runs(job.variant)]

    def _simulate(self) -> None:
        other = self._time_stand_ins()
        jobs = [
            simulation.Job(job.variant, other.paths.get(job.variant, job.isa or ""))
            for job in self._native_jobs()
        ]
        self.progress.step("simulating (callgrind)", slow=True)
        self.simulated, failed = simulation.simulate(
            jobs,
            self.work.scenario,
            machine=self.machine,
            cpu=self.cpu,
            seed=self.work.seed,
            timeout_s=TIMEOUT_S,
            end_s=simulations_end_s(self.deadline),
            folder=self.session.raw / "callgrind",
            progress=self.progress,
        )
        index = RowIndex(self.session.rows)
        why = dict(failed)
        why |= {name: f"{other.paths[name]} path: {text}" for name, text in other.failed.items()}
        for job in self._trusted():
            name = job.variant
            stands_in = name in other.paths and name not in other.failed
            own = job_of(name, other.paths[name]) if stands_in else job
            subject = subject_of(self.work.scenario, other.index if stands_in else index, own)
            modelled = model(
                subject,
                None if name in other.failed else self.simulated.get(name),
                self._platform(name, subject.threads),
                why.get(name) or simulation.why_not_simulable(name),
            )
            rows = [row for row in modelled.rows if index.value(name, row.metric) is None]
            if stands_in:
                rows = stand_ins.labelled(rows, own.isa or "", subject.scenario, name)
            self.session.add(rows)  # counted ones are better, and stay

    def _time_stand_ins(self) -> StandIns:
        trusted = {job.variant for job in self._native_jobs()}
        paths = {name: path for name, path in self.stand_ins.items() if name in trusted}
        if not paths:
            return StandIns({}, RowIndex(()), {})
        self.progress.step("timing the paths that can be simulated")
        folder = self.session.raw / "stand_ins"
        return stand_ins.measure_stand_ins(
            paths,
            self.work.scenario,
            usable_cpus=self.machine.usable_cpus(),
            time=lambda jobs: measure(
                self._request(jobs, STAND_INS_SHARE, STAND_INS_S, 1), self.progress, folder=folder
            ),
            phases=lambda jobs: measure_phases(
                self._request(jobs, STAND_INS_SHARE), self.progress, folder=folder
            ),
        )

    def _platform(self, variant: str, threads: int) -> Platform:
        ceilings = self.ceilings or Ceilings(())
        floor = self.floors.get(variant)
        return platform_of(
            self.machine,
            clock_hz=ceilings.clock_hz,
            bandwidth=ceilings.bandwidth_per_thread(self._team(threads)),
            in_memory=floor is None or floor.level == "memory",
        )

    def _judge(self) -> None:
        assert self.measurement is not None
        crowded = crowding.warning(RowIndex(self.session.rows), self.work.variants)
        if crowded:  # the page says it first, not among its notes
            self.session.note(crowded)
        self.session.add(untimed_rows(self.measurement.timings, self.work.scenario))
        self.session.add(
            verdict_rows(
                self.session.rows,
                self.work.variants,
                scenario=self.work.scenario.label,
                usable_cpus=self.machine.usable_cpus(),
                floors=self.floors,
                simulated=self.simulated,
            )
        )
