"""Predicted bytes: by hand for small cases, and of all ranks together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from moe_prof.ep.batches import batch, rows_of
from moe_prof.ep.cases import CACHE_ONLY, FUSED, OVERLAP_ONLY, SMALL_OPS, Case
from moe_prof.ep.predictions import Rows, predicted

H, N = 512, 1024
ROWS = Rows(tokens=3, sent=6, received=10, walks=2, local_experts=2)
WEIGHTS = {"gmm1": H * N, "gmm2": N // 2 * H}


def stage(found, name):
    """(read, written) of a stage."""
    return found[name]["memory_read"], found[name]["memory_written"]


def test_the_fused_call_moves_messages_weights_and_rows():
    """Dispatch writes h + 4 a row and reads each token once; results are written once."""
    found = predicted(FUSED, H, N, ROWS, alltoallv=True)
    assert stage(found, "dispatch") == (3 * 2 * H, 6 * (H + 4))
    assert stage(found, "gather") == (10 * (H + 4), 0)
    assert stage(found, "gmm1") == (2 * WEIGHTS["gmm1"], 0)
    assert stage(found, "gmm2") == (2 * WEIGHTS["gmm2"], 10 * 2 * H)
    assert stage(found, "combine") == (6 * 2 * H, 3 * 2 * H)
    assert "send" not in found
    assert found == predicted(CACHE_ONLY, H, N, ROWS, alltoallv=True)


def test_small_ops_write_what_the_next_one_reads():
    """Products and activations pass through memory, and rows through MPI's buffers."""
    found = predicted(SMALL_OPS, H, N, ROWS, alltoallv=True)
    assert stage(found, "gmm1") == (2 * WEIGHTS["gmm1"] + 10 * H, 10 * 4 * N)
    assert stage(found, "swiglu") == (10 * 4 * N, 10 * N // 2)
    assert stage(found, "wait_dispatch") == (6 * (H + 4), 10 * (H + 4))
    assert stage(found, "wait_combine") == (10 * 2 * H, 6 * 2 * H)
    assert "wait_dispatch" not in predicted(SMALL_OPS, H, N, ROWS, alltoallv=False)


def test_one_expert_a_rank_sends_afterwards():
    """The shallow path keeps rows and sends them; the ablation without cache fusion does too."""
    rows = replace(ROWS, local_experts=1)
    for variant in (FUSED, OVERLAP_ONLY):
        assert stage(predicted(variant, H, N, rows, alltoallv=True), "send") == (
            10 * 2 * H, 10 * 2 * H,
        )  # fmt: skip


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_ranks_together_handle_every_row_once(ranks):
    """What is sent is received, and each expert's weights are read once a block of rows."""
    case = Case(h=H, n=N, experts=8, top_k=3, tokens=30, ranks=ranks)
    ids = batch(case).ids
    parts = [rows_of(case, ids, rank, 4) for rank in range(ranks)]
    assert sum(part.tokens for part in parts) == 30
    assert sum(part.sent for part in parts) == sum(part.received for part in parts) == 90
    counts = [(ids == expert).sum() for expert in range(8)]
    assert sum(part.walks for part in parts) == sum(-(-count // 4) for count in counts)
