"""Comparing measured variants: times with intervals and verdicts, counters and phases as ratios.

Pure functions on sessions that were read back. An *old* side is compared with a *new* one: a
variant of one run with another of the same run (paired), or with the same variant in another run
(unpaired). What an unpaired ratio cannot see is that the machine itself was another in the second
run; where both runs timed the baseline, its own ratio shows some of that, and the interval of every
other variant is stretched by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from moe_prof.analysis.decision import MARGIN, Ratio, Verdict, time_ratio, verdict
from moe_prof.analysis.samples import Timed, time_metrics, timed
from moe_prof.errors import UsageError
from moe_prof.rows import Provenance, Row, Scope

COLLECTOR = "compare"
BASELINE = "scalar"
"""The variant that nobody tunes: what it gained or lost between two runs, the machine did."""
_NO_COUNTS = frozenset({"ceilings", "roofline", "verdict", COLLECTOR})
_COUNTS_OF_BUILTIN = frozenset({"cpu_time", "busy_time", "wait_time"})
_SETTINGS = frozenset({
    "num_tokens", "d_model", "d_ff", "num_experts", "top_k", "iterations", "correct", "threads",
    "speedup", "rel_rmse", "worst_token",
})  # fmt: skip
_NOT_RATIOS = frozenset({"slots"})

Counted = tuple[str, str | None]
"""A metric, and the phase that it is about."""


@dataclass(frozen=True, slots=True)
class Side:
    """Rows of one run, and what to call it."""

    run_id: str
    rows: tuple[Row, ...]

    def of(self, scenario: str, variant: str) -> tuple[Row, ...]:
        """The rows of one variant in one scenario."""
        return tuple(r for r in self.rows if (r.scenario, r.variant) == (scenario, variant))

    @property
    def places(self) -> tuple[tuple[str, str], ...]:
        """(scenario, variant) of everything that was measured."""
        return tuple(dict.fromkeys(
            (r.scenario, r.variant) for r in self.rows if r.variant and r.collector != COLLECTOR
        ))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pair:
    """What is compared: the old and the new variant, in a scenario of each run."""

    old_scenario: str
    new_scenario: str
    old: str
    new: str

    @property
    def is_baseline(self) -> bool:
        """The yardstick against itself."""
        return self.old == self.new == BASELINE

    @property
    def label(self) -> str:
        """``packed``, or ``packed -> dispatched``."""
        return self.new if self.old == self.new else f"{self.old} -> {self.new}"


@dataclass(frozen=True, slots=True)
class CountRatio:
    """A counter or the time of a phase: old and new value, without interval."""

    metric: str
    phase: str | None
    unit: str
    old: float
    new: float
    provenance: Provenance
    scope: Scope

    @property
    def ratio(self) -> float:
        """New over old."""
        return self.new / self.old


@dataclass(frozen=True, slots=True)
class Comparison:
    """One pair's outcome.

    Attributes:
        run_id / old_run_id: the new and the old run.
        metric: what the time is called.
        old_s / new_s: the summaries.
        ratio: new time / old time; None when there is none, ``reason`` says why.
        verdict: None where there is no interval.
        drift: ratio of the baseline between the runs, by which the interval was stretched; or None.
        counts: counters and phases that both sides have.
    """

    pair: Pair
    run_id: str
    old_run_id: str
    metric: str
    old_s: float | None
    new_s: float | None
    ratio: Ratio | None
    verdict: Verdict | None
    reason: str = ""
    drift: float | None = None
    counts: tuple[CountRatio, ...] = ()


def compare(
    old: Side, new: Side, pairs: Sequence[Pair], *, margin: float = MARGIN, alike: bool = True
) -> tuple[Comparison, ...]:
    """All pairs, in their order.

    Args:
        alike: whether two runs were made alike, so that the baseline ought to take the same time.
    """
    return tuple(_compare(old, new, pair, margin, alike) for pair in pairs)


def pairs_between(old: Side, new: Side, wanted: Sequence[str] = ()) -> tuple[Pair, ...]:
    """What two runs have in common.

    Equal names are pairs, and so are the two that are left over where each side has just one. Where
    each run has one scenario, another name or none of it is left to the caller to judge.

    Args:
        wanted: names, or ``old=new``; () for everything.

    Raises:
        UsageError: a name is not there, or nothing is common; says what each has.
    """
    scenarios = _common_scenarios(old, new)
    found = []
    for before, after in scenarios:
        names = tuple([v for s, v in side.places if s == scenario] for side, scenario in
                      ((old, before), (new, after)))  # fmt: skip
        couples = _wanted(wanted, *names) if wanted else _common(*names)
        found += [Pair(before, after, first, second) for first, second in couples]
    if not found:
        raise UsageError(
            f"nothing to compare: the old session has {_listed(old)}, the new one {_listed(new)}; "
            "name a pair with --variant OLD=NEW"
        )
    return tuple(found)


def pairs_within(side: Side, names: Sequence[str]) -> tuple[Pair, ...]:
    """The first of the variants against each of the others, in every scenario of one run.

    Raises:
        UsageError: fewer than two, or one that is not there.
    """
    has = list(dict.fromkeys(variant for _, variant in side.places))
    if len(names) < 2:
        raise UsageError(
            f"one session has one side only: name two variants, --variant OLD,NEW "
            f"(it has: {', '.join(has)}), or a second session"
        )
    for name in names:
        _check_name(name, has, "the session")
    scenarios = dict.fromkeys(scenario for scenario, _ in side.places)
    return tuple(
        Pair(scenario, scenario, names[0], other) for scenario in scenarios for other in names[1:]
        if {(scenario, names[0]), (scenario, other)} <= set(side.places)
    )  # fmt: skip


def _compare(old: Side, new: Side, pair: Pair, margin: float, alike: bool) -> Comparison:
    before, after = old.of(pair.old_scenario, pair.old), new.of(pair.new_scenario, pair.new)
    first, second = _common_times(before, after)
    same_run = old.run_id == new.run_id
    reason = _why_none(pair.old, before, first) or _why_none(pair.new, after, second)
    ratio = None
    if not reason and first is not None and second is not None:
        paired = same_run and _rounds_match(first, second)
        ratio = time_ratio(first.samples_s, second.samples_s, same_run=paired)
    drift = None
    if alike and not same_run and not pair.is_baseline:
        drift = _drift(old, new, pair)
    if ratio is not None and drift is not None:
        ratio = ratio.widened(drift)
    decided = ratio is not None and ratio.interval.low is not None
    return Comparison(
        pair=pair, run_id=new.run_id, old_run_id=old.run_id,
        metric=second.metric if second is not None else "time",
        old_s=first.value_s if first is not None else None,
        new_s=second.value_s if second is not None else None,
        ratio=ratio,
        verdict=verdict(ratio.interval, margin=margin) if ratio is not None and decided else None,
        reason=reason or (ratio.interval.reason if ratio is not None else ""),
        drift=drift if decided else None,
        counts=tuple(_count_ratios(before, after)),
    )  # fmt: skip


def _common_times(before: Sequence[Row], after: Sequence[Row]) -> tuple[Timed | None, Timed | None]:
    """Both sides under the first metric that both have a value of; else what there is."""
    fallback: tuple[Timed | None, Timed | None] = (None, None)
    for metric in time_metrics([*before, *after]):
        first, second = timed(before, metric), timed(after, metric)
        if first is not None and second is not None:
            if first.samples_s and second.samples_s:
                return first, second
            fallback = (first, second) if fallback == (None, None) else fallback
        elif fallback == (None, None) and (first or second):
            fallback = (first, second)
    return fallback


def _why_none(name: str, rows: Sequence[Row], found: Timed | None) -> str:
    """Why a side has no time to compare, "" when it has: a wrong result has no ratio."""
    wrong = any(row.metric == "correct" and row.value == 0 for row in rows)
    if wrong:
        return f"{name}: its result is wrong"
    if found is None:
        return f"{name}: no time was measured"
    return "" if found.samples_s else f"{name}: {found.reason or 'no time was measured'}"


def _rounds_match(first: Timed, second: Timed) -> bool:
    """Whether equal keys are the same round: told, or as many in every process."""
    return (first.exact and second.exact) or set(first.samples_s) == set(second.samples_s)


def _drift(old: Side, new: Side, pair: Pair) -> float | None:
    """How much slower the baseline was in the new run; None where one run lacks it."""
    first = timed(old.of(pair.old_scenario, BASELINE), "time")
    second = timed(new.of(pair.new_scenario, BASELINE), "time")
    if first is None or second is None or not first.value_s or not second.value_s:
        return None
    return second.value_s / first.value_s


def _count_ratios(before: Sequence[Row], after: Sequence[Row]) -> Iterator[CountRatio]:
    known = _counted(before)
    for key, row in _counted(after).items():
        other = known.get(key)
        if other is None or _kind(other) != _kind(row):
            continue
        assert other.value is not None
        assert row.value is not None
        yield CountRatio(
            key[0], key[1], row.unit, other.value, row.value, row.provenance, row.scope
        )


def _kind(row: Row) -> tuple[str, str, Scope]:
    """Counts are comparable when the same tool counted the same thing over the same stretch."""
    return row.unit, row.collector, row.scope


def _counted(rows: Iterable[Row]) -> Mapping[Counted, Row]:
    """Counters and phases with a positive value; figures that follow from the time are left out."""
    found: dict[Counted, Row] = {}
    for row in rows:
        if not row.value or row.value < 0 or row.repeat is not None or not _is_count(row):
            continue
        found.setdefault((row.metric, row.phase), row)
    return found


def _is_count(row: Row) -> bool:
    parts = (row.thread, row.cpu, row.time_s, row.level)
    if any(part is not None for part in parts) or row.scope in ("function", "instruction"):
        return False
    if row.provenance not in ("measured", "simulated") or row.collector in _NO_COUNTS:
        return False
    if row.collector == "builtin":
        return row.phase is not None or row.metric in _COUNTS_OF_BUILTIN
    return row.unit not in _NOT_RATIOS and row.metric not in _SETTINGS


def _common_scenarios(old: Side, new: Side) -> list[tuple[str, str]]:
    before, after = (list(dict.fromkeys(s for s, _ in side.places)) for side in (old, new))
    same = [(scenario, scenario) for scenario in before if scenario in after]
    if not same and len(before) == len(after) == 1:
        return [(before[0], after[0])]
    return same


def _common(old: Sequence[str], new: Sequence[str]) -> list[tuple[str, str]]:
    couples = [(name, name) for name in old if name in new]
    rest = [[n for n in names if n not in others] for names, others in ((old, new), (new, old))]
    if len(rest[0]) == len(rest[1]) == 1:
        couples.append((rest[0][0], rest[1][0]))
    return couples


def _wanted(wanted: Sequence[str], old: Sequence[str], new: Sequence[str]) -> list[tuple[str, str]]:
    couples = []
    for word in wanted:
        first, _, second = word.partition("=")
        _check_name(first, old, "the old session")
        _check_name(second or first, new, "the new session")
        couples.append((first, second or first))
    return couples


def _check_name(name: str, has: Sequence[str], where: str) -> None:
    if name not in has:
        raise UsageError(f"{where} has no variant {name!r}; it has: {', '.join(has) or 'none'}")


def _listed(side: Side) -> str:
    names = dict.fromkeys(f"{v} in {s}" if s else v for s, v in side.places)
    return ", ".join(names) or "no variant"
