"""``counters --target``: instructions of another architecture's variants, in an emulator."""

from __future__ import annotations

import argparse
import dataclasses

from rich.console import Group, RenderableType
from rich.text import Text

from moe_prof.analysis.query import RowIndex
from moe_prof.collectors import qemu_user
from moe_prof.commands.base import Result, with_trouble
from moe_prof.commands.options import split_output
from moe_prof.commands.workload import open_session, workload_from
from moe_prof.deadline import Deadline
from moe_prof.errors import UnavailableError
from moe_prof.kernels import build as kernel_build
from moe_prof.kernels.target import DEFAULT_VECTOR_BITS, TARGETS, VECTOR_BITS, Target
from moe_prof.kernels.target import target as find_target
from moe_prof.machine import read as read_machine
from moe_prof.measure.expected import layer_macs
from moe_prof.progress import Progress
from moe_prof.render.tables import LEGEND, counters_table
from moe_prof.topdown.counting import TIMEOUT_S
from moe_prof.topdown.emulated import Emulation, choose

_EMULATION_FACTOR = 10
"""An emulated run may take so many times longer than other tools are given."""


def add_target(parser: argparse.ArgumentParser) -> None:
    """--target and --vector-bits."""
    parser.add_argument(
        "--target", choices=TARGETS, default=None,
        help="count the variants for another architecture in an emulator: instructions only, no "
        "time (default: this machine)",
    )  # fmt: skip
    parser.add_argument(
        "--vector-bits", type=int, choices=VECTOR_BITS, default=DEFAULT_VECTOR_BITS,
        help=f"length of the emulated vector registers (default: {DEFAULT_VECTOR_BITS})",
    )  # fmt: skip


def run(args: argparse.Namespace, progress: Progress) -> Result:
    """Count each variant of the target once, on one thread.

    Raises:
        BuildError: there is no cross compiler, or it fails.
        UnavailableError: not one variant could be counted.
    """
    deadline = Deadline(args.max_time_s)
    machine = read_machine()
    target = find_target(args.target)
    here = argparse.Namespace(**{**vars(args), "variant": "scalar", "isa": None})
    work = workload_from(here, machine)  # sizes and memory; variants are those of the target
    available = qemu_user.availability()
    if not available.usable:
        raise UnavailableError(
            f"nothing can be counted for {target.name} here: {available.reason}; {available.remedy}"
        )
    built = kernel_build.build("release", progress, target.name)
    work = dataclasses.replace(work, variants=choose(args.variant, built), threads=1)
    folder = split_output(args)
    with open_session("counters", work, machine, argv=args.argv, folder=folder) as session:
        emulation = Emulation(
            target, built, work.scenario, work.seed, args.vector_bits,
            session.raw / qemu_user.NAME,
        )  # fmt: skip
        for name in work.variants:
            progress.step(f"{name}: counting in {target.name}'s emulator", slow=True)
            timeout_s = deadline.left_s(_EMULATION_FACTOR * TIMEOUT_S)
            session.add(emulation.rows(name, layer_macs(work.scenario), timeout_s))
        rows = session.rows
        if not any(row.value is not None for row in rows):
            raise UnavailableError(f"nothing could be counted: {rows[0].source}")
        result = Result(
            rows=rows,
            body=Group(*_body(RowIndex(rows), work.variants, work.scenario.label, target, args)),
            machine=machine.as_dict(),
            session=session.folder,
        )
    return with_trouble(result, session.trouble)


def _body(
    index: RowIndex, variants: tuple[str, ...], label: str, target: Target, args: argparse.Namespace
) -> list[RenderableType]:
    missing = {name: index.text(name, "instructions") for name in variants
               if index.value(name, "instructions") is None}  # fmt: skip
    return [
        Text(f"{label}: events of one forward on {target.name}", style="bold"),
        counters_table(index, variants),
        "",
        *(Text(f"{name}: {reason}", style="dim") for name, reason in missing.items()),
        Text(
            f"{qemu_user.NOTE.capitalize()}. One thread of qemu-{target.name} with vector "
            f"registers of {args.vector_bits} bits; what stands in for vmadot is left out.",
            style="dim",
        ),
        Text(f"Marks: {LEGEND}.", style="dim"),
    ]
