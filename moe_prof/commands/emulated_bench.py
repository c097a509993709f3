"""``bench --target``: another architecture's variants, checked and counted in an emulator."""

from __future__ import annotations

import argparse
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from moe_prof.analysis.query import RowIndex
from moe_prof.collectors import qemu_user
from moe_prof.commands.base import Result, with_trouble
from moe_prof.commands.emulated import Foreign, foreign
from moe_prof.errors import UnavailableError, WorkloadError
from moe_prof.progress import Progress
from moe_prof.render.tables import LEGEND, emulated_table
from moe_prof.rows import Row, unavailable
from moe_prof.topdown import emulated
from moe_prof.topdown.emulated import BASELINE, FAILURES, Emulated

EXIT_WORKLOAD = WorkloadError.exit_code


def run(args: argparse.Namespace, progress: Progress) -> Result:
    """Check each variant against ``scalar`` in the emulator, and count its instructions.

    Raises:
        BuildError: the cross compiler fails.
        UnavailableError: not one variant could be counted.
    """
    failures: list[str] = []
    with foreign("bench", args, progress, with_baseline=True) as there:
        session, names = there.session, there.work.variants
        for name in names:
            progress.step(f"{name}: checking and counting in {args.target}'s emulator", slow=True)
            session.add(_measure(there, name, failures))
        session.add(emulated.reductions(list(session.rows), there.work.scenario.label, names))
        rows = session.rows
        totals = [row for row in rows if row.metric == "instructions" and not row.phase]
        counted = {row.variant for row in totals if row.value is not None}
        if not there.deadline.passed and len(names) > 1:
            counted.discard(BASELINE)  # alone it answers nothing
        if not counted and not failures:
            reasons = dict.fromkeys(row.source for row in totals if row.value is None)
            raise UnavailableError(f"nothing could be counted: {'; '.join(reasons)}")
        result = Result(
            rows=rows,
            body=Group(*_body(RowIndex(rows), there)),
            machine=there.machine.as_dict(),
            session=session.folder,
            exit_code=EXIT_WORKLOAD if failures else 0,
            errors=tuple(failures),
        )
    return with_trouble(result, session.trouble)


def _measure(there: Foreign, name: str, failures: list[str]) -> list[Row]:
    """A variant's rows; a wrong one has its errors and no counts, as a wrong one has no time."""
    emulation, scenario = there.emulation, there.work.scenario
    labels: dict[str, Any] = {
        "scenario": scenario.label, "variant": name, "collector": qemu_user.NAME,
    }  # fmt: skip
    no_time = [
        unavailable(metric, unit, qemu_user.NOTE, **labels)
        for metric, unit in (("time", "s"), ("speedup", "1"))
    ]
    try:
        found = emulation.count(name, there.timeout_s(), checked=name != BASELINE)
    except FAILURES as error:
        if isinstance(error, WorkloadError) and not there.deadline.passed:
            failures.append(f"variant {name}: {error}")
        return [*emulation.missing(name, there.reason(error)), *no_time]
    known = [*emulation.identity(name), *_errors(found, labels), *no_time]
    if found.wrong:
        reason = f"wrong: rel_rmse {found.result.rel_rmse:.3g} against {BASELINE}"
        failures.append(f"variant {name}: {reason}")
        return [*known, *emulation.missing(name, reason)]
    return [*known, *emulation.count_rows(name, found.counts)]


def _errors(found: Emulated, labels: dict[str, Any]) -> list[Row]:
    source = f"against {BASELINE}, in the emulator"
    pairs = (("rel_rmse", found.result.rel_rmse), ("worst_token", found.result.worst_error))
    if found.result.rel_rmse is None:
        reason = (
            "it is what others are compared with; natively the tests compare it with the oracle"
        )
        return [unavailable(metric, "1", reason, **labels) for metric, _ in pairs]
    return [
        Row(metric=metric, value=value, unit="1", provenance="simulated", source=source, **labels)
        for metric, value in pairs
    ]


def _body(index: RowIndex, there: Foreign) -> list[RenderableType]:
    names, label = there.work.variants, there.work.scenario.label
    missing = {name: index.text(name, "instructions") for name in names
               if index.value(name, "instructions") is None}  # fmt: skip
    title = f"{label}: one forward on {there.emulation.target.name}, checked and counted"
    return [
        Text(title, style="bold"),
        emulated_table(index, names),
        "",
        *(Text(f"{name}: {reason}", style="dim") for name, reason in missing.items()),
        Text(f"fewer: instructions of {BASELINE} over the variant's, which is no speedup.",
             style="dim"),
        Text(there.foot(), style="dim"),
        Text(f"Marks: {LEGEND}.", style="dim"),
    ]  # fmt: skip
