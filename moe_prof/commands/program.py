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
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from moe_prof import session as sessions
from moe_prof import toolversions
from moe_prof.analysis import program_demands, program_verdict
from moe_prof.analysis.ceilings import Ceilings
from moe_prof.analysis.program_demands import ProgramEvidence
from moe_prof.analysis.program_verdict import judge_program, needs_more
from moe_prof.analysis.verdict import Verdict
from moe_prof.collectors import llvm_mca
from moe_prof.commands.base import Result, with_trouble
from moe_prof.commands.options import split_output
from moe_prof.deadline import Deadline
from moe_prof.errors import BuildError, MoeProfError, UnavailableError, UsageError
from moe_prof.interrupts import EXIT_INTERRUPTED
from moe_prof.machine import Machine
from moe_prof.machine import read as read_machine
from moe_prof.measure import ceilings as measured_ceilings
from moe_prof.program import (
    code,
    counting,
    ftz,
    hardware,
    plain_model,
    sampled_loops,
    sampling,
    watch,
)
from moe_prof.program.counting import Counted
from moe_prof.program.sampling import Sampled
from moe_prof.program.speeds import LoopSpeed
from moe_prof.program.watch import ThreadTime, Watched
from moe_prof.progress import Progress
from moe_prof.render import program_report
from moe_prof.session import Session
from moe_prof.topdown import counted
from moe_prof.units import time_text

DEFAULT_TIME_S = 600.0
"""A program that takes longer needs --max-time."""
COUNTERS = "counters"
"""The command that wants counts and no verdict."""
REPEATABLE_S = 20.0
"""Programs up to this long are run again for samples and differences."""
SIMULATION_S = 12.0
FEW_SAMPLES = 20
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
        self.watched = watch.watch(
            self.command, self.session.raw, timeout_s=deadline.left_s(DEFAULT_TIME_S),
            cpus=self.machine.usable_cpus(),
        )  # fmt: skip
        self.evidence = evidence_of(self.watched)
        if self.watched.interrupted:
            self.interrupted = True
            return
        if self.watched.exit_code:
            self.notes.append(f"the program returned {self.watched.exit_code}")
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
        if not flushed.exit_code:
            self.evidence = replace(self.evidence, flushed_s=flushed.user_s)

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
        simulation_s = max(1.0, deadline.left_s(SIMULATION_S))
        try:
            found = counting.count(
                self.command, self.session.raw, self.machine, timeout_s=simulation_s,
                again_s=deadline.left_s(DEFAULT_TIME_S) - simulation_s, speeds=self.speeds,
                user_s=self.evidence.user_s, hottest=self.hottest,
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
        return Result(
            rows=self.session.rows,
            body=program_report.body(
                " ".join(self.command), self.watched, self.evidence, verdict, self.notes
            ),
            machine=self.machine.as_dict(),
            session=self.session.folder,
            exit_code=EXIT_INTERRUPTED if self.interrupted else 0,
            errors=("interrupted",) if self.interrupted else (),
        )

    def _verdict(self, evidence: ProgramEvidence, watched: Watched) -> Verdict:
        """What the evidence says; where it was cut off, only what needs no more of it."""
        if watched.interrupted:
            text = f"interrupted after {time_text(watched.wall_s)}, before the program ended"
            return Verdict("unknown", text, "run it again to its end")
        if self.interrupted and needs_more(evidence):
            text = "interrupted before it was known what its cycles are spent on"
            return Verdict("unknown", text, "run it again")
        return judge_program(evidence)


def evidence_of(watched: Watched) -> ProgramEvidence:
    """What a watched run alone tells; pure."""
    threads = watched.threads
    most = max((t.run_s for t in threads), default=0.0)
    active = [t for t in threads if t.run_s >= program_verdict.ACTIVE_MIN * most]
    total = sum(t.run_s for t in active)
    others = sum(t.run_s for t in threads if not t.is_main)
    team = len(active)
    if others >= program_verdict.OTHERS_MIN * sum(t.run_s for t in threads):
        team = max(team, min(2, watched.most_threads))  # many short ones, one after the other
    queued = sum(t.run_s + t.queued_s for t in threads)
    return ProgramEvidence(
        wall_s=watched.wall_s,
        user_s=watched.user_s,
        sys_s=watched.sys_s,
        cpus=watched.cpus,
        minor_faults=watched.minor_faults + watched.major_faults,
        voluntary=watched.voluntary,
        max_rss_bytes=watched.max_rss_bytes,
        active_threads=max(1, team),
        most_threads=watched.most_threads,
        runnable=queued / watched.wall_s if threads else watched.cpu_s / watched.wall_s,
        single_share=watched.single_share,
        busiest=most * len(active) / total if total else 1.0,
        main_is_busiest=_is_main(threads, most),
        blocked=_blocked(active),
    )


def with_samples(evidence: ProgramEvidence, sampled: Sampled) -> ProgramEvidence:
    """The evidence with what samples add; pure."""
    several = len(sampled.seen) > 1
    system = sum(sampled.system.values())
    faults = sampled.system.get("fault", 0)
    return replace(
        evidence,
        polling=sampled.waiting,
        own_polling=sampled.own_polling,
        busiest=sampled.busiest if several else evidence.busiest,
        main_is_busiest=sampled.main_is_busiest if several else evidence.main_is_busiest,
        yielding=sampled.system.get("yield", 0) / sampled.count,
        faulting=faults / system if system >= FEW_SAMPLES else None,
        own_share=sampled.own_share,
        shared_line=sampled.shared_lines,
        pointer_share=sampled.pointers,
    )


def with_counts(evidence: ProgramEvidence, found: Counted) -> ProgramEvidence:
    """The evidence with simulated counts; counted ones stay; pure."""
    bounds: Counter[str] = Counter()
    slots, total = 0.0, 0.0
    for analysis in found.loops:
        if analysis.throughput is not None:
            cycles = analysis.iterations * analysis.throughput.simulated_cycles
            bound: str = analysis.throughput.bound
            if bound == "ports" and code.divides_in_chain(
                [instruction.text for instruction in analysis.loop.usual_path]
            ):
                bound = "dependency"  # the divider is busy because each division waits for the last
            bounds[bound] += round(cycles)
            slots += analysis.iterations * analysis.throughput.issue_slots
            total += cycles
    width = evidence.machine.width
    return replace(
        evidence,
        instructions=evidence.instructions or found.instructions,
        loop_bound=bounds.most_common(1)[0][0] if bounds else None,
        loop_cycles=found.demand.simulated_cycles if found.demand is not None else None,
        loop_slots=slots / (width * total) if width and total else None,
        pointer_share=max(evidence.pointer_share, found.pointer_share),
        mispredictions=evidence.mispredictions or found.mispredictions,
        l1_misses=found.l1_misses,
        l2_misses=found.l2_misses,
        l3_misses=found.l3_misses,
        fetch_misses=found.fetch_misses,
        part_instructions=None if evidence.instructions else found.part_instructions,
    )


def machine_of(machine: Machine, found: Ceilings, team: int) -> program_demands.Machine:
    """Clock, latencies and bandwidths of a machine; pure."""
    core = machine.core()
    last = machine.cache(3)
    levels = ("l2", "l3", "memory")
    latency = tuple(found.value(f"latency_{level}", 1) for level in levels)
    bandwidth = tuple(
        None if (rate := found.value(f"read_{level}", team)) is None else rate / team
        for level in levels
    )
    return program_demands.Machine(
        clock_hz=found.clock_hz,
        width=core.width if core is not None else None,
        penalty_cycles=core.mispredict_penalty_cycles if core is not None else 15.0,
        latency_s=(latency[0], latency[1], latency[2]),
        bandwidth=(bandwidth[0], bandwidth[1], bandwidth[2]),
        l3_bytes=last.size_bytes if last is not None else None,
    )


def _blocked(active: Sequence[ThreadTime]) -> float | None:
    """Share of their time that threads slept in locks, on average."""
    known = [thread.blocked for thread in active if thread.blocked is not None]
    return sum(known) / len(known) if known else None


def _is_main(threads: tuple[ThreadTime, ...], most: float) -> bool:
    return any(t.is_main and t.run_s >= most for t in threads)
