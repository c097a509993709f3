"""From a profile to figures: shares by function, line, instruction, phase and thread, as rows.

Shares are fractions of the whole profile, or of one thread's part where a thread is named. Weights
that were sampled have a sampling error, the standard deviation of a share seen in n samples.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from moe_prof.collectors.stacks import UNKNOWN, Frame, Profile, Stack
from moe_prof.hotspots.phases import PHASES
from moe_prof.hotspots.places import leaf_function, leaf_place, source_text
from moe_prof.rows import Row, unavailable

UNKNOWN_PHASE = "unknown"
OUTSIDE = Frame(UNKNOWN)


@dataclass(frozen=True, slots=True)
class Key:
    """What one line of the table stands for."""

    function: str
    module: str
    phase: str
    waiting: bool


@dataclass(slots=True)
class Share:
    """Weights and samples of one line of the table."""

    own: float = 0.0
    total: float = 0.0
    samples: int = 0
    threads: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hotspot:
    """A function in one phase, its shares of the whole profile and of each thread.

    ``own`` is the cost of its own code, ``total`` includes what it calls; ``threads`` holds its own
    share of each thread's cost.
    """

    key: Key
    own: float
    total: float
    samples: int
    threads: dict[str, float]


@dataclass(frozen=True, slots=True)
class PlaceShare:
    """Cost of a source line, or of an instruction when ``address`` is given."""

    function: str
    module: str
    file: str
    line: int | None
    address: int | None
    share: float
    samples: int
    waiting: bool


def hotspots(profile: Profile) -> tuple[Hotspot, ...]:
    """Functions by their own share, largest first."""
    found: dict[Key, Share] = {}
    for stack in profile.stacks:
        leaf = leaf_function(stack) or OUTSIDE
        own = _key(leaf, stack)
        for key in {own, *(_key(f, stack) for f in stack.frames if not f.inlined)}:
            found.setdefault(key, Share()).total += stack.weight
        share = found[own]
        share.own += stack.weight
        share.samples += stack.samples
        share.threads[stack.thread] = share.threads.get(stack.thread, 0.0) + stack.weight
    whole, by_thread = profile.total, thread_weights(profile)
    if not whole:
        return ()
    made = [
        Hotspot(
            key,
            share.own / whole,
            share.total / whole,
            share.samples,
            {name: part / by_thread[name] for name, part in share.threads.items() if name},
        )
        for key, share in found.items()
    ]
    return tuple(sorted(made, key=lambda spot: (-spot.own, -spot.total, spot.key.function)))


def places(profile: Profile, *, instructions: bool) -> tuple[PlaceShare, ...]:
    """Source lines, or instructions, by share; costs without a known place are left out.

    A line of a template or of inlined code is one line, named by the first of its functions.
    """
    sums: dict[tuple[str, str, int | None, int | None, bool], list[float]] = {}
    functions: dict[tuple[str, str, int | None, int | None, bool], str] = {}
    for stack in profile.stacks:
        leaf = leaf_function(stack) or OUTSIDE
        file, line = leaf_place(stack)
        address = leaf.address if instructions else None
        if (address is None) if instructions else (line is None):
            continue
        key = (leaf.module, file, line, address, stack.waiting)
        functions.setdefault(key, leaf.function)
        entry = sums.setdefault(key, [0.0, 0])
        entry[0] += stack.weight
        entry[1] += stack.samples
    whole = profile.total or 1.0
    made = [
        PlaceShare(
            functions[key], module, file, line, address, weight / whole, int(samples), waiting
        )
        for key, (weight, samples) in sums.items()
        for module, file, line, address, waiting in (key,)
    ]
    return tuple(sorted(made, key=lambda place: -place.share))


def thread_weights(profile: Profile) -> dict[str, float]:
    """Weight by thread label."""
    sums: dict[str, float] = {}
    for stack in profile.stacks:
        sums[stack.thread] = sums.get(stack.thread, 0.0) + stack.weight
    return sums


def share_of(profile: Profile, stacks: Iterable[Stack]) -> float:
    """The part of the profile's weight that some of its stacks have."""
    whole = profile.total
    return math.fsum(stack.weight for stack in stacks) / whole if whole else 0.0


def knows_waiting(profile: Profile) -> bool:
    """Whether the profile shows threads as they ran together; a simulation of one does not."""
    return profile.provenance == "measured"


def phase_shares(profile: Profile) -> dict[str, float]:
    """Share of each phase in the work, in the forward's order, the unknown rest last."""
    work = [stack for stack in profile.stacks if not stack.waiting]
    found = {
        phase: share_of(profile, (s for s in work if (s.phase or UNKNOWN_PHASE) == phase))
        for phase in (*PHASES, UNKNOWN_PHASE)
    }
    return {phase: share for phase, share in found.items() if share > 0}


def rows(profile: Profile, *, scenario: str, variant: str, lines: bool) -> list[Row]:
    """Tidy rows; a function or a line stands in ``source``."""
    make = _Maker(profile, scenario, variant)
    made = [make.row("samples", float(profile.samples), "1", profile.event)] * bool(profile.samples)
    made += make.summary_rows()
    made += [replace(row, scenario=scenario, variant=variant) for row in profile.rows]
    for spot in hotspots(profile):
        made += make.function_rows(spot)
    if lines:
        made += [make.place_row("line_share", place) for place in places(
            profile, instructions=False)]  # fmt: skip
        made += [make.place_row("instruction_share", place) for place in places(
            profile, instructions=True)]  # fmt: skip
    return made


@dataclass(frozen=True, slots=True)
class _Maker:
    profile: Profile
    scenario: str
    variant: str

    def row(
        self, metric: str, value: float, unit: str, source: str, *, phase: str = "",
        thread: str = "", samples: int = 0, of: int = 0,
    ) -> Row:  # fmt: skip
        return Row(
            scenario=self.scenario,
            variant=self.variant,
            collector=self.profile.collector,
            scope=self.profile.scope,
            thread=thread or None,
            phase=phase or None,
            metric=metric,
            value=value,
            unit=unit,
            stddev=_sampling_error(value, of) if unit == "1" and of else None,
            n=samples or None,
            provenance=self.profile.provenance,
            source=source,
        )

    def summary_rows(self) -> list[Row]:
        profile, count = self.profile, self.profile.samples
        if not knows_waiting(profile):
            return [self._no_waiting(), *self._phase_rows()]
        waiting = [stack for stack in profile.stacks if stack.waiting]
        made = [self.row("wait_share", share_of(profile, waiting), "1", profile.event, of=count)]
        for name, weight in thread_weights(profile).items():
            if name:
                part = math.fsum(s.weight for s in waiting if s.thread == name)
                made.append(
                    self.row("wait_share", part / weight if weight else 0.0, "1", profile.event,
                             thread=name)
                )  # fmt: skip
        return [*made, *self._phase_rows()]

    def _no_waiting(self) -> Row:
        reason = "one thread was simulated, which has nobody to wait for"
        return unavailable(
            "wait_share", "1", reason, collector=self.profile.collector, scope=self.profile.scope,
            scenario=self.scenario, variant=self.variant,
        )  # fmt: skip

    def _phase_rows(self) -> list[Row]:
        return [
            self.row(
                "phase_share", share, "1", self.profile.event, phase=phase, of=self.profile.samples
            )
            for phase, share in phase_shares(self.profile).items()
        ]

    def function_rows(self, spot: Hotspot) -> list[Row]:
        key, of = spot.key, self.profile.samples
        source = f"{key.function} [{key.module or UNKNOWN}]"
        own = "wait_self_share" if key.waiting else "self_share"
        total = "wait_total_share" if key.waiting else "total_share"
        made = [
            self.row(own, spot.own, "1", source, phase=key.phase, samples=spot.samples, of=of),
        ]
        if self.profile.has_callers:
            made.append(self.row(total, spot.total, "1", source, phase=key.phase, of=of))
        if spot.threads and len(self.profile.threads) > 1:
            made += [
                self.row(own, share, "1", source, phase=key.phase, thread=name)
                for name, share in spot.threads.items()
            ]
        return made

    def place_row(self, metric: str, place: PlaceShare) -> Row:
        where = f"{place.file}:{place.line}" if place.line is not None else place.module
        if place.address is not None:
            where = f"{place.module}+{place.address:#x} {where}"
        text = source_text(place.file, place.line)
        source = f"{where} {place.function}" + (f": {text}" if text else "")
        return self.row(
            metric, place.share, "1", source, samples=place.samples,
            of=self.profile.samples,
        )  # fmt: skip


def _key(frame: Frame, stack: Stack) -> Key:
    return Key(frame.function, frame.module_name, stack.phase, stack.waiting)


def _sampling_error(share: float, samples: int) -> float:
    return math.sqrt(max(0.0, share * (1.0 - share)) / samples)


def busiest(spots: Sequence[Hotspot], *, waiting: bool, most: int) -> list[Hotspot]:
    """The first lines with any own cost, of work or of waiting."""
    return [s for s in spots if s.own > 0 and s.key.waiting == waiting][:most]
