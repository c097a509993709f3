"""From a command's arguments to the workload: scenario, variants, threads, memory check."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from moe_prof import scenario as scenarios
from moe_prof import session as sessions
from moe_prof import toolversions
from moe_prof.commands.layer import fitted, with_checkpoint
from moe_prof.errors import UsageError
from moe_prof.kernels import build as kernel_build
from moe_prof.kernels import driver, selection
from moe_prof.kernels.build import Kind
from moe_prof.kernels.elf import foreign_reason
from moe_prof.kernels.features import check_supported, read_cpu
from moe_prof.kernels.table import BY_NAME
from moe_prof.kernels.weights import MAX_REDUCTION
from moe_prof.machine import Machine
from moe_prof.progress import Progress
from moe_prof.scenario import Scenario
from moe_prof.session import Session


@dataclass(frozen=True, slots=True)
class Workload:
    """What a command shall run.

    Attributes:
        variants: names in table order, or in the order given.
        isa: forced path, None for each variant's best.
        left_out: variants of ``all`` that cannot run here or not on the forced path, with reason.
    """

    scenario: Scenario
    variants: tuple[str, ...]
    threads: int
    isa: str | None
    seed: int
    left_out: tuple[tuple[str, str], ...] = ()


def workload_from(args: argparse.Namespace, machine: Machine) -> Workload:
    """Check the common options against the tables and the machine.

    Without ``--isa`` the path of MOE_PROF_ISA is forced, in the same way.

    Raises:
        UsageError: unknown scenario, variant or path, a path that this CPU lacks, no tokens, sums
            longer than an int32 can hold, or more memory than there is.
    """
    scenario = with_checkpoint(scenarios.parse(args.scenario), args)
    _check_tokens(scenario)
    _check_reductions(scenario)
    isa = args.isa if args.isa is not None else os.environ.get("MOE_PROF_ISA") or None
    names, left_out = choose_variants(args.variant, isa)
    return Workload(
        fitted(scenario, names),
        names,
        args.threads or machine.usable_cpus(),
        isa,
        args.seed,
        left_out,
    )


def open_session(
    command: str,
    work: Workload,
    machine: Machine,
    *,
    argv: Sequence[str],
    folder: Path | None,
    build: Kind = "release",
) -> Session:
    """A session of the workload, as :func:`session.create` makes it.

    Args:
        build: the build whose times the session will hold.

    Raises:
        MoeProfError: its folder cannot be used.
    """
    return sessions.create(
        command,
        scenario=work.scenario.label,
        shape=work.scenario.shape,
        variants=work.variants,
        seed=work.seed,
        machine=machine.as_dict(),
        tools=toolversions.read(build),
        argv=argv,
        folder=folder,
    )


def build_kernels(work: Workload, progress: Progress) -> None:
    """Compile what the run's variants need, before its time limit begins.

    Raises:
        BuildError: they cannot be compiled.
    """
    if any(driver.runs(name) for name in work.variants):
        kernel_build.build("release", progress)


def choose_variants(
    text: str, isa: str | None
) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Names from ``a,b`` or ``all``, and what ``all`` leaves out with the reason.

    Raises:
        UsageError: a name is unknown, cannot run here, or has no such path.
    """
    if isa is not None:
        check_supported(isa, read_cpu())
    if text.strip().lower() != "all":
        names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
        if not names:
            raise UsageError("--variant names no variant; see 'moe-prof list'")
        for name in names:
            reason = why_not(name, isa)
            if reason:
                raise UsageError(reason)
        return names, ()
    reasons = {name: why_not(name, isa) for name in BY_NAME}
    left_out = tuple((name, reason) for name, reason in reasons.items() if reason)
    names = tuple(name for name, reason in reasons.items() if not reason)
    if not names:
        raise UsageError(f"no variant runs here on the path {isa!r}; see 'moe-prof doctor'")
    return names, left_out


def why_not(name: str, isa: str | None) -> str:
    """Why a variant cannot run here (on a forced path); "" when it can.

    Raises:
        UsageError: the variant or the path is unknown.
    """
    if selection.is_library_path(name):
        return _why_no_library(name, selection.library_parts(name)[0])
    if name not in BY_NAME:
        raise UsageError(f"unknown variant {name!r}; known variants: {', '.join(BY_NAME)}")
    here = selection.isas(name)
    if not here:
        wanted = " or ".join(BY_NAME[name].isas)
        return f"variant {name!r} needs the path {wanted}, which this machine does not run"
    if isa is not None and isa not in here and here != ("portable",):
        return f"variant {name!r} has no path {isa!r} that runs here; it has: {', '.join(here)}"
    return ""


def _why_no_library(name: str, path: Path) -> str:
    """Why the file cannot be a library of this machine, "" when it may be one."""
    try:
        if not path.is_file():
            return f"variant {name!r}: there is no library {path}"
        reason = foreign_reason(path)
    except OSError as error:
        reason = f"{path} cannot be read: {error.strerror}"
    if reason is None:
        return ""
    return f"variant {name!r}: {reason}; a shared library of this machine is needed"


def _check_tokens(scenario: Scenario) -> None:
    """A forward of no tokens is right and returns at once: there is nothing to measure in it."""
    if not scenario.num_tokens:
        raise UsageError(
            f"scenario {scenario.label}: N (num_tokens) = 0 leaves nothing to measure; use N of at "
            "least 1"
        )


def _check_reductions(scenario: Scenario) -> None:
    for label, length in (("D (d_model)", scenario.d_model), ("H (d_ff)", scenario.d_ff)):
        if length > MAX_REDUCTION:
            raise UsageError(
                f"scenario {scenario.label}: {label} = {length} is larger than {MAX_REDUCTION}; "
                "the int32 sum of so many int8 products could overflow"
            )


def isa_for(name: str, isa: str | None) -> str | None:
    """The path to force on one variant: the baseline keeps its only one."""
    if selection.is_library_path(name) or selection.isas(name) == ("portable",):
        return None
    return isa
