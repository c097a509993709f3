"""The oracle's answer for a measurement, computed once and read by every worker.

Tokens do not influence each other in the layer, so where all of them would take the oracle too
long, evenly spread tokens are compared.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from moe_prof.analysis.work import count_work
from moe_prof.kernels.checkpoint import layer_weights
from moe_prof.kernels.inputs import random_tokens
from moe_prof.kernels.oracle import reference
from moe_prof.scenario import Scenario

ORACLE_MACS_PER_S = 5e8
"""A cautious speed of the oracle: 1.5e9 per second on a 2.6 GHz Xeon."""
LONGEST_ORACLE_S = 20.0
SHARE_OF_LIMIT = 0.1


def layer_macs(scenario: Scenario) -> int:
    """Useful multiply-accumulates of one forward."""
    return count_work(scenario).macs


def save_expected(
    scenario: Scenario, seed: int, path: Path, *, macs: int, max_time_s: float | None
) -> int:
    """Write ``rows`` (R,) and ``y`` (R, D) f64 to ``path`` (.npz); returns R.

    Raises:
        UsageError: memory would not do.
    """
    x = random_tokens(scenario, seed)
    rows = chosen_rows(len(x), macs, max_time_s)
    y = reference(layer_weights(scenario, seed), np.ascontiguousarray(x[rows]))
    np.savez(path, rows=rows, y=y)
    return len(rows)


def chosen_rows(tokens: int, macs: int, max_time_s: float | None) -> npt.NDArray[np.intp]:
    """Indices of the tokens to compare: all, or as many as the oracle can do in its time."""
    limit_s = LONGEST_ORACLE_S
    if max_time_s is not None:
        limit_s = min(limit_s, SHARE_OF_LIMIT * max_time_s)
    affordable = int(tokens * limit_s * ORACLE_MACS_PER_S / macs) if macs else tokens
    count = min(tokens, max(1, affordable))
    if not tokens:
        return np.zeros(0, np.intp)
    return np.unique(np.linspace(0, tokens - 1, count).astype(np.intp))
