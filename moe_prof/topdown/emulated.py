"""The counted instructions of variants for another architecture, as rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moe_prof.collectors import qemu_user
from moe_prof.collectors.qemu_user import EmulatedCounts
from moe_prof.errors import InputError, ToolError, UnavailableError, UsageError, WorkloadError
from moe_prof.hotspots.phases import by_name
from moe_prof.kernels import build as kernel_build
from moe_prof.kernels.build import Build
from moe_prof.kernels.driver import Driver, driver_argv
from moe_prof.kernels.table import BY_NAME, VARIANTS
from moe_prof.kernels.target import Target
from moe_prof.rows import Row, unavailable
from moe_prof.scenario import Scenario

PRODUCTS, OTHER = "gate_up+down", "other"
_PRODUCTS = "_gemm_"


def variants_of(built: Build) -> tuple[str, ...]:
    """Names of the variants that a build for another architecture has, in table order."""
    return tuple(spec.name for spec in VARIANTS if path_of(spec.name, built))


def path_of(name: str, built: Build) -> str | None:
    """The best path of a variant in such a build."""
    return next((isa for isa in BY_NAME[name].isas if isa in built.isas), None)


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
class Emulation:
    """How variants are counted: one forward of each, on one thread.

    Attributes:
        vector_bits: length of the emulated vector registers.
        folder: where raw output stays.
    """

    target: Target
    built: Build
    scenario: Scenario
    seed: int
    vector_bits: int
    folder: Path

    def counts(self, name: str, timeout_s: float) -> EmulatedCounts:
        """Instructions of one forward.

        Raises:
            UnavailableError: there is no emulator.
            ToolError, InputError, WorkloadError: the run failed.
        """
        available = qemu_user.availability()
        if not available.usable:
            raise UnavailableError(f"{available.reason} ({available.remedy})")
        isa = path_of(name, self.built)
        if isa is None:
            raise UsageError(f"variant {name!r} is not in the build for {self.target.name}")
        driver = Driver(self.built.driver(isa), name, isa)
        workload = driver_argv(
            driver, self.scenario, iterations=1, threads=1, seed=self.seed, warmup=0
        )
        place = self.folder / name
        out_file = place / "counts.txt"
        command = qemu_user.argv(
            workload,
            emulator=self.target.command(self.vector_bits),
            plugin=qemu_user.build_plugin(kernel_build.cache_root()),
            out_file=out_file,
        )
        qemu_user.run(command, out_file=out_file, folder=place, timeout_s=timeout_s)
        return qemu_user.parse(out_file.read_text(encoding="utf-8", errors="replace"))

    def rows(self, name: str, macs: int, timeout_s: float) -> list[Row]:
        """The counts of a variant as rows; the reason where there are none."""
        try:
            return rows(
                self.counts(name, timeout_s), self.scenario.label, name, macs=macs,
                source=f"{qemu_user.NOTE}; qemu-{self.target.name}, VLEN {self.vector_bits}, "
                f"path {path_of(name, self.built)}, one thread",
            )  # fmt: skip
        except (UnavailableError, ToolError, InputError, WorkloadError) as error:
            labels = {"scenario": self.scenario.label, "variant": name}
            return [
                unavailable(metric, "1", str(error), collector=qemu_user.NAME, **labels)
                for metric in ("instructions", "instructions_per_mac")
            ]


def rows(
    counts: EmulatedCounts, scenario: str, variant: str, *, macs: int, source: str
) -> list[Row]:
    """Instructions in all, per MAC, by kind and by phase."""
    labels: dict[str, Any] = {
        "scenario": scenario, "variant": variant, "collector": qemu_user.NAME,
        "provenance": "simulated", "source": source,
    }  # fmt: skip
    total = float(counts.instructions)
    found = [Row(**labels, metric="instructions", value=total, unit="instructions")]
    if macs:
        found.append(Row(**labels, metric="instructions_per_mac", value=total / macs, unit="1"))
    found += [
        Row(**labels, metric=f"instructions.{kind}", value=float(count), unit="instructions")
        for kind, count in counts.by_kind.items()
    ]
    found += [
        Row(**labels, metric="instructions", phase=phase, value=float(count), unit="instructions")
        for phase, count in by_phase(counts.by_symbol).items()
    ]
    return found


def by_phase(by_symbol: Mapping[str, int]) -> dict[str, int]:
    """Instructions by phase; the products of gate, up and down are one function, hence together."""
    phases: dict[str, int] = {}
    for symbol, count in by_symbol.items():
        phase = PRODUCTS if _PRODUCTS in symbol else by_name(symbol) or OTHER
        phases[phase] = phases.get(phase, 0) + count
    return phases
