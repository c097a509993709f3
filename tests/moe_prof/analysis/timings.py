"""Made-up timings of two variants with the kinds of noise that machines have."""

from __future__ import annotations

import numpy as np

NOISES = ("normal", "lognormal", "drifting", "correlated", "outliers")


def two_sides(
    seed: int,
    noise: str,
    *,
    ratio: float = 1.0,
    processes: int = 3,
    rounds: int = 20,
    layout: float = 0.003,
    level: float = 0.01,
    placement: float = 0.0,
):
    """(old, new) samples of one interleaved run; the new side takes ``ratio`` times as long.

    ``layout`` is the scatter that a process gives to each side for its whole life, ``level`` that
    of single samples, ``placement`` that of plans prepared anew each round. ``drifting`` and
    ``correlated`` disturb both members of a round alike, by more than any difference looked for;
    ``outliers``: 5 % of all samples are longer by half.
    """
    generator = np.random.default_rng(seed)
    sides = ({}, {})
    for process in range(processes):
        common = np.zeros(rounds)
        if noise == "drifting":
            common = np.cumsum(0.01 * generator.standard_normal(rounds)) + 0.03 * process
        elif noise == "correlated":
            common = 0.05 * generator.standard_normal(rounds)
        for side, scale in zip(sides, (1.0, ratio), strict=True):
            logs = common + layout * generator.standard_normal()
            if placement:
                logs = logs + placement * generator.standard_normal(rounds)
            if noise == "lognormal":
                logs = logs + level * np.exp(0.8 * generator.standard_normal(rounds))
            else:
                logs = logs + level * generator.standard_normal(rounds)
            if noise == "outliers":
                logs = logs + (generator.random(rounds) < 0.05) * generator.exponential(0.5, rounds)
            side.update(
                {(process, r): 2e-3 * scale * float(np.exp(log)) for r, log in enumerate(logs)}
            )
    return sides
