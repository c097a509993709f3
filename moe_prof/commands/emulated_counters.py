"""``counters --target``: instructions of another architecture's variants, in an emulator."""

from __future__ import annotations

import argparse

from rich.console import Group, RenderableType
from rich.text import Text

from moe_prof.analysis.query import RowIndex
from moe_prof.commands.base import Result, with_trouble
from moe_prof.commands.emulated import Foreign, foreign
from moe_prof.errors import UnavailableError
from moe_prof.progress import Progress
from moe_prof.render.tables import LEGEND, counters_table, instruction_phase_table
from moe_prof.rows import Row
from moe_prof.topdown.emulated import FAILURES


def run(args: argparse.Namespace, progress: Progress) -> Result:
    """Count each variant of the target once, on one thread.

    Raises:
        BuildError: the cross compiler fails.
        UnavailableError: not one variant could be counted.
    """
    with foreign("counters", args, progress) as there:
        work, session = there.work, there.session
        for name in work.variants:
            progress.step(f"{name}: counting in {args.target}'s emulator", slow=True)
            session.add(_counts(there, name))
        rows = session.rows
        if not any(row.value is not None for row in rows if row.metric == "instructions"):
            reasons = dict.fromkeys(row.source for row in rows if row.provenance == "unavailable")
            raise UnavailableError(f"nothing could be counted: {'; '.join(reasons)}")
        result = Result(
            rows=rows,
            body=Group(*_body(RowIndex(rows), there)),
            machine=there.machine.as_dict(),
            session=session.folder,
        )
    return with_trouble(result, session.trouble)


def _counts(there: Foreign, name: str) -> list[Row]:
    """The counts of a variant as rows; the reason where there are none."""
    emulation = there.emulation
    try:
        counts = emulation.count(name, there.timeout_s()).counts
    except FAILURES as error:
        return emulation.missing(name, there.reason(error))
    return [*emulation.identity(name), *emulation.count_rows(name, counts)]


def _body(index: RowIndex, there: Foreign) -> list[RenderableType]:
    names, label = there.work.variants, there.work.scenario.label
    missing = {name: index.text(name, "instructions") for name in names
               if index.value(name, "instructions") is None}  # fmt: skip
    title = f"{label}: events of one forward on {there.emulation.target.name}"
    return [
        Text(title, style="bold"),
        counters_table(index, names),
        "",
        Text("Share of the instructions by phase", style="bold"),
        instruction_phase_table(index, names),
        "",
        *(Text(f"{name}: {reason}", style="dim") for name, reason in missing.items()),
        Text(there.foot(), style="dim"),
        Text(f"Marks: {LEGEND}.", style="dim"),
    ]
