"""The oracle's answer for a measurement, computed once in a run and read by every worker.

Tokens do not influence each other in the layer, so where all of them would take the oracle too
long, evenly spread tokens are compared.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from moe_prof.analysis.work import count_work
from moe_prof.errors import InputError
from moe_prof.kernels.checkpoint import files_of, layer_weights
from moe_prof.kernels.inputs import random_tokens
from moe_prof.kernels.oracle import reference
from moe_prof.progress import SILENT, Progress
from moe_prof.scenario import Scenario

ORACLE_MACS_PER_S = 5e8
"""A cautious speed of the oracle: 1.5e9 per second on a 2.6 GHz Xeon."""
LONGEST_ORACLE_S = 20.0
SHARE_OF_LIMIT = 0.1


Rows = npt.NDArray[np.intp]
FileState = tuple[str, int, int]


class Answer(NamedTuple):
    """Indices of the tokens that were computed, (R,), and their outputs, (R, D) f64."""

    rows: Rows
    y: npt.NDArray[np.float64]


def layer_macs(scenario: Scenario) -> int:
    """Useful multiply-accumulates of one forward."""
    return count_work(scenario).macs


def save_expected(
    scenario: Scenario,
    seed: int,
    path: Path,
    *,
    macs: int,
    max_time_s: float | None,
    progress: Progress = SILENT,
) -> int:
    """Write ``rows`` (R,) and ``y`` (R, D) f64 to ``path`` (.npz); returns R.

    Raises:
        UsageError: memory would not do.
        InputError: the scenario's checkpoint lacks a tensor or holds one of other shape or type.
    """
    count = len(chosen_rows(scenario.num_tokens, macs, max_time_s))
    answer = _answer(scenario, seed, count, _states(scenario), progress)
    np.savez(path, rows=answer.rows, y=answer.y)
    return count


@functools.lru_cache(maxsize=1)
def _answer(
    scenario: Scenario, seed: int, count: int, states: tuple[FileState, ...], progress: Progress
) -> Answer:
    """The oracle's; a run asks for the same one before times, phases and each path's."""
    del states  # part of the key alone
    rows = _spread(scenario.num_tokens, count)
    with progress.task(f"{scenario.label}: computing the oracle's answer"):
        x = np.ascontiguousarray(random_tokens(scenario, seed)[rows])
        return Answer(rows, reference(layer_weights(scenario, seed), x))


def _states(scenario: Scenario) -> tuple[FileState, ...]:
    """What tells apart the files of a checkpoint before and after a change."""
    if scenario.checkpoint is None:
        return ()
    try:
        found = [(path, path.stat()) for path in files_of(scenario.checkpoint)]
    except OSError as error:
        raise InputError(f"{error.filename}: it cannot be read: {error.strerror}") from error
    return tuple((str(path), state.st_mtime_ns, state.st_size) for path, state in found)


def chosen_rows(tokens: int, macs: int, max_time_s: float | None) -> Rows:
    """Indices of the tokens to compare: all, or as many as the oracle can do in its time."""
    limit_s = LONGEST_ORACLE_S
    if max_time_s is not None:
        limit_s = min(limit_s, SHARE_OF_LIMIT * max_time_s)
    affordable = int(tokens * limit_s * ORACLE_MACS_PER_S / macs) if macs else tokens
    count = min(tokens, max(1, affordable))
    return _spread(tokens, count)


def _spread(tokens: int, count: int) -> Rows:
    if not tokens:
        return np.zeros(0, np.intp)
    return np.unique(np.linspace(0, tokens - 1, count).astype(np.intp))
