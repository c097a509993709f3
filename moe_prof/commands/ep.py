"""The ``ep`` command: the fused expert-parallel operator against small ops, over ranks."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

from rich.console import Group

from moe_prof import machine as machines
from moe_prof import session as sessions
from moe_prof import toolversions
from moe_prof.commands.base import Result, with_trouble
from moe_prof.commands.ep_options import DEFAULT_TOKENS, add_case, add_run, shape_of
from moe_prof.commands.options import add_output, split_output
from moe_prof.ep import mpi, signs, supervise
from moe_prof.ep.cases import ABLATIONS, VARIANTS, Case, Trial
from moe_prof.ep.launch import launch
from moe_prof.ep.result_rows import case_rows
from moe_prof.ep.results import CaseResult
from moe_prof.errors import MoeProfError, PeerError, UsageError
from moe_prof.kernels.build import build
from moe_prof.kernels.features import check_supported, read_cpu
from moe_prof.kernels.memory import check_memory
from moe_prof.machine import Machine
from moe_prof.progress import Progress
from moe_prof.render.ep_view import ep_body
from moe_prof.session import Session

EXIT_WORKLOAD = 6
MOST_CASES = 200
LINGER_S = 2.0
"""A silent rank waits so long for the one that tells the error: once one leaves, all are killed."""

SILENT_RESULT = Result((), Group(), {}, silent=True)


class EpCommand:
    """measure the fused expert-parallel decode operator against small ops, over MPI ranks. Both
    compute the same bits; told are times with intervals, bytes by stage beside the plan's, exposed
    communication, loads and who waited for whom. Ranks are started here (--ranks), or by 'mpirun -n
    P python -m moe_prof ep ...'; one rank needs no MPI. Example: moe-prof ep 512,1024 --ranks 2
    --verify
    """

    name = "ep"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """The case or cases, and how to run them."""
        parser.add_argument(
            "shapes", metavar="H,N", nargs="+",
            help="hidden size and columns of the first weight (gate and up together), such as "
            "7168,4096; several make a sweep",
        )  # fmt: skip
        add_case(parser)
        add_run(parser)
        add_output(parser)

    def run(self, args: argparse.Namespace, progress: Progress) -> Result:
        """Measure every case; raises MoeProfError."""
        folder = split_output(args)
        place = mpi.launched()
        if place is not None and place.size > 1 and not supervise.is_child():
            code = supervise.run_child(args.argv, place)
            return replace(SILENT_RESULT, exit_code=code)
        facts = machines.read()
        if place is not None and place.size > 1:
            return _under_mpirun(args, facts, folder, place.size)
        cases, left_out = cases_of(args, None)
        run = _Run(args, facts, list(left_out))
        build("release", progress)  # seen by the user, and not within any rank's deadline
        with _session(cases, args, facts, folder) as opened:
            by_ranks: dict[int, list[Case]] = {}
            for case in cases:
                by_ranks.setdefault(case.ranks, []).append(case)
            for ranks, own in by_ranks.items():
                trial = _trial(args, own, ranks, facts, len(own) / len(cases))
                place_of = opened.raw / f"ranks-{ranks}"
                try:
                    launch(trial, ranks, place_of, progress)
                finally:
                    run.take(read_results(place_of), opened)
            result = run.result(opened)
        return with_trouble(result, opened.trouble)


@dataclass
class _Run:
    """What has been measured so far."""

    args: argparse.Namespace
    facts: Machine
    notes: list[str] = field(default_factory=list)
    results: list[CaseResult] = field(default_factory=list)

    def take(self, results: Sequence[CaseResult], opened: Session) -> None:
        """Keep results, and their rows in the session."""
        for one in results:
            opened.add(case_rows(one, usable_cpus=self.facts.usable_cpus()))
            if one.interrupted:
                self.notes.append(f"{one.case.label}: {one.interrupted}")
        self.results += results

    def result(self, opened: Session) -> Result:
        """What the printer needs."""
        for note in self.notes:
            opened.note(note)
        errors = troubles(self.results)
        remarks = [] if self.args.trace is None else [f"traces: {self.args.trace}"]
        return Result(
            rows=opened.rows,
            body=Group(ep_body(opened.rows, self.notes)),
            machine=self.facts.as_dict(),
            session=opened.folder,
            exit_code=EXIT_WORKLOAD if errors else 0,
            errors=tuple(errors),
            remarks=tuple(remarks),
        )


def troubles(results: Sequence[CaseResult]) -> list[str]:
    """Wrong results, variants that differ, and numbers of ranks that differ."""
    found = []
    by_problem: dict[Case, dict[str, str]] = {}
    for one in results:
        label = one.case.label
        found += [f"{label}: {v.variant}: {v.wrong}" for v in one.variants if v.wrong]
        hashes = {v.variant: v.sha256 for v in one.variants if v.sha256}
        if len(set(hashes.values())) > 1:
            found.append(f"{label}: the outputs of {', '.join(hashes)} differ; they must be equal")
        problem = replace(one.case, ranks=1)
        by_problem.setdefault(problem, {}).update(
            {f"P = {one.case.ranks}": text for text in hashes.values()}
        )
    for problem, by_ranks in by_problem.items():
        if len(set(by_ranks.values())) > 1:
            found.append(
                f"{problem.label}: the outputs for {', '.join(by_ranks)} differ; they must be equal"
            )
    return found


def cases_of(
    args: argparse.Namespace, world: int | None
) -> tuple[tuple[Case, ...], tuple[str, ...]]:
    """All cases of a command line, and what a sweep leaves out with the reason.

    Args:
        world: ranks that mpirun started, None without it.

    Raises:
        UsageError: a value is malformed, or no case is possible.
    """
    ranks = args.ranks or ((world,) if world else (1,))
    if world is not None and ranks != (world,):
        raise UsageError(
            f"--ranks {','.join(map(str, ranks))}: mpirun started {world} ranks; leave --ranks out"
        )
    if args.tokens is not None and args.rows_per_expert is not None:
        raise UsageError("--tokens and --rows-per-expert say the same; leave one of them out")
    cases, left_out, refused = [], [], None
    for shape, rows, routing, number in product(
        args.shapes, args.rows_per_expert or (None,), args.routing, ranks
    ):
        h, n = shape_of(shape)
        tokens = DEFAULT_TOKENS if args.tokens is None else args.tokens
        if rows is not None:
            tokens = max(1, round(rows * args.experts / max(1, args.top_k)))
        case = Case(
            h=h, n=n, experts=args.experts, top_k=args.top_k, tokens=tokens, ranks=number,
            routing=routing, dtype=args.dtype, seed=args.seed,
        )  # fmt: skip
        try:
            case.check()
        except UsageError as error:
            refused = refused or error
            left_out.append(f"not measured: {case.label}: {error}")
        else:
            cases.append(case)
    if not cases and refused is not None:
        raise refused
    if len(cases) > MOST_CASES:
        raise UsageError(f"{len(cases)} cases are more than {MOST_CASES}; make a smaller sweep")
    for case in cases:
        check_memory(f"case {case.label}", needed_bytes(case))
    return tuple(dict.fromkeys(cases)), tuple(left_out)


def needed_bytes(case: Case) -> int:
    """Of all ranks on one machine: weights twice (as given, and packed), windows, batch."""
    weights = case.experts * case.h * case.n * 3 // 2
    slots = case.ranks * case.experts * case.max_tokens * (case.h + 512)
    back = case.ranks * case.experts * case.max_tokens * 2 * case.h
    workspace = case.rows * (4 * case.n + 8 * case.h)
    batch = case.ranks * case.tokens * case.h * 4 * 3
    return 2 * weights + slots + back + workspace + batch


def read_results(folder: Path) -> list[CaseResult]:
    """What rank 0 has finished, also of a run that failed later."""
    try:
        lines = (folder / signs.RESULTS).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        try:
            found.append(CaseResult.from_json(json.loads(line)))
        except ValueError:  # it was killed in the middle of this line
            break
    return found


def _under_mpirun(
    args: argparse.Namespace, facts: Machine, folder: Path | None, size: int
) -> Result:
    """This process is one of the ranks; the first one makes the session and prints."""
    from moe_prof.ep.rank import as_rank  # noqa: PLC0415  (only ranks need it)

    cases, left_out = cases_of(args, size)
    trial = _trial(args, cases, size, facts, 1.0)
    comm = mpi.load().COMM_WORLD
    rank = int(comm.Get_rank())
    try:
        results = as_rank(trial, comm)
    except MoeProfError as error:
        teller = 1 if isinstance(error, PeerError) and error.peer == 0 else 0
        if rank == teller:
            mpi.end_all_at_exit(error.exit_code)
            raise
        time.sleep(LINGER_S)
        return replace(SILENT_RESULT, exit_code=error.exit_code)
    if rank:
        mpi.load().Finalize()
        return SILENT_RESULT
    try:
        run = _Run(args, facts, list(left_out))
        with _session(cases, args, facts, folder) as opened:
            run.take(results, opened)
            result = run.result(opened)
    finally:
        mpi.load().Finalize()
    return with_trouble(result, opened.trouble)


def _trial(
    args: argparse.Namespace, cases: Sequence[Case], ranks: int, facts: Machine, share: float
) -> Trial:
    """What the ranks are asked; ``share`` of the time is theirs."""
    if args.isa is not None:
        check_supported(args.isa, read_cpu())
    if args.inject is not None and args.inject.rank >= ranks:
        raise UsageError(f"--inject: there is no rank {args.inject.rank} of {ranks}")
    variants = (*VARIANTS, *(ABLATIONS if args.ablate else ()))
    trace = None if args.trace is None else str(args.trace.absolute())
    return Trial(
        cases=tuple(cases), variants=variants, repeat=args.repeat,
        max_time_s=None if args.max_time_s is None else share * args.max_time_s,
        verify=args.verify, isa=args.isa,
        threads=args.threads or max(1, facts.usable_cpus() // ranks),
        transport=args.transport, deadline_s=args.deadline_s, trace=trace, fault=args.inject,
    )  # fmt: skip


def _session(
    cases: Sequence[Case], args: argparse.Namespace, facts: Machine, folder: Path | None
) -> Session:
    first = cases[0]
    label = first.label if len(cases) == 1 else f"{len(cases)} cases from {first.label}"
    return sessions.create(
        EpCommand.name,
        scenario=label.replace(" ", "_"),
        shape=(),
        variants=(*VARIANTS, *(ABLATIONS if args.ablate else ())),
        seed=args.seed,
        machine=facts.as_dict(),
        tools=toolversions.read("release"),
        argv=args.argv,
        folder=folder,
    )
