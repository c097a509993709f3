"""``topdown -- COMMAND`` and ``counters -- COMMAND``: any program, watched, sampled and counted.

Steps go from cheap to dear and end when the answer is known: a plain run that is watched from
outside, a sampled run, a run with denormals flushed, the machine's ceilings, then counting by
hardware or in simulation.
"""

from __future__ import annotations

import argparse
import os
import shutil
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from moe_prof import session as sessions
from moe_prof import toolversions
from moe_prof.analysis import program_verdict
from moe_prof.analysis.program_demands import ProgramEvidence
from moe_prof.analysis.program_verdict import judge_program, needs_more
from moe_prof.analysis.verdict import Verdict
from moe_prof.collectors import llvm_mca
from moe_prof.commands.base import Result, with_trouble
from moe_prof.commands.options import split_output
from moe_prof.deadline import Deadline
from moe_prof.errors import BuildError, MoeProfError, UnavailableError, UsageError, WorkloadError
from moe_prof.interrupts import EXIT_INTERRUPTED
from moe_prof.machine import Machine
from moe_prof.machine import read as read_machine
from moe_prof.measure import ceilings as measured_ceilings
from moe_prof.program import (
    counting,
    ftz,
    hardware,
    plain_model,
    sampled_loops,
    sampling,
    watch,
)
from moe_prof.program.counting import Counted
from moe_prof.program.evidence import (
    FEW_SAMPLES,
    evidence_of,
    machine_of,
    with_counts,
    with_samples,
)
from moe_prof.program.outer_counters import Moving
from moe_prof.program.speeds import LoopSpeed
from moe_prof.program.watch import Watched
from moe_prof.progress import Progress
from moe_prof.render import program_report
from moe_prof.session import Session
from moe_prof.topdown import counted
from moe_prof.units import time_text

DEFAULT_TIME_S = 600.0
"""A program that takes longer needs --max-time."""
EXIT_WORKLOAD = WorkloadError.exit_code
COUNTERS = "counters"
"""The command that wants counts and no verdict."""
REPEATABLE_S = 20.0
"""Programs up to this long are run again for samples and differences."""
SIMULATION_S = 12.0
NO_INPUT = (
    "the program had no input, since it is run several times; to give it a file each time: "
    "-- sh -c 'PROGRAM < FILE'"
)


def run_program(name: str, args: argparse.Namespace, progress: Progress) -> Result:
    """Measure the program after ``--`` and judge it.

    Raises:
        UsageError: there is no such program, or a scenario is given as well.
        WorkloadError: the program crashed or did not end in time.
    """
    if args.scenario is not None:
        raise UsageError(f"{name} takes a SCENARIO or -- COMMAND, not both")
    folder = split_output(args)
    command = tuple(args.program)
    label = Path(command[0]).name
    machine = read_machine()
    _find(command[0])
    with sessions.create(
        name, scenario="", shape=(), variants=(label,), seed=0, machine=machine.as_dict(),
        tools=toolversions.read(), argv=args.argv, folder=folder,
    ) as session:  # fmt: skip
        run = _Run(command, label, machine, session, progress, args.max_time_s, name == COUNTERS)
        if _has_input():
            run.notes.append(NO_INPUT)
        run.all()
        result = run.result()
    return with_trouble(result, session.trouble)


def _has_input() -> bool:
    """Whether a file was redirected to standard input, for the program as it seems."""
    try:
        state = os.fstat(0)
    except OSError:
        return False
    return stat.S_ISREG(state.st_mode) and state.st_size > 0


def _find(program: str) -> None:
    """Refuse before a session is made what cannot be started."""
    if not program:
        raise UsageError("the program's name after -- is empty; give its path")
    if shutil.which(program) is None:
        where = Path(program)
        if where.is_dir():
            raise UsageError(f"the program {program!r} is a folder; give the path of a program")
        if "/" in program and where.is_file():
            raise UsageError(
                f"the program {program!r} cannot be executed: it lacks permission (chmod +x)"
            )
        raise UsageError(f"the program {program!r} was not found; give its path")


@dataclass
class _Run:
    """One run of the command, step by step."""

    command: tuple[str, ...]
    label: str
    machine: Machine
    session: Session
    progress: Progress
    max_time_s: float | None
    only_counts: bool = False
    watched: Watched | None = None
    evidence: ProgramEvidence | None = None
    notes: list[str] = field(default_factory=list)
    speeds: tuple[LoopSpeed, ...] = ()
    counters: Mapping[str, Moving] = field(default_factory=dict)
    hottest: str = ""
    floats: bool = False
    interrupted: bool = False

    def all(self) -> None:
        """Every step that the answer needs; Ctrl-C ends them with what is known so far.

        Raises:
            KeyboardInterrupt: before anything is known.
        """
        try:
            self._steps()
        except KeyboardInterrupt:
            if self.evidence is None:
                raise
            self.interrupted = True
        if self.interrupted:
            self.notes.append("interrupted: what was measured before is here")

    def _steps(self) -> None:
        deadline = Deadline(self.max_time_s)
        self.progress.step(f"running {self.label}")
        try:
            self.watched = watch.watch(
                self.command, self.session.raw, timeout_s=deadline.left_s(DEFAULT_TIME_S),
                cpus=self.machine.usable_cpus(),
            )  # fmt: skip
        except WorkloadError as error:
            self.session.note(str(error))
            raise WorkloadError(f"{error}; what it printed is in {self.session.raw}") from error
        self.evidence = evidence_of(self.watched)
        if self.watched.interrupted:
            self.interrupted = True
            return
        again = self.watched.wall_s <= REPEATABLE_S and not self.watched.exit_code
        if self._short() and not self.only_counts:
            return
        if again and not deadline.passed:
            self._sample(deadline)
        if not self.only_counts and not needs_more(self.evidence):
            return
        self._ceilings(deadline)
        counters = counted.find_counters(self.machine)
        if counters.has_hardware and not deadline.passed:
            self.evidence = hardware.with_counters(
                self.evidence, self.command, counters, self.session, self.label,
                timeout_s=deadline.left_s(DEFAULT_TIME_S), notes=self.notes,
            )  # fmt: skip
        elif counters.reason:
            self.notes.append(f"no hardware counters: {counters.reason}")
        if again and not deadline.passed:
            self._count(deadline)
            if not self.only_counts:
                self._flush(deadline)
        elif again and self.speeds:
            self.notes.append("no time was left to simulate it")
            self._add_counts(Counted())

    def _short(self) -> bool:
        assert self.evidence is not None
        return program_verdict.RULES[0](self.evidence) is not None

    def _sample(self, deadline: Deadline) -> None:
        assert self.evidence is not None
        assert self.watched is not None
        self.progress.step(f"sampling {self.label}")
        try:
            sampled = sampling.sample(
                self.command, self.session.raw, timeout_s=deadline.left_s(DEFAULT_TIME_S),
                x86=self.machine.architecture in ("x86_64", "i686"),
            )  # fmt: skip
        except MoeProfError as error:
            self.notes.append(str(error))
            return
        if sampled.remark:
            self.notes.append(sampled.remark)
            self.evidence = replace(self.evidence, sampled_by="stops of its threads (ptrace)")
        if sampled.count >= FEW_SAMPLES:
            self.evidence = with_samples(self.evidence, sampled)
            self.speeds = sampled.speeds
            self.counters = sampled.counters
            self.hottest = sampled.hottest

    def _flush(self, deadline: Deadline) -> None:
        """Run with denormals flushed; only where there is arithmetic that can meet them."""
        assert self.evidence is not None
        x86 = self.machine.architecture in ("x86_64", "i686")
        if not x86 or not self.floats or deadline.passed:
            return
        self.progress.step(f"running {self.label} with denormals flushed to zero")
        try:
            flushed = watch.watch(
                self.command, self.session.raw, timeout_s=deadline.left_s(DEFAULT_TIME_S),
                cpus=self.evidence.cpus, name="flushed", env=ftz.flushing(self.session.raw),
            )  # fmt: skip
        except MoeProfError as error:
            self.notes.append(str(error))
            return
        if flushed.exit_code:
            return
        self.evidence = replace(self.evidence, flushed_s=flushed.user_s)
        if program_verdict.gains_by_flushing(self.evidence) and not deadline.passed:
            self._confirm(deadline)

    def _confirm(self, deadline: Deadline) -> None:
        """Run it once more as it is: what made the first run slow may have been something else."""
        assert self.evidence is not None
        self.progress.step(f"running {self.label} again")
        try:
            again = watch.watch(
                self.command, self.session.raw, timeout_s=deadline.left_s(DEFAULT_TIME_S),
                cpus=self.evidence.cpus, name="again",
            )  # fmt: skip
        except MoeProfError as error:
            self.notes.append(str(error))
            return
        self.evidence = replace(self.evidence, user_again_s=again.user_s)

    def _ceilings(self, deadline: Deadline) -> None:
        assert self.evidence is not None
        try:
            found = measured_ceilings.measure(
                self.machine, [1, self.evidence.team], progress=self.progress, deadline=deadline
            )
        except BuildError as error:
            self.notes.append(f"no ceilings: {error}")
            return
        self.evidence = replace(
            self.evidence, machine=machine_of(self.machine, found, self.evidence.team)
        )

    def _count(self, deadline: Deadline) -> None:
        assert self.evidence is not None
        self.progress.step(f"simulating {self.label} (callgrind)", slow=True)
        # Ending three simulations and reading what they wrote takes as long again.
        simulation_s = max(1.0, min(SIMULATION_S, deadline.left_s(2 * SIMULATION_S) / 2))
        try:
            found = counting.count(
                self.command, self.session.raw, self.machine, timeout_s=simulation_s,
                again_s=deadline.left_s(DEFAULT_TIME_S) - simulation_s, speeds=self.speeds,
                counters=self.counters, user_s=self.evidence.user_s, hottest=self.hottest,
            )  # fmt: skip
        except UnavailableError as error:
            self.notes.append(str(error))
            found = Counted()
        self._add_counts(found)

    def _add_counts(self, found: Counted) -> None:
        """What was simulated, completed by the samples."""
        assert self.evidence is not None
        self.speeds = tuple(s for s in self.speeds if (s.module, s.start) not in found.refuted)
        if self.speeds and not found.whole_misses:
            seen = sampled_loops.counted(
                self.speeds, self.evidence.user_s, self.machine, folder=self.session.raw
            )
            found = sampled_loops.completed(found, seen, self.speeds)
        self.notes += [f"simulation: {note}" for note in found.notes]
        self.floats = found.float_share > 0
        self.evidence = with_counts(self.evidence, found)
        self._model_plainly()

    def _model_plainly(self) -> None:
        """Where llvm-mca is missing: bounds of the hot loops by their length and latencies."""
        assert self.evidence is not None
        mca = llvm_mca.availability(counting.target_of(self.machine))
        if mca.usable or self.evidence.loop_cycles is not None:
            return
        self.evidence = plain_model.with_loops(self.evidence, self.speeds)
        self.notes.append(
            "hot loops judged by issue width and latencies alone, not by ports: "
            f"{mca.reason}; {mca.remedy}"
        )

    def result(self) -> Result:
        """Rows and page."""
        assert self.evidence is not None
        assert self.watched is not None
        verdict = None if self.only_counts else self._verdict(self.evidence, self.watched)
        for note in self.notes:
            self.session.note(note)
        if self.interrupted:
            self.session.update(state="partial")
        self.session.add(program_report.rows(self.label, self.watched, self.evidence, verdict))
        exit_code, errors = self._outcome(self.watched)
        return Result(
            rows=self.session.rows,
            body=program_report.body(
                " ".join(self.command), self.watched, self.evidence, verdict, self.notes
            ),
            machine=self.machine.as_dict(),
            session=self.session.folder,
            exit_code=exit_code,
            errors=errors,
        )

    def _outcome(self, watched: Watched) -> tuple[int, tuple[str, ...]]:
        """The exit code, and in a line why it is not 0."""
        if self.interrupted:
            return EXIT_INTERRUPTED, ("interrupted",)
        if watched.exit_code:
            failed = (
                f"the program {self.command[0]!r} returned {watched.exit_code}: it was run once, "
                f"and its figures are those of a run that failed; what it printed is in "
                f"{self.session.raw}"
            )
            self.session.note(failed)
            return EXIT_WORKLOAD, (failed,)
        return 0, ()

    def _verdict(self, evidence: ProgramEvidence, watched: Watched) -> Verdict:
        """What the evidence says; where it was cut off, only what needs no more of it."""
        if watched.interrupted:
            text = f"interrupted after {time_text(watched.wall_s)}, before the program ended"
            return Verdict("unknown", text, "run it again to its end")
        if self.interrupted and needs_more(evidence):
            text = "interrupted before it was known what its cycles are spent on"
            return Verdict("unknown", text, "run it again")
        return judge_program(evidence)
