"""``hotspots``: where the forward's time goes, by function, phase and thread, and by line."""

from __future__ import annotations

import argparse

from moe_prof.collectors import callgrind, gprof, perf_facts, vtune
from moe_prof.collectors.vtune import ANALYSES
from moe_prof.commands import emulated_hotspots
from moe_prof.commands.base import Result, with_trouble
from moe_prof.commands.emulated import BEST, add_target, is_foreign
from moe_prof.commands.hotspots_run import ProfileRun
from moe_prof.commands.layer import with_layer
from moe_prof.commands.options import add_workload, positive_int, split_output
from moe_prof.commands.workload import build_kernels, open_session, workload_from
from moe_prof.deadline import Deadline
from moe_prof.errors import UnavailableError, UsageError
from moe_prof.export import FORMATS
from moe_prof.hotspots.collect import COLLECTORS
from moe_prof.kernels.selection import isas
from moe_prof.kernels.table import BY_NAME
from moe_prof.machine import Machine
from moe_prof.machine import read as read_machine
from moe_prof.progress import Progress

DEFAULT_LINES = 16


class HotspotsCommand:
    """show where the forward's time goes: functions by their own and total share, by phase and
    thread, waiting apart from work. Only the forward loop is sampled, except by gprof, which sees
    the whole process. Without --with the best tool that works here is taken: perf record, else
    callgrind, else gprof. --target riscv64 counts in an emulator. Example: moe-prof hotspots S3
    --variant openmp --lines
    """

    name = "hotspots"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """The common options, the tool, lines and exports."""
        add_workload(parser, default_variants=BEST)
        add_target(parser, "count the instructions of variants by function")
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
        if is_foreign(args):
            return emulated_hotspots.run(args, progress)
        folder = split_output(args)
        machine = read_machine()
        if args.analysis and args.tool != vtune.NAME:
            raise UsageError("--analysis is VTune's: add --with vtune")
        if args.variant == BEST:
            args.variant = best_variant()
        work = workload_from(args, machine)
        tools, why = ((args.tool,), "") if args.tool else usable_tools(machine)
        if _takes_release_build(tools[0]):
            build_kernels(work, progress)
        deadline = Deadline(args.max_time_s)
        with open_session(self.name, work, machine, argv=args.argv, folder=folder) as session:
            run = ProfileRun(work, machine, session, progress, deadline, args, tools, why)
            run.all()
            result = with_layer(run.result(), work.scenario, session)
        return with_trouble(result, session.trouble)


def _takes_release_build(tool: str) -> bool:
    """Whether there is no reason to refuse the tool before anything is built for it.

    gprof has a build of its own, made when it is its turn.
    """
    if tool == callgrind.NAME:
        return callgrind.availability().usable
    if tool == vtune.NAME:
        return vtune.availability().usable
    return tool != gprof.NAME


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
