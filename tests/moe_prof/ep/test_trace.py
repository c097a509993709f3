"""Traces for Perfetto."""

from __future__ import annotations

import json

import pytest

from moe_prof.ep import trace
from moe_prof.ep.trace import Span
from moe_prof.errors import MoeProfError

SPANS = [
    Span(0, 0, "gmm1", "fused", 5_000_000, 7_500_000, expert=1),
    Span(1, 1, "wait_dispatch", "fused", 5_001_000, 5_002_000, peer=0),
]


def test_a_span_is_a_complete_event_in_microseconds():
    """Begin counts from the start, rank and thread are process and thread."""
    events = trace.document(SPANS, 5_000_000)["traceEvents"]
    (gmm, wait) = [event for event in events if event["ph"] == "X"]
    assert (gmm["pid"], gmm["tid"], gmm["ts"], gmm["dur"]) == (0, 0, 0.0, 2500.0)
    assert gmm["args"] == {"call": "fused", "expert": 1}
    assert (wait["cat"], wait["ts"], wait["args"]["waits for rank"]) == ("wait", 1.0, 0)


def test_processes_and_threads_have_names():
    """Each once, as metadata."""
    events = trace.document(SPANS)["traceEvents"]
    names = [event["args"]["name"] for event in events if event["ph"] == "M"]
    assert names == ["rank 0", "rank 1", "thread 0", "thread 1"]


def test_every_rank_has_a_file_and_all_have_one(tmp_path):
    """Also a rank without spans; the files of ranks together are the whole."""
    paths = trace.write(tmp_path / "new", "case", SPANS, 3)
    assert [path.name for path in paths] == [
        "case-rank0.json", "case-rank1.json", "case-rank2.json", "case-all.json",
    ]  # fmt: skip
    counts = [
        sum(event["ph"] == "X" for event in json.loads(path.read_text())["traceEvents"])
        for path in paths
    ]
    assert counts == [1, 1, 0, 2]


def test_a_folder_that_cannot_be_made_is_one_clear_error(tmp_path):
    """It names the folder and the option."""
    (tmp_path / "file").write_text("")
    with pytest.raises(MoeProfError, match=r"cannot write the trace in .*--trace"):
        trace.write(tmp_path / "file" / "deeper", "case", SPANS, 2)
