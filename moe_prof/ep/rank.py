"""What one rank does in a trial: ``python -m moe_prof.ep.rank FOLDER``, or called under mpirun.

For each case: make the group, prepare this rank's experts, run every variant once and compare
outputs, time them in rounds, and bring everything to rank 0, which writes one line of
``results.jsonl``. An error on one rank becomes the error of all, see ``mpi_group``; then the
process leaves without MPI's own end, which would wait for ranks that are gone.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from moe_prof.ep import mpi, oracle, signs, trace
from moe_prof.ep.abi import STAGES
from moe_prof.ep.batches import batch
from moe_prof.ep.cases import Case, Trial
from moe_prof.ep.core import library
from moe_prof.ep.faults import Faulty
from moe_prof.ep.gathering import Gathering, LocalGathering, MpiGathering
from moe_prof.ep.loads import rows_per_expert
from moe_prof.ep.native import Array
from moe_prof.ep.results import WAITS, CaseResult, VariantResult
from moe_prof.ep.rounds import Timed, measure
from moe_prof.ep.subjects import Subjects, prepare
from moe_prof.errors import MoeProfError, PeerError
from moe_prof.measure import crowd
from moe_prof.parent_death import die_with_parent

DEFAULT_CASE_S = 6.0
"""Of timing, for a case."""
MOST_TRACED_SPANS = 20_000

Stage = Callable[[str], None]
At = Callable[[str, int], None]


@dataclass(frozen=True, slots=True)
class Checked:
    """One call's output: hash, distance from the oracle, why it is wrong."""

    sha256: str = ""
    deviation: oracle.Deviation | None = None
    wrong: str = ""


def as_rank(trial: Trial, comm: Any) -> list[CaseResult]:  # noqa: ANN401
    """This rank's part of a trial under mpirun; results on rank 0, none elsewhere."""
    return run_trial(trial, MpiGathering(comm), lambda text: None, lambda result: None)


def run_trial(
    trial: Trial,
    gathering: Gathering,
    stage: Stage,
    finished: Callable[[CaseResult], None],
) -> list[CaseResult]:
    """All cases of a trial; ``finished`` is called on rank 0 after each."""
    results = []
    library(trial.isa)  # built before any deadline runs
    whole_s = trial.max_time_s or DEFAULT_CASE_S * len(trial.cases)
    for index, case in enumerate(trial.cases):
        stage(f"case {index + 1} of {len(trial.cases)}: {case.label}")
        result = _run_case(case, trial, gathering, whole_s / len(trial.cases), stage)
        if gathering.rank == 0:
            finished(result)
            results.append(result)
    return results


def _run_case(
    case: Case, trial: Trial, gathering: Gathering, budget_s: float, stage: Stage
) -> CaseResult:
    """One case on this rank; complete on rank 0 alone."""
    whole = batch(case)
    with gathering.group(case, trial) as group, prepare(case, trial, group, whole) as subjects:
        board = group.board

        def at(name: str, index: int) -> None:
            text = f"{name}, round {index}" if index else f"{name}, first calls"
            board.stage(text)
            stage(text)

        at("prepared", 0)
        board.meet("prepared", deadline_s=max(board.deadline_s, 600.0))
        faulty = Faulty(trial.fault, gathering.rank)
        calls = {name: faulty.around(call) for name, call in subjects.calls.items()}
        expected = _expected(trial, subjects, gathering, at)
        checked = {name: _checked(name, subjects, gathering, expected, at) for name in calls}
        before = crowd.read()
        own_s = time.process_time()
        timed = measure(board, calls, repeat=trial.repeat, budget_s=budget_s, before_sample=at)
        after, own_s = crowd.read(), time.process_time() - own_s
        at("gathering results", 0)
        if trial.trace is not None:
            _write_trace(trial.trace, case, subjects, gathering)
        variants = tuple(
            _variant(name, subjects, timed[name], checked[name], gathering) for name in calls
        )
        others = _others(before, after, gathering.gather(own_s))
        group.check_guards()
        sizes = gathering.gather(subjects.workspace_bytes)
        return CaseResult(
            case=case, variants=variants, transport=group.transport, mpi=gathering.library,
            expert_rows=tuple(int(n) for n in rows_per_expert(whole.ids, case.experts)),
            workspace_bytes=max((size[0] for size in sizes), default=None),
            workspace_apart_bytes=max((size[1] for size in sizes), default=None),
            window_bytes=group.layout.size_bytes,
            others_cpus=None if others is None else others.others,
            cpus=None if others is None else others.cpus,
        )  # fmt: skip


def _expected(trial: Trial, subjects: Subjects, gathering: Gathering, at: At) -> Array | None:
    """The oracle's output of all ranks, on rank 0 of a trial that verifies."""
    if not trial.verify:
        return None
    at("computing the oracle", 0)
    parts = gathering.gather(subjects.expected())
    return np.concatenate(parts) if parts else None


def _checked(
    name: str, subjects: Subjects, gathering: Gathering, expected: Array | None, at: At
) -> Checked:
    """One call's output, on rank 0."""
    at(f"{name}, verifying", 0)
    parts = gathering.gather(subjects.run_once(name))
    if not parts:
        return Checked()
    output = np.concatenate(parts)
    digest = hashlib.sha256(output.tobytes()).hexdigest()
    if expected is None:
        return Checked(digest)
    found = oracle.deviation(output, expected)
    if found.within:
        return Checked(digest, found)
    return Checked(
        digest, found,
        f"wrong result: rel RMSE {found.rel_rmse:.2g} (limit {oracle.REL_RMSE:g}), worst token "
        f"{found.worst_token:.2g} (limit {oracle.WORST_TOKEN:g})",
    )  # fmt: skip


def _variant(
    name: str,
    subjects: Subjects,
    timed: Timed,
    checked: Checked,
    gathering: Gathering,
) -> VariantResult:
    """All ranks' measurements together, on rank 0."""
    calls = max(1, timed.total_calls)
    record = timed.record
    told = gathering.gather(
        {
            "samples_s": timed.samples_s, "cpu_s": timed.cpu_s / calls,
            "stage_s": {n: s / calls for n, s in record.stage_s.items()},
            "wall_s": record.total_s / calls,
            "bytes": {
                stage: {kind: count // calls for kind, count in kinds.items()}
                for stage, kinds in record.bytes.items()
            },
            "predicted": subjects.predicted(name), "waits": (record.wait_s / calls).tolist(),
        }
    )  # fmt: skip
    if not told:
        return VariantResult(variant=name)
    found = checked.deviation
    waits = {
        stage: tuple(tuple(one["waits"][at]) for one in told) for at, stage in enumerate(WAITS)
    }
    info = subjects.info
    return VariantResult(
        variant=name, calls=timed.calls, sha256=checked.sha256, isa=info.isa,
        microkernel=info.microkernel, threads=info.threads, note=info.note,
        samples_s=tuple(zip(*(one["samples_s"] for one in told), strict=True)),
        cpu_s=sum(one["cpu_s"] for one in told),
        stage_s=tuple(one["stage_s"] for one in told),
        wall_s=tuple(one["wall_s"] for one in told),
        counted=_summed([one["bytes"] for one in told]),
        predicted=_summed([one["predicted"] for one in told]),
        waits_s=waits if any(any(map(any, matrix)) for matrix in waits.values()) else {},
        rel_rmse=None if found is None else found.rel_rmse,
        worst_token=None if found is None else found.worst_token,
        wrong=checked.wrong,
    )  # fmt: skip


def _summed(parts: Sequence[dict[str, dict[str, int]]]) -> dict[str, dict[str, int]]:
    """Bytes of all ranks; stages and traffics without any are left out."""
    sums: dict[str, dict[str, int]] = {}
    for stage in STAGES:
        for part in parts:
            for kind, count in part.get(stage, {}).items():
                if count:
                    own = sums.setdefault(stage, {})
                    own[kind] = own.get(kind, 0) + count
    return sums


def _others(
    before: crowd.Reading | None, after: crowd.Reading | None, own_s: Sequence[float]
) -> crowd.Crowd | None:
    """What programs other than the ranks used of this machine's CPUs, on rank 0."""
    if before is None or after is None or not own_s:
        return None
    found = crowd.between(before, after)
    wall_s = after.wall_s - before.wall_s
    if found is None:
        return None
    ranks = (sum(own_s) - (after.own_s - before.own_s)) / wall_s
    return crowd.Crowd(found.cpus, max(0.0, found.others - ranks))


def _write_trace(folder: str, case: Case, subjects: Subjects, gathering: Gathering) -> None:
    """One traced call of each variant; rank 0 writes the files."""
    spans = []
    for name in subjects.calls:
        spans += [
            trace.Span(
                gathering.rank, s.thread, s.stage, name, round(s.begin_s * 1e9),
                round(s.end_s * 1e9), s.expert, s.peer,
            )
            for s in subjects.traced(name, MOST_TRACED_SPANS)
        ]  # fmt: skip
    parts = gathering.gather(spans)
    if parts:
        stem = case.label.replace(" ", "_").replace(",", "x")
        trace.write(Path(folder), stem, [s for part in parts for s in part], case.ranks)


def main(argv: list[str]) -> NoReturn:
    """Run the trial of a folder as the rank that mpirun says, or alone."""
    die_with_parent(os.getppid())
    folder = Path(argv[0])
    place = mpi.launched()
    signs_of = signs.Writer(folder, place.rank if place is not None else 0)
    trial = Trial.from_json(json.loads((folder / signs.JOB).read_text(encoding="utf-8")))

    def keep(result: CaseResult) -> None:
        with (folder / signs.RESULTS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(result.to_json(), default=_plain) + "\n")

    try:
        many = trial.cases[0].ranks > 1
        gathering = MpiGathering(mpi.load().COMM_WORLD) if many else LocalGathering()
        run_trial(trial, gathering, signs_of.stage, keep)
    except MoeProfError as error:
        named = (error.peer,) if isinstance(error, PeerError) and error.peer >= 0 else ()
        signs_of.end(error.exit_code, str(error), named)
        _leave(error.exit_code)
    signs_of.end(signs.OK)
    if many:
        mpi.load().Finalize()
    sys.exit(0)  # MPICH tells mpirun of the end in exit handlers, which os._exit leaves out


def _leave(code: int) -> NoReturn:
    """At once: what is left of MPI may wait for ranks that are gone."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _plain(value: object) -> object:
    """Numbers of NumPy as JSON's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} has no JSON form")


if __name__ == "__main__":
    main(sys.argv[1:])
