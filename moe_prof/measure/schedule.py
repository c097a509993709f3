"""How many rounds each variant gets in the time there is. Pure.

Every variant first gets one sample, cheapest first, so that there are speedups at all; then those
that an interval needs, in the same order. What time is left is shared out equally, and a variant
that needs less than its share leaves the rest to the slower ones. So a slow baseline is measured in
fewer rounds, and never takes the fast ones' time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from moe_prof.stats import MIN_SAMPLES

ROUNDS_PER_PROCESS = 20
"""Rounds beyond which more of them narrow the interval less than another process would."""

ROUNDING = 1e-6
"""So that six times a cost pays for six samples and not for 5.999."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one sample of a variant costs.

    Attributes:
        sample_s: wall time of one sample with its warm-up.
        have: samples of it taken by earlier processes.
    """

    variant: str
    sample_s: float
    have: int = 0


@dataclass(frozen=True, slots=True)
class Schedule:
    """Rounds for the process at hand and how many processes (this one included) follow.

    Attributes:
        processes: processes that fit, this one included.
        rounds: samples of each variant in this process.
        share_s: time that the budget leaves for these samples.
    """

    processes: int
    rounds: Mapping[str, int]
    share_s: float

    @property
    def total(self) -> int:
        """Rounds of this process."""
        return max(self.rounds.values(), default=0)


def plan(
    budget_s: float,
    costs: Sequence[Cost],
    *,
    setup_s: float,
    processes: int,
    at_least: int = 0,
) -> Schedule:
    """Share out ``budget_s`` seconds.

    Args:
        budget_s: time left for this process's samples and all of the later processes.
        costs: of the variants that can be measured.
        setup_s: what starting a process, preparing and verifying every variant costs.
        processes: most processes to use, this one included.
        at_least: rounds that each variant gets in any case (1 where the budget is a wish, 0 where
            it is a limit).
    """
    count = _processes_that_fit(budget_s, costs, setup_s, processes)
    share_s = max(0.0, budget_s - (count - 1) * setup_s) / count
    return Schedule(count, _rounds(share_s, costs, count, at_least), share_s)


def interval_s(costs: Sequence[Cost]) -> float:
    """Time for the samples that every variant's interval still needs, in one process."""
    return sum(cost.sample_s * _needed(cost, 1) for cost in costs)


def split(repeat: int, processes: int) -> list[int]:
    """``repeat`` rounds over at most ``processes`` processes, as evenly as can be."""
    count = max(1, min(repeat, processes))
    return [repeat // count + (index < repeat % count) for index in range(count)]


def is_due(round_index: int, rounds: int, total: int) -> bool:
    """Whether a variant with ``rounds`` samples in ``total`` rounds is measured in this round.

    Its rounds are spread evenly, each in the middle of its part, so that a drift of the machine
    meets it as it meets the others.
    """
    half = total // 2
    return ((round_index + 1) * rounds + half) // total > (round_index * rounds + half) // total


def _processes_that_fit(
    budget_s: float, costs: Sequence[Cost], setup_s: float, processes: int
) -> int:
    """Most processes that leave every variant the samples that its interval needs."""
    for count in range(processes, 1, -1):
        needed_s = sum(cost.sample_s * count * _needed(cost, count) for cost in costs)
        if needed_s + (count - 1) * setup_s <= budget_s:
            return count
    return 1


def _needed(cost: Cost, processes: int) -> int:
    """Samples of this process towards ``MIN_SAMPLES``, at least one."""
    return max(1, math.ceil((MIN_SAMPLES - cost.have) / processes))


def _rounds(share_s: float, costs: Sequence[Cost], processes: int, at_least: int) -> dict[str, int]:
    cheapest_first = sorted(costs, key=lambda cost: cost.sample_s)
    left_s = share_s
    rounds = {cost.variant: at_least for cost in costs}
    left_s -= sum(at_least * cost.sample_s for cost in costs)
    for at_most in (1, MIN_SAMPLES):
        for cost in cheapest_first:
            wanted = min(_needed(cost, processes), at_most) - rounds[cost.variant]
            affordable = int(max(0.0, left_s) / cost.sample_s + ROUNDING)
            extra = max(0, min(wanted, affordable))
            rounds[cost.variant] += extra
            left_s -= extra * cost.sample_s
    for _sweep in range(2):  # the second gives away what was too little for the slow ones
        for index, cost in enumerate(cheapest_first):
            equal_s = max(0.0, left_s) / (len(costs) - index)
            wanted = max(0, ROUNDS_PER_PROCESS - rounds[cost.variant])
            extra = min(wanted, int(equal_s / cost.sample_s))
            rounds[cost.variant] += extra
            left_s -= extra * cost.sample_s
    return {cost.variant: rounds[cost.variant] for cost in costs}
