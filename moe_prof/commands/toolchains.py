"""``bench --cc COMPILER --cflags FLAGS``: the built-in sources by several compilers in one run.

Each compiler has a build of its own in the cache; its libraries run as users' libraries do, and
their figures are named ``VARIANT@COMPILER FLAGS``. The baseline stays that of the usual build.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from moe_prof.commands.workload import isa_for
from moe_prof.errors import UsageError
from moe_prof.kernels import build as kernel_build
from moe_prof.kernels.build import Kind
from moe_prof.kernels.compiler import Compiler, find_compiler, named_compiler
from moe_prof.kernels.selection import choose_isa
from moe_prof.kernels.table import BY_NAME
from moe_prof.measure.jobs import job_of
from moe_prof.measure.results import Job, Measurement
from moe_prof.progress import Progress


def add_toolchains(parser: argparse.ArgumentParser) -> None:
    """--cc and --cflags."""
    parser.add_argument(
        "--cc", metavar="COMPILER", action="append", default=[],
        help="compile the built-in C++ variants by this compiler; give it several times to compare "
        "compilers in one run (default: the usual one, see CXX)",
    )  # fmt: skip
    parser.add_argument(
        "--cflags", metavar="FLAGS", action="append", default=[],
        help="flags after those of the build, such as --cflags=-O2; several times to compare "
        "(default: none)",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A compiler with flags, and what the report calls it."""

    compiler: Compiler
    label: str


def toolchains(args: argparse.Namespace) -> tuple[Toolchain, ...]:
    """Every compiler with every set of flags; none where the usual build is meant.

    Raises:
        NoCompilerError: a compiler is not there.
        BuildError: it does not even tell its version.
        UsageError: flags that no shell could split, or --vs beside them.
    """
    if not args.cc and not args.cflags:
        return ()
    if getattr(args, "vs", None) is not None:
        raise UsageError("--vs compares two kernels, --cc and --cflags compilers; use one of them")
    commands: list[str] = list(dict.fromkeys(args.cc)) or [""]
    found = []
    for command in commands:
        compiler = named_compiler(command, f"--cc {command}") if command else find_compiler()
        for flags in dict.fromkeys(args.cflags or [""]):
            words = _split(flags)
            label = " ".join((_called(command, compiler), *words))
            found.append(Toolchain(replace(compiler, flags=words), label))
    return tuple(found)


def compiled_jobs(
    found: Sequence[Toolchain],
    variants: Sequence[str],
    *,
    isa: str | None,
    build: Kind,
    baseline: str,
    progress: Progress,
) -> dict[str, Job]:
    """Jobs by the names that the report gives them; builds what the cache does not hold.

    Raises:
        BuildError: a compiler fails.
        UsageError: not one variant is compiled by --cc, or it has no path that runs here.
    """
    if not found:
        return {name: job_of(name, isa_for(name, isa)) for name in variants}
    names = [name for name in variants if _is_compiled(name, baseline)]
    if not names:
        raise UsageError(
            "--cc and --cflags compile the built-in C++ variants; choose one by --variant, e.g. "
            "--variant autovec"
        )
    jobs = {baseline: job_of(baseline)} if baseline in variants else {}
    for toolchain in found:
        built = kernel_build.build(build, progress, compiler=toolchain.compiler)
        for name in names:
            path = choose_isa(BY_NAME[name], isa_for(name, isa), built)
            library = f"{built.library(path)}:{name}"
            jobs[f"{name}@{toolchain.label}"] = replace(job_of(name), variant=library)
    return jobs


def renamed(measurement: Measurement, jobs: dict[str, Job]) -> Measurement:
    """The measurement under the report's names."""
    names = {job.variant: name for name, job in jobs.items()}
    timings = tuple(
        replace(timing, variant=names.get(timing.variant, timing.variant))
        for timing in measurement.timings
    )
    notes = []
    for note in measurement.notes:
        for library, name in names.items():
            note = note.replace(library, name)  # noqa: PLW2901
        notes.append(note)
    return replace(measurement, timings=timings, notes=tuple(notes))


def _is_compiled(name: str, baseline: str) -> bool:
    return name != baseline and name in BY_NAME and BY_NAME[name].language == "c++"


def _called(command: str, compiler: Compiler) -> str:
    """The compiler as it was named; by its own name where that is another one."""
    said = shlex.split(command)
    return command if said and said[0] == compiler.argv[0] else shlex.join(compiler.argv)


def _split(flags: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(flags))
    except ValueError as error:
        raise UsageError(f"--cflags {flags}: {error}") from error
