"""Timing variants against each other on all ranks: calibrated loops, rounds in turn.

Rank 0 decides how many calls make a sample and how many rounds there are, and tells it at a
meeting, so that all ranks do the same. In each round every variant has its turn, in an order that
rotates; a sample begins at a meeting and ends when this rank's last call returns. The call's time
is that of the slowest rank, found afterwards.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from moe_prof.ep.board import Board
from moe_prof.ep.record import Record
from moe_prof.stats import MIN_SAMPLES

MIN_SAMPLE_S = 0.02
WARMUPS = 2
MOST_ROUNDS, FEWEST_ROUNDS = 60, MIN_SAMPLES
MOST_CALLS = 10_000

Call = Callable[[Record], None]


@dataclass(slots=True)
class Timed:
    """What one rank measured of one variant.

    Attributes:
        record: of all timed calls together.
        samples_s: seconds a call, by round.
        cpu_s: CPU seconds of all timed calls.
        calls: calls per sample.
    """

    record: Record
    samples_s: list[float] = field(default_factory=list)
    cpu_s: float = 0.0
    calls: int = 1

    @property
    def total_calls(self) -> int:
        """Calls that the record is of."""
        return self.calls * len(self.samples_s)


def measure(
    board: Board,
    variants: Mapping[str, Call],
    *,
    repeat: int | None,
    budget_s: float,
    before_sample: Callable[[str, int], None],
) -> dict[str, Timed]:
    """Samples of all variants, the same number on every rank.

    Args:
        variants: a call each; collective.
        repeat: rounds, None: as many as fit into ``budget_s``.
        before_sample: told the variant and the round, before the meeting.
    """
    timed = {name: Timed(Record(board.size)) for name in variants}
    costs_s = {}
    for name, call in variants.items():
        before_sample(name, 0)
        costs_s[name] = _calibrate(board, call, timed[name])
    one_round_s = sum(costs_s.values())
    wanted = repeat or max(FEWEST_ROUNDS, min(MOST_ROUNDS, int(budget_s / max(one_round_s, 1e-9))))
    rounds = int(_told(board, str(wanted)))
    end_s = time.monotonic() + budget_s
    names = list(variants)
    for index in range(rounds):
        late = index >= FEWEST_ROUNDS and repeat is None and time.monotonic() > end_s
        if _told(board, "stop" if late else "go") == "stop":
            break
        for name in (*names[index % len(names) :], *names[: index % len(names)]):
            before_sample(name, index + 1)
            _sample(board, variants[name], timed[name])
    return timed


def _calibrate(board: Board, call: Call, timed: Timed) -> float:
    """Warm up, choose the calls of a sample, return what a sample costs."""
    unused = Record(board.size)
    for _ in range(WARMUPS):
        call(unused)
    board.meet("calibrate")
    start_s = time.perf_counter()
    call(unused)
    one_s = max(time.perf_counter() - start_s, 1e-7)
    wanted = max(1, min(MOST_CALLS, round(MIN_SAMPLE_S / one_s)))
    timed.calls = int(_told(board, str(wanted)))
    return one_s * timed.calls


def _sample(board: Board, call: Call, timed: Timed) -> None:
    record, calls = timed.record, range(timed.calls)
    board.meet("sample")
    cpu_s, start_s = time.process_time(), time.perf_counter()
    for _ in calls:
        call(record)
    timed.samples_s.append((time.perf_counter() - start_s) / timed.calls)
    timed.cpu_s += time.process_time() - cpu_s


def _told(board: Board, text: str) -> str:
    """What rank 0 says."""
    return board.meet(text)[0].text
