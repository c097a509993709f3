"""Counting a region of interest with callgrind's cache and branch simulation.

The counts are exact and need no PMU, but they are of a simulated machine: two cache levels, a
simple branch predictor, in-order accesses, no prefetching. The workload marks its region with
callgrind's client requests; everything outside costs nothing in the counts.

Source: valgrind manual, "Callgrind: a call-graph generating cache and branch prediction profiler".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from moe_prof.collectors import callgrind_format
from moe_prof.collectors.base import Availability, ToolRun
from moe_prof.collectors.cache_geometry import SimulatedCaches
from moe_prof.collectors.callgrind_format import CallgrindProfile
from moe_prof.collectors.installed import version_line
from moe_prof.collectors.toolrun import run_tool
from moe_prof.errors import InputError, ToolError, UnavailableError, WorkloadError
from moe_prof.rows import Row

NAME = "callgrind"
INSTALL = "apt install valgrind"
OUT_FILE = "callgrind.out"

# What valgrind 3.19 cannot decode, named as in /proc/cpuinfo
UNKNOWN_ISA_PREFIXES = ("avx512", "avx_vnni", "avxvnni", "avx10", "amx", "sve", "sme")

NO_ISA = {"smep"}  # begins like one of them, but protects the kernel

# valgrind's own words, and those of a program that asks the CPU first: valgrind shows it no AVX-512
_ILLEGAL = re.compile(
    r"unhandled instruction|unrecognised instruction|SIGILL|Illegal instruction|this CPU lacks",
    re.IGNORECASE,
)
_FATAL_SIGNAL = re.compile(r"Process terminating with default action of signal \d+ \((\w+)\)")


@dataclass(frozen=True, slots=True)
class Counts:
    """What one forward costs on the simulated machine; None where it was not simulated.

    ``branches`` are conditional and indirect ones only: callgrind predicts nothing else, and counts
    neither direct jumps nor calls and returns. ``l1d_misses`` and ``ll_misses`` are loads and
    stores together, ``ll_misses`` includes instruction fetches.
    """

    instructions: float
    loads: float | None
    stores: float | None
    branches: float | None
    branch_mispredictions: float | None
    l1d_misses: float | None
    l1i_misses: float | None
    ll_misses: float | None


_SUMS: dict[str, tuple[str, ...]] = {
    "instructions": ("Ir",),
    "loads": ("Dr",),
    "stores": ("Dw",),
    "branches": ("Bc", "Bi"),
    "branch_mispredictions": ("Bcm", "Bim"),
    "l1d_misses": ("D1mr", "D1mw"),
    "l1i_misses": ("I1mr",),
    "ll_misses": ("ILmr", "DLmr", "DLmw"),
}
_UNITS = {
    "instructions": "instructions",
    "loads": "loads",
    "stores": "stores",
    "branches": "branches",
    "branch_mispredictions": "branches",
}


def availability() -> Availability:
    """Whether valgrind is installed."""
    line = version_line(NAME, "valgrind", INSTALL)
    if isinstance(line, Availability):
        return line
    version = line.removeprefix("valgrind-")
    return Availability(NAME, True, "simulated counts of the forward loop", version=version)


def unknown_isa(isa_features: Iterable[str]) -> tuple[str, ...]:
    """The instruction-set extensions among ``isa_features`` that valgrind cannot run."""
    return tuple(
        f for f in isa_features
        if f.lower().startswith(UNKNOWN_ISA_PREFIXES) and f.lower() not in NO_ISA
    )  # fmt: skip


def check_isa(isa: str, isa_features: Iterable[str]) -> None:
    """Refuse a path before it is started that would end in SIGILL.

    Raises:
        UnavailableError: valgrind cannot decode an extension that the path needs.
    """
    unknown = unknown_isa(isa_features)
    if unknown:
        raise UnavailableError(
            f"callgrind: valgrind cannot run the {isa} path, it has no {', '.join(unknown)}; "
            "simulate another path with --isa avx2 or --isa portable"
        )


def argv(workload: Sequence[str], *, caches: SimulatedCaches, out_file: Path) -> tuple[str, ...]:
    """The command that counts the region that ``workload`` marks by client requests."""
    sizes = caches.sizes
    return (
        "valgrind",
        "--tool=callgrind",
        "--instr-atstart=no",
        "--collect-atstart=no",
        "--cache-sim=yes",
        "--branch-sim=yes",
        "--dump-instr=yes",
        f"--I1={sizes.instructions.option}",
        f"--D1={sizes.data.option}",
        f"--LL={sizes.last.option}",
        f"--callgrind-out-file={str(out_file).replace('%', '%%')}",
        *workload,
    )


def run(
    workload: Sequence[str], *, caches: SimulatedCaches, folder: Path, timeout_s: float
) -> ToolRun:
    """Run the workload under callgrind; the profile is the output ``profile``.

    Raises:
        UnavailableError: valgrind is missing, or does not know an instruction of the workload.
        WorkloadError: the workload failed under valgrind.
        ToolError: valgrind failed by itself, or time ran out.
    """
    here = availability()
    if not here.usable:
        raise UnavailableError(f"callgrind: {here.reason}; {here.remedy}")
    out_file = folder / OUT_FILE
    try:
        out_file.unlink(missing_ok=True)
    except OSError as error:
        raise ToolError(f"cannot write {out_file}: {error.strerror}") from error
    command = argv(workload, caches=caches, out_file=out_file)
    result = run_tool(
        command, folder=folder, name=NAME, timeout_s=timeout_s, outputs={"profile": out_file}
    )
    check_run(result)
    return result


def check_run(result: ToolRun) -> None:
    """Tell apart how a run under valgrind can fail.

    Raises:
        UnavailableError: an instruction that valgrind does not know.
        WorkloadError: the workload was killed or returned an error.
        ToolError: no profile was written.
    """
    program = _program(result.argv)
    if result.returncode and _ILLEGAL.search(result.stderr):
        raise UnavailableError(_unknown_instructions(result.argv))
    last = _last_line(result)
    if match := _FATAL_SIGNAL.search(result.stderr):
        raise WorkloadError(f"{program} was ended by {match[1]} under callgrind; run it alone")
    if result.returncode:
        raise WorkloadError(f"{program} ended with {result.returncode} under callgrind: {last}")
    if "profile" not in result.outputs:
        raise ToolError(f"callgrind wrote no profile of {program}: {last}")


def _unknown_instructions(command: Sequence[str]) -> str:
    """What needs them and what would do; a driver's path is chosen, a library is compiled again."""
    words = list(command)
    if "--library" not in words:
        return (
            f"callgrind: {_program(command)} needs instructions that valgrind does not know; "
            "simulate another path with --isa avx2 or --isa portable"
        )
    return (
        f"callgrind: {words[words.index('--library') + 1]} needs instructions that valgrind does "
        "not know; compile it for less, as with -march=x86-64-v3, to have it simulated"
    )


def load_profile(result: ToolRun) -> CallgrindProfile:
    """Parse the profile of a run and check that it can be relied on.

    Raises:
        InputError: the profile is damaged or was cut off.
        UnavailableError: the workload marks no region of interest.
    """
    path = result.outputs["profile"]
    profile = callgrind_format.parse(path.read_text(encoding="utf-8", errors="replace"))
    if not profile.totals.get("Ir"):
        raise UnavailableError(
            f"callgrind: {_program(result.argv)} marks no region of interest; build it where "
            f"valgrind/callgrind.h is installed ({INSTALL})"
        )
    if not profile.complete:
        raise InputError(f"callgrind: {path} is incomplete: {profile.incomplete_reason}")
    return profile


def counts(profile: CallgrindProfile, *, forwards: int, scale: float = 1.0) -> Counts:
    """Counts of one forward.

    Args:
        forwards: how many forwards the region of interest holds.
        scale: factor for a forward that was simulated on fewer tokens.

    Raises:
        InputError: ``forwards`` or ``scale`` is not positive, or there is no instruction count.
    """
    if forwards < 1 or not scale > 0:
        raise InputError(f"callgrind counts: forwards={forwards}, scale={scale} must be positive")
    if "Ir" not in profile.totals:
        raise InputError("callgrind counts: the profile has no Ir event")

    def total(names: tuple[str, ...]) -> float | None:
        values = [profile.totals[name] for name in names if name in profile.totals]
        return sum(values) * scale / forwards if len(values) == len(names) else None

    sums = {metric: total(names) for metric, names in _SUMS.items()}
    return Counts(**sums)  # type: ignore[arg-type]  # instructions is there: Ir was checked


def rows(found: Counts, *, scenario: str, variant: str, source: str) -> list[Row]:
    """Tidy rows, one a count; ``source`` names the caches that were simulated."""
    made = []
    for column in fields(found):
        value = getattr(found, column.name)
        missing = value is None
        made.append(
            Row(
                scenario=scenario,
                variant=variant,
                collector=NAME,
                metric=column.name,
                value=value,
                unit=_UNITS.get(column.name, "misses"),
                status="not_counted" if missing else "ok",
                provenance="unavailable" if missing else "simulated",
                source="callgrind ran without this simulation" if missing else source,
            )
        )
    return made


def _program(command: Sequence[str]) -> str:
    """The workload's program within a valgrind command line."""
    for word in command[1:]:
        if not word.startswith("--"):
            return word
    return "the workload"


def _last_line(result: ToolRun) -> str:
    """The last line that the workload or valgrind wrote, without valgrind's own summary."""
    lines = [
        line for line in result.stderr.splitlines() if not re.match(r"(==|--)\d+(==|--)", line)
    ]
    text = [line.strip() for line in lines if line.strip()]
    if not text:
        text = [re.sub(r"^(==|--)\d+(==|--) ?", "", line) for line in result.stderr.splitlines()]
        text = [line.strip() for line in text if line.strip()]
    return text[-1] if text else "no message"
