"""What ``--target`` means for every command: the cross build, its variants, the emulator."""

from __future__ import annotations

import argparse
import dataclasses
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from moe_prof.collectors import qemu_user
from moe_prof.commands.options import TIMED_BUILDS, split_output
from moe_prof.commands.workload import Workload, open_session, workload_from
from moe_prof.deadline import Deadline
from moe_prof.errors import MoeProfError, UnavailableError, UsageError
from moe_prof.kernels import build as kernel_build
from moe_prof.kernels.build import Kind
from moe_prof.kernels.target import DEFAULT_VECTOR_BITS, TARGETS, VECTOR_BITS
from moe_prof.kernels.target import target as find_target
from moe_prof.machine import Machine
from moe_prof.machine import read as read_machine
from moe_prof.progress import Progress
from moe_prof.session import Session
from moe_prof.topdown.counting import TIMEOUT_S
from moe_prof.topdown.emulated import BASELINE, Emulation, best, choose

_FACTOR = 10
"""An emulated run may take so many times longer than other tools are given."""
BEST = "best"
"""As --variant: one, chosen when it is known what the build has."""
ONLY_HERE = (
    "isa", "weights", "layer", "vs", "cc", "cflags", "analysis", "repeat", "processes",
)  # fmt: skip
"""Options that say nothing of programs for another architecture, counted exactly and not timed."""


def add_target(parser: argparse.ArgumentParser, what: str) -> None:
    """--target and --vector-bits.

    Args:
        what: the command does with variants of another architecture, for the help.
    """
    parser.add_argument(
        "--target", choices=TARGETS, default=None,
        help=f"{what} for another architecture in an emulator: instructions only, no time "
        "(default: this machine)",
    )  # fmt: skip
    parser.add_argument(
        "--vector-bits", type=int, choices=VECTOR_BITS, default=None,
        help="length of the emulated vector registers, with --target (default: "
        f"{DEFAULT_VECTOR_BITS})",
    )  # fmt: skip


def is_foreign(args: argparse.Namespace) -> bool:
    """Whether the target is another architecture than this machine's, which needs no emulator.

    Raises:
        UsageError: vector registers are to be emulated, and nothing is.
    """
    if args.target is not None and args.target != platform.machine():
        return True
    if args.vector_bits is not None:
        raise UsageError(
            "--vector-bits is for an emulated machine; add --target riscv64 or leave it out"
            if args.target is None
            else f"--vector-bits: this machine is {args.target}, nothing is emulated; leave it out"
        )
    return False


def refuse_program(args: argparse.Namespace) -> None:
    """A program after ``--`` runs as it is: neither built for a target nor emulated.

    Raises:
        UsageError: an option of the emulator is given with one.
    """
    for name in ("target", "vector_bits"):
        if getattr(args, name) is not None:
            option = name.replace("_", "-")
            raise UsageError(
                f"--{option} is for variants, not for a program after --; leave it out"
            )


@dataclass(frozen=True, slots=True)
class Foreign:
    """All that a command needs for variants of another architecture."""

    work: Workload
    machine: Machine
    session: Session
    emulation: Emulation
    deadline: Deadline

    def timeout_s(self) -> float:
        """For the next run.

        Raises:
            UnavailableError: the time limit has passed.
        """
        if self.deadline.passed:
            raise UnavailableError(self.deadline.reason)
        return self.deadline.left_s(_FACTOR * TIMEOUT_S)

    def reason(self, error: MoeProfError) -> str:
        """Why a run gave nothing: the time limit, where that ended it, else what went wrong."""
        return self.deadline.reason if self.deadline.passed else str(error)

    def foot(self) -> str:
        """The line under every table."""
        return (
            f"{qemu_user.NOTE.capitalize()}. One thread of qemu-{self.emulation.target.name} with "
            f"vector registers of {self.emulation.vector_bits} bits; what stands in for vmadot is "
            "left out."
        )


@contextmanager
def foreign(
    command: str,
    args: argparse.Namespace,
    progress: Progress,
    *,
    build: Kind = "phases",
    with_baseline: bool = False,
) -> Iterator[Foreign]:
    """The workload, its session and the emulator.

    Args:
        build: with the phases marked, or with -pg.
        with_baseline: add ``scalar`` in front where it is not chosen.

    Raises:
        BuildError: the cross compiler fails.
        UsageError: an option that means nothing here, or a variant that the build lacks.
        UnavailableError: there is no emulator, or no cross compiler.
    """
    for name in ONLY_HERE:
        if getattr(args, name, None):
            raise UsageError(f"--{name} has no meaning with --target {args.target}; leave it out")
    if (args.threads or 1) > 1:
        raise UsageError(f"--threads: programs for {args.target} are counted on one thread; leave "
                         "it out")  # fmt: skip
    if getattr(args, "build", TIMED_BUILDS[0]) != TIMED_BUILDS[0]:
        raise UsageError(
            f"--build {args.build}: with --target {args.target} the build that marks phases is "
            "counted; leave it out"
        )
    deadline = Deadline(args.max_time_s)
    machine = read_machine()
    target = find_target(args.target)
    here = argparse.Namespace(**{**vars(args), "variant": BASELINE, "isa": None})
    work = workload_from(here, machine)  # sizes and memory; variants are those of the target
    available = qemu_user.availability()
    if not available.usable:
        raise UnavailableError(
            f"nothing can be counted for {target.name} here: {available.reason}; {available.remedy}"
        )
    built = kernel_build.build(build, progress, target.name)
    bits = args.vector_bits or DEFAULT_VECTOR_BITS
    names = (best(built, bits),) if args.variant == BEST else choose(args.variant, built)
    if with_baseline and BASELINE not in names:
        names = (BASELINE, *names)
    work = dataclasses.replace(work, variants=names, threads=1)
    folder = split_output(args)
    with open_session(command, work, machine, argv=args.argv, folder=folder) as session:
        emulation = Emulation(
            target, built, work.scenario, work.seed, bits,
            session.raw / qemu_user.NAME,
        )  # fmt: skip
        yield Foreign(work, machine, session, emulation, deadline)
