"""Variants for another architecture in its emulator: counted, checked and sampled, as rows.

Counts are exact and of one thread; nothing here is a time of the other architecture.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moe_prof.analysis.work import count_work
from moe_prof.collectors import gprof, qemu_user
from moe_prof.collectors.qemu_user import NO_PHASE, EmulatedCounts
from moe_prof.collectors.stacks import Frame, Profile, Stack
from moe_prof.collectors.symbols import demangled
from moe_prof.errors import InputError, ToolError, UnavailableError, UsageError, WorkloadError
from moe_prof.hotspots.phases import PHASES, by_name
from moe_prof.kernels import build as kernel_build
from moe_prof.kernels.build import Build
from moe_prof.kernels.driver import Driver, DriverResult, driver_argv, parse_result
from moe_prof.kernels.table import BY_NAME, VARIANTS
from moe_prof.kernels.target import REQUIRED_VECTOR_BITS, Target
from moe_prof.rows import Row, unavailable
from moe_prof.scenario import Scenario

BASELINE = "scalar"
_FEWEST_FIRST = ("ime", "rvv", "portable")
REDUCTION = "instruction_reduction"
"""Instructions of the baseline over those of the variant."""
GPROF_TIME_S = 3.0  # of the emulator, 100 samples a second
FAILURES = (UnavailableError, ToolError, InputError, WorkloadError)
"""What costs one variant its figures, not the others."""


def variants_of(built: Build) -> tuple[str, ...]:
    """Names of the variants that a build for another architecture has, in table order."""
    return tuple(spec.name for spec in VARIANTS if path_of(spec.name, built))


def path_of(name: str, built: Build) -> str | None:
    """The best path of a variant in such a build."""
    return next((isa for isa in BY_NAME[name].isas if isa in built.isas), None)


def best(built: Build, vector_bits: int) -> str:
    """The variant with the fewest instructions that the build and the registers' length allow."""
    known = variants_of(built)
    for name in _FEWEST_FIRST:
        needed = REQUIRED_VECTOR_BITS.get(path_of(name, built) or "", vector_bits)
        if name in known and needed == vector_bits:
            return name
    return known[-1]


def choose(text: str, built: Build) -> tuple[str, ...]:
    """Names from ``a,b`` or ``all``.

    Raises:
        UsageError: a name is unknown or not in the build.
    """
    known = variants_of(built)
    if text.strip().lower() == "all":
        return known
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    for name in names:
        if name not in known:
            reasons = BY_NAME[name].isas if name in BY_NAME else ()
            why = "; ".join(f"{isa}: {built.unusable.get(isa, 'not built')}" for isa in reasons)
            raise UsageError(
                f"variant {name!r} is not in the build for {built.target} "
                f"({why or 'unknown variant'}); it has: {', '.join(known)}"
            )
    if not names:
        raise UsageError("--variant names no variant; see 'moe-prof list'")
    return names


@dataclass(frozen=True, slots=True)
class Emulated:
    """One variant's run: what was executed, and what the driver said."""

    counts: EmulatedCounts
    result: DriverResult
    wrong: bool


@dataclass(frozen=True, slots=True)
class Emulation:
    """How variants are run: one forward of each, on one thread.

    Attributes:
        built: with marks of the phases to count them, with -pg to sample.
        vector_bits: length of the emulated vector registers.
        folder: where raw output stays.
    """

    target: Target
    built: Build
    scenario: Scenario
    seed: int
    vector_bits: int
    folder: Path

    def count(self, name: str, timeout_s: float, *, checked: bool = False) -> Emulated:
        """Instructions of one forward.

        Args:
            checked: also compare the result with that of ``scalar``, in the emulator.

        Raises:
            UnavailableError: there is no emulator, or it has not the registers that the path needs.
            ToolError, InputError, WorkloadError: the run failed.
        """
        available = qemu_user.availability()
        if not available.usable:
            raise UnavailableError(f"{available.reason} ({available.remedy})")
        driver = self._driver(name)
        workload = driver_argv(
            driver, self.scenario, iterations=1, threads=1, seed=self.seed, warmup=0,
            checked=checked,
        )  # fmt: skip
        place = self.folder / name
        out_file = place / "counts.txt"
        command = qemu_user.argv(
            workload,
            emulator=self.target.command(self.vector_bits),
            plugin=qemu_user.build_plugin(kernel_build.cache_root()),
            out_file=out_file,
        )
        done = qemu_user.run(command, out_file=out_file, folder=place, timeout_s=timeout_s)
        counts = qemu_user.parse(out_file.read_text(encoding="utf-8", errors="replace"))
        wrong = done.returncode == qemu_user.WRONG_RESULT
        return Emulated(counts, parse_result(done.stdout), wrong)

    def profile(self, name: str, timeout_s: float) -> Profile:
        """The counted instructions by function and phase; there are no callers.

        Raises:
            as :meth:`count`.
        """
        found = self.count(name, timeout_s).counts
        names = demangled((one.symbol for one in found.counts), self.folder / name)
        module = self._driver(name).program.name
        stacks = tuple(
            Stack((Frame(names[symbol], module),), float(count), samples=0,
                  phase="" if phase == NO_PHASE else phase)
            for (symbol, phase), count in found.by_symbol().items()
        )  # fmt: skip
        notes = (self.source(name), "instructions are counted, not time; callers are not known")
        return Profile(
            qemu_user.NAME, "instructions", "instructions", stacks, "simulated", "roi", notes
        )

    def sampled(self, name: str, timeout_s: float) -> Profile:
        """Where the emulator's time goes, by gprof's samples of the build with -pg.

        Raises:
            UnavailableError: gprof is missing, or took no sample.
            ToolError, InputError, WorkloadError: the run failed.
        """
        driver = self._driver(name)
        workload = driver_argv(
            driver, self.scenario, iterations=1, threads=1, seed=self.seed, warmup=0,
            min_time_s=GPROF_TIME_S,
        )  # fmt: skip
        read, _ = gprof.run(
            workload, self.folder / name, timeout_s=timeout_s,
            emulator=self.target.command(self.vector_bits),
        )  # fmt: skip
        notes = (
            self.source(name),
            "samples of the emulator's time, where an instruction of vectors or tiles takes many "
            "times that of another: it tells what runs, not what a board spends",
            "gprof sees the whole process, the preparation of weights among it",
        )
        found = gprof.profile(read, module=driver.program.name, notes=notes)
        stacks = tuple(_with_phase(stack) for stack in found.stacks)
        return Profile(
            found.collector, "time of the emulator", found.unit, stacks, "simulated", "process",
            found.notes,
        )  # fmt: skip

    def count_rows(self, name: str, counts: EmulatedCounts) -> list[Row]:
        """Rows of what was counted."""
        return rows(
            counts, self.scenario.label, name,
            macs_by_phase=count_work(self.scenario).macs_by_phase, source=self.source(name),
        )  # fmt: skip

    def missing(self, name: str, reason: str) -> list[Row]:
        """Rows of a variant that could not be counted."""
        return [
            unavailable(metric, "1", reason, collector=qemu_user.NAME,
                        scenario=self.scenario.label, variant=name)
            for metric in ("instructions", "instructions_per_mac")
        ]  # fmt: skip

    def identity(self, name: str) -> list[Row]:
        """The path with the registers' length, which decide the counts, and the one thread."""
        labels: dict[str, Any] = {
            "scenario": self.scenario.label, "variant": name, "collector": qemu_user.NAME,
        }  # fmt: skip
        path = f"{path_of(name, self.built)}, VLEN {self.vector_bits}, {self.target.name}"
        return [
            Row(metric="isa", value=None, unit="1", source=path, **labels),
            Row(metric="threads", value=1.0, unit="1", **labels),
        ]

    def source(self, name: str) -> str:
        """Where a variant's figures come from."""
        return (
            f"{qemu_user.NOTE}; qemu-{self.target.name}, VLEN {self.vector_bits}, "
            f"path {path_of(name, self.built)}, one thread"
        )

    def _driver(self, name: str) -> Driver:
        isa = path_of(name, self.built)
        if isa is None:
            raise UsageError(f"variant {name!r} is not in the build for {self.target.name}")
        needed = REQUIRED_VECTOR_BITS.get(isa, self.vector_bits)
        if needed != self.vector_bits:
            raise UnavailableError(
                f"path {isa} needs vector registers of {needed} bits, not {self.vector_bits}; "
                f"choose --vector-bits {needed}"
            )
        return Driver(self.built.driver(isa), name, isa)


def _with_phase(stack: Stack) -> Stack:
    return Stack(
        stack.frames, stack.weight, stack.samples, stack.thread,
        by_name(stack.frames[-1].function) if stack.frames else "",
    )  # fmt: skip


def rows(
    counts: EmulatedCounts,
    scenario: str,
    variant: str,
    *,
    macs_by_phase: Mapping[str, int],
    source: str,
) -> list[Row]:
    """Instructions in all and per MAC, by kind, by phase, and by kind in each phase.

    Args:
        macs_by_phase: useful multiply-adds of the phases that have any.
    """
    labels: dict[str, Any] = {
        "scenario": scenario, "variant": variant, "collector": qemu_user.NAME,
        "provenance": "simulated", "source": source,
    }  # fmt: skip
    total = float(counts.instructions)
    found = [Row(**labels, metric="instructions", value=total, unit="instructions")]
    if macs := sum(macs_by_phase.values()):
        found.append(Row(**labels, metric="instructions_per_mac", value=total / macs, unit="1"))
    found += _kinds(counts.by_kind(), labels)
    by_phase = phases(counts)
    for phase, count in by_phase.items():
        labels["phase"] = phase
        value = float(count)
        found.append(Row(**labels, metric="instructions", value=value, unit="instructions"))
        if macs := macs_by_phase.get(phase, 0):
            found.append(Row(**labels, metric="instructions_per_mac", value=value / macs, unit="1"))
    for phase in by_phase:
        found += _kinds(counts.by_kind(phase), {**labels, "phase": phase})
    return found


def _kinds(by_kind: Mapping[str, int], labels: Mapping[str, Any]) -> list[Row]:
    return [
        Row(**labels, metric=f"instructions.{kind}", value=float(count), unit="instructions")
        for kind, count in by_kind.items()
    ]


def phases(counts: EmulatedCounts) -> dict[str, int]:
    """Instructions by phase, in the order of the forward, what is between them last."""
    found = counts.by_phase()
    return {name: found[name] for name in (*PHASES, NO_PHASE) if name in found}


def reductions(rows_: list[Row], scenario: str, names: tuple[str, ...]) -> list[Row]:
    """How many times fewer instructions than the baseline's each variant needs."""
    totals = {
        row.variant: row.value for row in rows_ if row.metric == "instructions" and not row.phase
    }
    base = totals.get(BASELINE)
    found = []
    for name in names:
        own = totals.get(name)
        labels: dict[str, Any] = {
            "scenario": scenario, "variant": name, "collector": qemu_user.NAME,
        }  # fmt: skip
        if base is None or not own:
            missing = BASELINE if base is None else name
            reason = f"the instructions of {missing} could not be counted"
            found.append(unavailable(REDUCTION, "1", reason, **labels))
            continue
        found.append(
            Row(metric=REDUCTION, value=base / own, unit="1", provenance="simulated",
                source=f"instructions of {BASELINE} / instructions; no ratio of times", **labels)
        )  # fmt: skip
    return found
