"""Tables of variants by metrics."""

from __future__ import annotations

import pandas as pd

from moe_prof.analysis.table import by_variant
from tests.moe_prof.topdown.made import row


def test_variants_by_metrics():
    """In the order asked for; texts where a metric is one."""
    rows = [row("time", 2.0, "a"), row("IPC", 1.5, "a"), row("verdict", None, "a", source="slow")]
    frame = by_variant(rows, ["IPC", "time", "verdict"])
    assert frame.loc["a"].tolist() == [1.5, 2.0, "slow"]


def test_missing_is_missing():
    """A reason is no value; what nobody has is left out."""
    rows = [
        row("time", 2.0, "a"),
        row("time", None, "b", status="not_supported", provenance="unavailable", source="no PMU"),
        row("IPC", 1.0, "b"),
        row("threads", None, "c", status="not_counted"),
    ]
    frame = by_variant(rows, ["time", "IPC", "cycles", "threads"])
    assert list(frame.columns) == ["time", "IPC"]
    assert list(frame.index) == ["a", "b"]
    assert pd.isna(frame.loc["b", "time"])
