"""The native driver ``moe_bench``: where it is, how it is called, what it answers.

It is the program that profilers run, because a profiler of one process must not count Python.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moe_prof.errors import UnavailableError, WorkloadError
from moe_prof.kernels import build as kernel_build
from moe_prof.kernels.build import Kind
from moe_prof.kernels.selection import (
    choose_isa,
    forced_isa,
    is_library_path,
    library_parts,
    variant,
)
from moe_prof.kernels.table import BY_NAME
from moe_prof.presets import PLAIN
from moe_prof.progress import SILENT, Progress
from moe_prof.scenario import Scenario

BASELINE = "portable"
"""The path that every build has."""


@dataclass(frozen=True, slots=True)
class Driver:
    """The program that runs a variant on one instruction-set path.

    Attributes:
        variant: of the program, or of the library; "" for the library's first.
        isa: "" for a library, whose code chooses for itself.
        library: a user's, that the program loads; None for a built-in variant.
    """

    program: Path
    variant: str
    isa: str
    library: Path | None = None

    @property
    def kernel_argv(self) -> list[str]:
        """The options that say which kernel shall run."""
        words = [] if self.library is None else ["--library", str(self.library)]
        return [*words, *(["--variant", self.variant] if self.variant else [])]


@dataclass(frozen=True, slots=True)
class DriverResult:
    """What ``moe_bench --json`` printed.

    Attributes:
        variant / isa / microkernel / note / threads: what really ran (see PlanInfo).
        iterations: forwards inside the timed loop.
        total_s: wall time of the timed loop.
        checksum: 16 hexadecimal digits; equal means that the outputs have equal bits.
        rel_rmse / worst_error: of all values and of the worst token, against ``scalar`` in the same
            program; None where nothing was compared.
    """

    variant: str
    isa: str
    microkernel: str
    note: str
    threads: int
    iterations: int
    total_s: float
    checksum: str
    rel_rmse: float | None = None
    worst_error: float | None = None

    @property
    def forward_s(self) -> float:
        """Seconds of one forward, on average."""
        return self.total_s / self.iterations


def runs(name: str) -> bool:
    """Whether the driver can run a variant: a built-in C++ one, or a user's library."""
    if is_library_path(name):
        return True
    return name in BY_NAME and BY_NAME[name].language == "c++"


def find_driver(
    name: str, *, isa: str | None = None, build: Kind = "release", progress: Progress = SILENT
) -> Driver:
    """The driver for a built-in C++ variant or a user's library, built if needed.

    Raises:
        UsageError: the variant is unknown, or has no such path here.
        UnavailableError: the driver cannot run the variant (numba), or not in that build.
        BuildError: the kernels cannot be compiled.
    """
    if is_library_path(name):
        return _library_driver(name, build, progress)
    spec = BY_NAME.get(variant(name).name)
    if spec is None or spec.language != "c++":
        raise UnavailableError(
            f"variant {name!r} is not part of the native driver; profilers of whole programs "
            "need a built-in C++ variant; 'counters -- COMMAND' and 'topdown -- COMMAND' take "
            "any program"
        )
    forced_isa(spec, isa)
    built = kernel_build.build(build, progress)
    path = choose_isa(spec, isa, built)
    return Driver(built.driver(path), name, path)


def _library_driver(name: str, build: Kind, progress: Progress) -> Driver:
    """The baseline's driver: a library's code has flags of its own."""
    if build == "gprof":
        raise UnavailableError(f"{name}: gprof sees no functions of shared libraries")
    library, inner = library_parts(name)
    program = kernel_build.build(build, progress).driver(BASELINE)
    return Driver(program, inner, "", library.absolute())


def driver_argv(
    driver: Driver,
    scenario: Scenario,
    *,
    iterations: int,
    threads: int,
    seed: int = 0,
    warmup: int = 1,
    min_time_s: float = 0.0,
    roi_fifos: tuple[Path, Path] | None = None,
    checked: bool = False,
) -> list[str]:
    """The command that times the variant alone and prints one JSON line.

    Args:
        driver: from :func:`find_driver`.
        scenario: the shape.
        iterations: timed forwards; repeated until ``min_time_s`` has passed.
        threads: size of the team.
        seed: of weights and tokens.
        warmup: forwards before the timed ones.
        min_time_s: least length of the timed loop, in seconds.
        roi_fifos: control and acknowledge fifo of ``perf --control``.
        checked: also run ``scalar``, before, and compare with it.
    """
    argv = [str(driver.program), *(str(size) for size in scenario.shape), str(iterations)]
    argv += layer_argv(scenario)
    argv += [] if checked else ["--benchmark"]
    argv += ["--json", *driver.kernel_argv, "--threads", str(threads)]
    argv += ["--seed", str(seed), "--warmup", str(warmup)]
    if min_time_s > 0:
        argv += ["--min-time", repr(min_time_s)]
    if roi_fifos is not None:
        argv += ["--roi-fifo", f"{roi_fifos[0]},{roi_fifos[1]}"]
    return argv


def layer_argv(scenario: Scenario) -> list[str]:
    """What moe_bench must be told of the layer beside its sizes; nothing of a plain one."""
    options, argv = scenario.options, list[str]()
    if options.score != PLAIN.score:
        argv += ["--score", options.score]
    if options.n_group != PLAIN.n_group:
        argv += ["--groups", f"{options.n_group},{options.topk_group}"]
    if options.routed_scaling_factor != PLAIN.routed_scaling_factor:
        argv += ["--scaling-factor", repr(options.routed_scaling_factor)]
    if not options.normalize_gates:
        argv.append("--raw-gates")
    if not options.has_shared:
        argv.append("--no-shared")
    if not options.has_residual:
        argv.append("--no-residual")
    if scenario.distinct_experts:
        argv += ["--distinct-experts", str(scenario.distinct_experts)]
    return argv


def parse_result(stdout: str) -> DriverResult:
    """Read the JSON line of the driver; other lines around it are skipped.

    Raises:
        WorkloadError: there is none, or it lacks a field.
    """
    for line in stdout.splitlines():
        if not line.startswith('{"variant"'):
            continue
        try:
            answer = json.loads(line)
            return DriverResult(
                variant=answer["variant"], isa=answer["isa"],
                microkernel=answer["microkernel"], note=answer["note"],
                threads=int(answer["threads"]), iterations=int(answer["iterations"]),
                total_s=float(answer["total_ns"]) * 1e-9, checksum=answer["checksum"],
                rel_rmse=_number(answer, "rel_rmse"), worst_error=_number(answer, "worst_error"),
            )  # fmt: skip
        except (ValueError, TypeError, KeyError) as error:
            raise WorkloadError(f"moe_bench printed a line that makes no sense: {line}") from error
    raise WorkloadError("moe_bench printed no result line; run the command by hand to see why")


def _number(answer: Mapping[str, Any], name: str) -> float | None:
    return float(answer[name]) if name in answer else None
