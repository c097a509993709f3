"""Paths that stand in for others in the model: simulable ones, where the best one is not.

A variant is timed on its best path. Where valgrind cannot simulate that path's instructions, a
further path of the same variant is timed, simulated and modelled; ``modelled_isa`` names it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from moe_prof.analysis.query import RowIndex
from moe_prof.collectors import builtin
from moe_prof.errors import MoeProfError
from moe_prof.kernels.features import CpuFeatures
from moe_prof.kernels.selection import forced_isa, isas
from moe_prof.kernels.table import BY_NAME
from moe_prof.measure.jobs import job_of
from moe_prof.measure.results import Job, Measurement, PhaseTimes
from moe_prof.rows import Row
from moe_prof.scenario import Scenario
from moe_prof.topdown import simulation

METRIC = "modelled_isa"
COLLECTOR = "model"


@dataclass(frozen=True, slots=True)
class StandIns:
    """Times of the stand-ins by variant, apart from those of the paths that they stand in for.

    Attributes:
        paths: the path that is modelled, by variant.
        index: what was measured on these paths.
        failed: why nothing was, by variant.
    """

    paths: Mapping[str, str]
    index: RowIndex
    failed: Mapping[str, str]


def stand_ins(
    variants: Sequence[str], cpu: CpuFeatures, wished: Mapping[str, str | None]
) -> dict[str, str]:
    """The path to model by variant, for those whose best path cannot be simulated.

    Args:
        wished: the path asked for, by variant; it is modelled itself or not at all.
    """
    found = {}
    for name in variants:
        spec = BY_NAME.get(name)
        if spec is None or spec.language != "c++" or forced_isa(spec, wished.get(name)) is not None:
            continue
        simulable = simulation.simulable_isa(name, cpu)
        if simulable is not None and simulable != isas(name)[0]:
            found[name] = simulable
    return found


def notes(paths: Mapping[str, str]) -> list[str]:
    """One line for each pair of a best path and its stand-in."""
    names: dict[tuple[str, str], list[str]] = {}
    for name, path in paths.items():
        names.setdefault((isas(name)[0], path), []).append(name)
    return [
        f"{', '.join(v)}: slots are those of the {path} path; valgrind cannot simulate the "
        f"instructions of {best}, which was timed"
        for (best, path), v in names.items()
    ]


def measure_stand_ins(
    paths: Mapping[str, str],
    scenario: Scenario,
    *,
    usable_cpus: int,
    time: Callable[[Sequence[Job]], Measurement],
    phases: Callable[[Sequence[Job]], Sequence[PhaseTimes]],
) -> StandIns:
    """Time the stand-ins and their phases, as the model wants them.

    Args:
        time / phases: what measures jobs, with its request and folder bound.
    """
    jobs = [job_of(name, path) for name, path in paths.items()]
    rows: list[Row] = []
    failed = {}
    try:
        measurement = time(jobs)
        rows += builtin.timing_rows(measurement, scenario, usable_cpus=usable_cpus)
        failed = {t.variant: t.reason for t in measurement.timings if not t.trusted}
        trusted = [job for job in jobs if job.variant not in failed]
        for times in phases(trusted) if trusted else ():
            rows += builtin.phase_rows(times, scenario)
    except MoeProfError as error:
        failed = dict.fromkeys(paths, str(error))
    return StandIns(paths, RowIndex(rows), failed)


def labelled(rows: Sequence[Row], path: str, scenario: str, variant: str) -> list[Row]:
    """The modelled rows of a stand-in, each saying whose they are, and ``modelled_isa``."""
    name = Row(
        scenario=scenario, variant=variant, collector=COLLECTOR, metric=METRIC, value=None,
        unit="1", provenance="modelled", source=path,
    )  # fmt: skip
    told = [
        row if row.value is None else replace(row, source=f"{path} path: {row.source}")
        for row in rows
    ]
    return [name, *told]
