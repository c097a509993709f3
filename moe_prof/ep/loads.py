"""How evenly rows fall on experts and ranks. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Load:
    """Rows over the members of a group (experts, or ranks).

    Attributes:
        rows: of each member.
        max_over_mean: 1 when even; None without rows.
        variation: standard deviation over mean (coefficient of variation); None without rows.
    """

    rows: tuple[int, ...]
    max_over_mean: float | None
    variation: float | None


def rows_per_expert(ids: npt.NDArray[np.int32], experts: int) -> npt.NDArray[np.int64]:
    """How many rows each expert gets; ids: (tokens, k), -1 is skipped."""
    return np.bincount(ids[ids >= 0].ravel(), minlength=experts).astype(np.int64)


def load_of(rows: npt.NDArray[np.int64]) -> Load:
    """The statistics of rows per member."""
    counts = tuple(int(one) for one in rows)
    mean = float(rows.mean()) if len(rows) else 0.0
    if not mean:
        return Load(counts, None, None)
    return Load(counts, float(rows.max()) / mean, float(rows.std()) / mean)


def by_rank(rows: npt.NDArray[np.int64], ranks: int) -> npt.NDArray[np.int64]:
    """Rows per rank: of its L consecutive experts."""
    found: npt.NDArray[np.int64] = rows.reshape(ranks, -1).sum(axis=1)
    return found
