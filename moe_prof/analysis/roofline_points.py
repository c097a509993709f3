"""Where variants and their phases stand under the roofline. Pure functions on tidy rows.

A point's x is the arithmetic intensity, useful MACs over the weight bytes that must be read once;
its y the rate, useful MACs over the measured time. The roof above it is the lower one of the
machine's best exact rate and of intensity times the read bandwidth of the level that holds the
weights. A whole forward has two parts with different roofs (router in fp32, experts in int8): its
roof is MACs over the floor of ``moe_prof.analysis.roofline``.

Of the phases, three have MACs: the router (fp32), gate_up (two of an expert's three matrices) and
down (the third). A phase takes as long as its slowest thread, by timers of the ``phases`` build.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from moe_prof.analysis.ceilings import Ceilings
from moe_prof.analysis.query import RowIndex
from moe_prof.analysis.roofline import (
    LayerWork,
    Limit,
    floor,
    layer_work,
    read_ceiling,
    weights_level,
)
from moe_prof.analysis.work import MATRICES
from moe_prof.errors import UsageError
from moe_prof.rows import Row
from moe_prof.scenario import Scenario, parse

COLLECTOR = "roofline"
PHASES = ("router", "gate_up", "down")
"""Those with multiply-accumulates."""


@dataclass(frozen=True, slots=True)
class Point:
    """One measured rate under its roof.

    Attributes:
        phase: None for a whole forward.
        isa: the path that ran, "" when it is not known.
        intensity: MAC per byte of weights.
        rate: useful MAC/s.
        roof: MAC/s that the machine's best instructions would allow here.
        path_roof: the same with the path that ran; None when that path has no ceiling.
        limit: what sets the roof: arithmetic, or reading from ``level``.
    """

    scenario: str
    variant: str
    phase: str | None
    threads: int
    isa: str
    intensity: float
    rate: float
    roof: float
    path_roof: float | None
    limit: Limit
    level: str

    @property
    def fraction(self) -> float:
        """Of the roof, 0..1."""
        return self.rate / self.roof

    @property
    def path_fraction(self) -> float | None:
        """Of the roof of the path that ran."""
        return None if self.path_roof is None else self.rate / self.path_roof


def points(
    tidy: Sequence[Row], ceilings: Ceilings, *, usable_cpus: int
) -> tuple[tuple[Point, ...], tuple[str, ...]]:
    """All points of rows with times, and why others have none.

    Args:
        usable_cpus: a team that is larger has the ceilings of so many threads.
    """
    found: list[Point] = []
    reasons: list[str] = []
    for label in dict.fromkeys(row.scenario for row in tidy if row.variant):
        try:
            scenario = parse(label)
        except UsageError:
            reasons.append(f"scenario {label or 'unknown'!r}: its sizes are not known")
            continue
        index = RowIndex(row for row in tidy if row.scenario == label)
        for variant in index.variants:
            place = _Place(index, scenario, variant, ceilings, usable_cpus)
            one = place.whole()
            if isinstance(one, str):
                reasons.append(f"{label} {variant}: {one}")
                continue
            found += [one, *place.phases()]
    return tuple(found), tuple(reasons)


def rows(found: Sequence[Point]) -> list[Row]:
    """``intensity``, ``macs_per_second``, ``roof`` and ``roofline_fraction`` of every point."""
    made = []
    for one in found:
        roof = f"{one.limit}, weights in {one.level}, {one.threads} threads"
        values = (
            ("intensity", one.intensity, "MAC/byte", "useful MACs / weight bytes read once"),
            ("macs_per_second", one.rate, "MAC/s", "useful MACs / measured time"),
            ("roof", one.roof, "MAC/s", roof),
            ("roofline_fraction", one.fraction, "1", f"rate / roof: {roof}"),
            ("roofline_fraction_path", one.path_fraction, "1", f"on the path {one.isa}: {roof}"),
        )
        made += [
            Row(
                scenario=one.scenario, variant=one.variant, phase=one.phase, collector=COLLECTOR,
                metric=metric, value=value, unit=unit, source=source,
                status="ok" if unit != "1" or value <= 1 else "out_of_bounds",
                provenance="measured" if metric == "macs_per_second" else "modelled",
            )
            for metric, value, unit, source in values
            if value is not None
        ]  # fmt: skip
    return made


@dataclass(frozen=True, slots=True)
class _Place:
    """One variant in one scenario."""

    index: RowIndex
    scenario: Scenario
    variant: str
    ceilings: Ceilings
    usable_cpus: int

    @property
    def threads(self) -> int:
        """Threads that run at once: a whole number that has ceilings, 1 when none is told."""
        told = int(self.index.value(self.variant, "threads") or 1)
        return min(told, self.usable_cpus)

    @property
    def isa(self) -> str:
        row = self.index.row(self.variant, "isa")
        return row.source if row is not None and row.provenance != "unavailable" else ""

    def whole(self) -> Point | str:
        """The whole forward, or why it has no place."""
        time = self.index.row(self.variant, "time")
        if time is None or not time.value:
            return time.source if time is not None else "no time was measured"
        work = layer_work(self.scenario)
        bound = floor(work, self.ceilings, self.threads)
        if not bound.time_s or bound.limit is None:
            return bound.source
        macs = work.router_macs + work.expert_macs
        own = floor(work, self.ceilings, self.threads, self.isa or "native").time_s
        return Point(
            self.scenario.label, self.variant, None, self.threads, self.isa,
            intensity=macs / (work.router_bytes + work.expert_bytes),
            rate=macs / time.value,
            roof=macs / bound.time_s,
            path_roof=macs / own if own else None,
            limit=bound.limit,
            level=bound.level,
        )  # fmt: skip

    def phases(self) -> list[Point]:
        """The phases with MACs that were timed."""
        work = layer_work(self.scenario)
        return [point for name in PHASES if (point := self._phase(name, work)) is not None]

    def _phase(self, name: str, work: LayerWork) -> Point | None:
        time_s = self._phase_s(name)
        macs, size = _work_of(name, work)
        peak = self._peak(name, None)
        if not time_s or not macs or not size or not peak:
            return None
        level = weights_level(work, self.ceilings, self.threads)
        read = read_ceiling(self.ceilings, level, self.threads)
        intensity = macs / size
        limits = [peak] if read is None or not read.value else [peak, intensity * read.value]
        own = self._peak(name, self.isa or "native")
        roof = min(limits)
        return Point(
            self.scenario.label, self.variant, name, self.threads, self.isa, intensity,
            rate=macs / time_s, roof=roof,
            path_roof=min([own, *limits[1:]]) if own else None,
            limit="compute" if roof == peak else "memory", level=level,
        )  # fmt: skip

    def _peak(self, phase: str, path: str | None) -> float | None:
        best = self.ceilings.best_fp32 if phase == "router" else self.ceilings.best_int8
        entry = best(self.threads, path)
        return entry.value if entry is not None else None

    def _phase_s(self, name: str) -> float | None:
        """What the slowest thread took; without threads, an equal share each."""
        told = int(self.index.value(self.variant, "threads") or 1)
        each = [
            self.index.value(self.variant, "phase_time", phase=name, thread=str(thread))
            for thread in range(told)
        ]
        known = [value for value in each if value is not None]
        if known:
            return max(known)
        total = self.index.value(self.variant, "phase_time", phase=name)
        return None if total is None else total / told


def _work_of(phase: str, work: LayerWork) -> tuple[float, float]:
    """(MACs, weight bytes) of a phase."""
    if phase == "router":
        return work.router_macs, work.router_bytes
    share = (MATRICES - 1 if phase == "gate_up" else 1) / MATRICES
    return work.expert_macs * share, work.expert_bytes * share
