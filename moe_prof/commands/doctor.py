"""``doctor``: what works on this machine, what does not, why, and the command that would fix it."""

from __future__ import annotations

import argparse
import os

from rich import box
from rich.console import Group as Body
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from moe_prof import machine as facts
from moe_prof.checks import GROUPS, Context, Finding, findings
from moe_prof.collectors import perf_facts
from moe_prof.commands.base import Result
from moe_prof.errors import BuildError
from moe_prof.kernels import build as kernel_build
from moe_prof.progress import Progress
from moe_prof.rows import Row

_COLLECTOR = "doctor"
_MARKS = {True: ("yes", "green"), False: ("no", "red")}
_MACHINE_MARKS = {True: ("ok", "green"), False: ("warn", "yellow")}


class Doctor:
    """say what can be used here: build, ISA paths, collectors, state of the machine.

    Each line tells whether it is usable, why, and the exact command that would change it. Nothing
    is changed; the C++ kernels are built if they were not yet. Example: moe-prof doctor
    """

    name = "doctor"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """No options of its own."""

    def run(self, args: argparse.Namespace, progress: Progress) -> Result:
        """Run all checks."""
        del args
        machine = facts.read()
        found = findings(gather(machine, progress))
        return Result(tuple(rows(found)), body(found), machine.as_dict())


def gather(machine: facts.Machine, progress: Progress) -> Context:
    """Build the kernels and ask perf: what the checks need beyond the machine's facts."""
    load = os.getloadavg()[0]  # before the build adds its own
    built, trouble = None, ""
    try:
        built = kernel_build.build("release", progress)
    except BuildError as error:
        trouble = str(error)
    progress.step("asking the profilers")
    return Context(
        machine,
        built,
        trouble,
        kernel_build.cache_root(),
        perf_facts.gather(machine),
        load=load,
    )


def rows(found: tuple[Finding, ...]) -> list[Row]:
    """One row a finding: metric ``usable``, 1 or 0, the reason and the fix in ``source``.

    ``variant`` is the name of what was checked and ``phase`` its group; a collector's row has its
    own name as ``collector``, the others ``doctor``.
    """
    tidy = []
    for finding in found:
        item = finding.availability
        fix = f"; fix: {item.remedy}" if item.remedy else ""
        tidy.append(
            Row(
                collector=item.name if finding.group == "collectors" else _COLLECTOR,
                scope="machine",
                variant=item.name,
                phase=finding.group,
                metric="usable",
                value=float(item.usable),
                unit="1",
                source=f"{item.reason}{fix}",
            )
        )
    return tidy


def body(found: tuple[Finding, ...]) -> RenderableType:
    """One table a group, the fix below the reason."""
    parts: list[RenderableType] = []
    for group in GROUPS:
        members = [finding for finding in found if finding.group == group]
        if not members:
            continue
        table = Table(
            box=box.SIMPLE_HEAD, show_header=False, padding=(0, 1), pad_edge=False, show_edge=False
        )
        table.add_column(no_wrap=True, min_width=4)
        table.add_column(no_wrap=True, min_width=12)
        table.add_column(overflow="fold")
        marks = _MACHINE_MARKS if group == "machine" else _MARKS
        for finding in members:
            item = finding.availability
            mark, colour = marks[item.usable]
            table.add_row(Text(mark, style=colour), item.name, _text(finding))
        parts += [Text(group, style="bold"), table, Text()]
    missing = sum(not finding.availability.usable for finding in found)
    parts.append(
        Text(
            f"{len(found) - missing} of {len(found)} checks are good. What is missing is optional "
            "unless it stands under 'build'."
        )
    )
    return Body(*parts)


def _text(finding: Finding) -> Text:
    item = finding.availability
    version = f" (version {item.version})" if item.version else ""
    text = Text(f"{item.reason}{version}")
    if item.remedy:
        text.append("\nfix: ", style="bold")
        text.append(item.remedy)
    return text
