"""``counters``: events of the forward loop, by hardware where possible, else by simulation."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.console import Group, RenderableType
from rich.text import Text

from moe_prof.analysis.query import RowIndex
from moe_prof.commands import emulated_counters
from moe_prof.commands.base import Result, with_trouble
from moe_prof.commands.emulated import add_target, is_foreign, refuse_program
from moe_prof.commands.layer import with_layer
from moe_prof.commands.options import add_workload, require_scenario, split_output
from moe_prof.commands.program import run_program
from moe_prof.commands.workload import (
    Workload,
    build_kernels,
    isa_for,
    open_session,
    workload_from,
)
from moe_prof.deadline import Deadline
from moe_prof.errors import UnavailableError, WorkloadError
from moe_prof.kernels import driver
from moe_prof.kernels.features import read_cpu
from moe_prof.kernels.selection import forced_isa
from moe_prof.kernels.table import BY_NAME
from moe_prof.machine import Machine
from moe_prof.machine import read as read_machine
from moe_prof.measure.checked import CHECK_SHARE, refused_libraries
from moe_prof.measure.expected import layer_macs
from moe_prof.measure.results import WORKLOAD_FAILURES
from moe_prof.progress import Progress
from moe_prof.render.tables import LEGEND, counters_table
from moe_prof.rows import Row
from moe_prof.session import Session
from moe_prof.topdown import counted, simulation
from moe_prof.topdown.counted import Counters
from moe_prof.topdown.counting import TIMEOUT_S, Counting, simulations_end_s
from moe_prof.topdown.modelled import simulated_rows
from moe_prof.units import named_text


class CountersCommand:
    """count instructions, branches and cache misses of one forward. Only the forward loop is
    counted. Hardware counters are used where there are any; elsewhere instructions, branches and
    misses are simulated on one thread, and perf's software events are counted. --target riscv64
    counts the instructions of its variants in an emulator. Example: moe-prof counters S3 --variant
    scalar,matricized. With -- COMMAND: those of any whole program.
    """

    name = "counters"
    takes_program = True

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """The common options, and another architecture."""
        add_workload(parser, default_variants="all", or_program=True)
        add_target(parser, "count the variants")

    def run(self, args: argparse.Namespace, progress: Progress) -> Result:
        """Count.

        Raises:
            BuildError: the kernels cannot be compiled.
            UnavailableError: neither perf nor valgrind can be used.
        """
        if args.program:
            refuse_program(args)
            return run_program(self.name, args, progress)
        require_scenario(args)
        if is_foreign(args):
            return emulated_counters.run(args, progress)
        folder = split_output(args)
        machine = read_machine()
        work = workload_from(args, machine)
        build_kernels(work, progress)
        deadline = Deadline(args.max_time_s)
        counters = counted.find_counters(machine)
        with open_session(self.name, work, machine, argv=args.argv, folder=folder) as session:
            run = _Run(work, machine, session, progress, counters, deadline)
            run.check()
            if not counters.has_hardware:
                run.simulated()  # first: perf's software events are the lesser part then
            run.perf()
            result = with_layer(run.result(), work.scenario, session)
        return with_trouble(result, session.trouble)


@dataclass
class _Run:
    work: Workload
    machine: Machine
    session: Session
    progress: Progress
    counters: Counters
    deadline: Deadline
    failures: tuple[str, ...] = ()
    refused: dict[str, str] = field(default_factory=dict)

    def check(self) -> None:
        """Users' libraries: one that is wrong, crashes or hangs is not counted, and told."""
        found = refused_libraries(
            self.work.variants, self.work.scenario, threads=self.work.threads, seed=self.work.seed,
            max_time_s=self.deadline.share_s(CHECK_SHARE), progress=self.progress,
        )  # fmt: skip
        for name, timing in found.items():
            self.refused[name] = timing.reason
            if timing.status in WORKLOAD_FAILURES:
                self.failures += (f"variant {name}: {timing.reason}",)

    def perf(self) -> None:
        """One run under perf stat a variant."""
        if not self.counters.events:
            return
        native, label = self._native(), self.work.scenario.label
        counting = Counting(
            self.work.scenario, self.work.threads, self.work.seed, self.counters, self.deadline,
            self.session.raw / "perf",
        )  # fmt: skip
        if self.counters.has_hardware:
            for name in self.work.variants:
                if name not in native:
                    why = self.refused.get(name) or counted.why_not_counted(name)
                    self.session.add(counted.missing_counts(label, name, why))
        for name in native:
            self.progress.step(f"{name}: perf stat")
            rows = self._counts(counting, name)
            if not self.counters.has_hardware:
                rows = [row for row in rows if row.value is not None]
            self.session.add(rows)

    def _counts(self, counting: Counting, name: str) -> list[Row]:
        try:
            return counting.counts(name, isa_for(name, self.work.isa))
        except WorkloadError as error:
            self.failures += (f"variant {named_text(name, str(error))}",)
            return counted.missing_counts(self.work.scenario.label, name, str(error))

    def simulated(self) -> None:
        """Simulated counts of the variants that can be simulated."""
        cpu = read_cpu()
        jobs = [
            simulation.Job(name, isa)
            for name in self._native()
            if (isa := self._forced(name) or simulation.simulable_isa(name, cpu)) is not None
        ]
        self.progress.step("simulating (callgrind)", slow=True)
        done, failed = simulation.simulate(
            jobs,
            self.work.scenario,
            machine=self.machine,
            cpu=cpu,
            seed=self.work.seed,
            timeout_s=TIMEOUT_S,
            end_s=simulations_end_s(self.deadline),
            folder=self.session.raw / "callgrind",
            progress=self.progress,
        )
        for name in self.work.variants:
            self.session.add(
                simulated_rows(
                    self.work.scenario.label,
                    name,
                    done.get(name),
                    self.refused.get(name)
                    or failed.get(name)
                    or simulation.why_not_simulable(name),
                    macs=layer_macs(self.work.scenario),
                )
            )

    def result(self) -> Result:
        """The table, and exit 3 when not one figure could be had."""
        rows = self.session.rows
        if not self.failures and not any(row.value is not None for row in rows):
            raise UnavailableError(_nothing(self.counters, rows))
        return Result(
            rows=rows,
            body=Group(*self._body(rows)),
            machine=self.machine.as_dict(),
            session=self.session.folder,
            exit_code=6 if self.failures else 0,
            errors=self.failures,
        )

    def _body(self, rows: Sequence[Row]) -> list[RenderableType]:
        index = RowIndex(rows)
        scenario = self.work.scenario
        lines: list[RenderableType] = [
            Text(f"{scenario.label}: events of one forward", style="bold"),
            counters_table(index, self.work.variants),
            "",
        ]
        if not self.counters.has_hardware:
            lines.append(
                Text(
                    f"No hardware counters: {self.counters.reason}. Simulated on one thread by "
                    "callgrind, with this machine's L1 and L2 caches.",
                    style="dim",
                )
            )
            if self.counters.remedy:
                lines.append(Text(f"To count in hardware: {self.counters.remedy}.", style="dim"))
        lines.append(Text(f"Marks: {LEGEND}.", style="dim"))
        return lines

    def _native(self) -> list[str]:
        return [n for n in self.work.variants if driver.runs(n) and n not in self.refused]

    def _forced(self, name: str) -> str | None:
        spec = BY_NAME.get(name)
        return None if spec is None else forced_isa(spec, isa_for(name, self.work.isa))


def _nothing(counters: Counters, rows: Sequence[Row]) -> str:
    why = next((row.source for row in rows if row.source), "no variant of the native driver chosen")
    return f"nothing can be counted here: {counters.reason or 'perf counted nothing'}; {why}"
