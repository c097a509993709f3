"""Summary figures as a pandas table of variants by metrics, for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from moe_prof.analysis.query import RowIndex
from moe_prof.rows import Row

if TYPE_CHECKING:
    import pandas as pd


def by_variant(rows: Iterable[Row], metrics: Sequence[str]) -> pd.DataFrame:
    """One row a variant, one column a metric; a missing value is NA, never 0.

    Metrics whose content is text, such as ``verdict``, give their text. Variants and metrics
    without anything are left out.
    """
    import pandas as pd  # noqa: PLC0415  (slow to import)

    index = RowIndex(rows)
    data = {
        metric: [_content(index.row(variant, metric)) for variant in index.variants]
        for metric in metrics
    }
    frame = pd.DataFrame(data, index=pd.Index(index.variants, name="variant"))
    return frame.dropna(axis="index", how="all").dropna(axis="columns", how="all")


def _content(row: Row | None) -> float | str | None:
    """The value; of a row that never has one, its text."""
    if row is None or row.value is not None:
        return None if row is None else row.value
    return row.source if row.status == "ok" else None
