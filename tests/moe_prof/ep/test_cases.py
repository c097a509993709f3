"""Cases, their split over ranks, their seeded inputs and loads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from moe_prof.ep import batches
from moe_prof.ep.cases import ROUTINGS, Case, Fault, Trial
from moe_prof.ep.loads import by_rank, load_of, rows_per_expert
from moe_prof.errors import UsageError

CASE = Case(h=512, n=1024, experts=8, top_k=3, tokens=21, ranks=4)


@pytest.mark.parametrize("tokens", [0, 1, 3, 4, 21, 64])
def test_tokens_are_split_in_order_and_none_is_lost(tokens):
    """The slices of all ranks together are the batch, and none is longer than max_tokens."""
    case = replace(CASE, tokens=tokens)
    parts = [case.tokens_of(rank) for rank in range(case.ranks)]
    assert [t for part in parts for t in range(part.start, part.stop)] == list(range(tokens))
    assert max(part.stop - part.start for part in parts) == case.max_tokens


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"experts": 6}, "--experts 6: must be a multiple of the 4 ranks; use 8"),
        ({"top_k": 9}, "--top-k 9"),
        ({"tokens": 1025}, "--tokens 1025: 257 on one of 4 ranks, at most 256"),
    ],
)
def test_what_cannot_be_split_is_refused(changes, words):
    """The argument, its value and what to do."""
    with pytest.raises(UsageError, match=words):
        replace(CASE, **changes).check()


def test_a_trial_travels_as_json():
    """Ranks get what the launcher has."""
    trial = Trial(cases=(CASE,), variants=("fused",), fault=Fault("die", 2))
    assert Trial.from_json(trial.to_json()) == trial


@pytest.mark.parametrize("routing", ROUTINGS)
def test_a_batch_is_the_same_for_every_number_of_ranks(routing):
    """Tokens, ids and scales follow from the seed and the sizes of the whole alone."""
    one, four = (batches.batch(replace(CASE, ranks=r, routing=routing)) for r in (1, 4))
    assert (one.x == four.x).all()
    assert (one.ids == four.ids).all()
    assert (one.scales == four.scales).all()


@pytest.mark.parametrize("routing", ROUTINGS)
def test_no_token_chooses_an_expert_twice(routing):
    """Ids are distinct in a row and in range."""
    ids = batches.batch(replace(CASE, tokens=200, routing=routing)).ids
    assert all(len(set(row)) == CASE.top_k for row in ids.tolist())
    assert ids.min() >= 0
    assert ids.max() < CASE.experts


def test_the_hot_expert_gets_every_token():
    """One expert is in each row; the others share what is left about evenly."""
    ids = batches.batch(replace(CASE, tokens=400, routing="hot")).ids
    rows = rows_per_expert(ids, CASE.experts)
    assert rows[batches.HOT_EXPERT] == 400
    others = np.delete(rows, batches.HOT_EXPERT)
    assert others.max() < 2 * others.min()


def test_lognormal_routing_is_less_even_than_uniform():
    """Its popularities spread over several times."""
    loads = [
        load_of(rows_per_expert(batches.batch(replace(CASE, tokens=800, routing=r)).ids, 8))
        for r in ("uniform", "lognormal")
    ]
    assert loads[0].max_over_mean < 1.2 < loads[1].max_over_mean


def test_tokens_are_heavy_tailed_and_weights_use_the_whole_int8_range():
    """The largest channel is far above the median one; -128 and 127 occur."""
    x = np.abs(batches.batch(replace(CASE, tokens=64)).x).max(axis=0)
    assert x.max() > 20 * np.median(x)
    weights = batches.expert_weights(CASE, 5)
    assert (weights.w1.min(), weights.w1.max()) == (-128, 127)
    assert weights.w1.shape == (512, 1024)
    assert weights.w2.shape == (512, 512)


def test_experts_differ_and_repeat():
    """Each expert has its own weights, the same ones every time."""
    first, again, other = (batches.expert_weights(CASE, expert) for expert in (1, 1, 2))
    assert (first.w1 == again.w1).all()
    assert (first.w1 != other.w1).any()


def test_loads_count_skipped_choices_nowhere():
    """-1 is no expert; statistics are those of the definition."""
    ids = np.array([[0, 1], [0, -1], [0, 3]], np.int32)
    rows = rows_per_expert(ids, 4)
    assert rows.tolist() == [3, 1, 0, 1]
    load = load_of(rows)
    assert load.max_over_mean == pytest.approx(3 / 1.25)
    assert load.variation == pytest.approx(np.std([3, 1, 0, 1]) / 1.25)
    assert by_rank(rows, 2).tolist() == [4, 1]
    assert load_of(np.zeros(4, np.int64)).max_over_mean is None
