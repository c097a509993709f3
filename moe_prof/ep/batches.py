"""Seeded inputs of a case: tokens, routing, weights. The same for every number of ranks.

Every expert's weights have a seed of their own, so that a rank makes those that it holds and
nothing else; tokens and routing are made whole and cut.

Tokens are heavy-tailed, as activations are: normal values times a log-normal scale for each
channel, and one channel in 256 twenty times larger.

Routing: ``uniform`` draws K distinct experts with equal chances; ``lognormal`` draws them by
popularities exp(N(0, 1)) (Gumbel top-K, which is drawing without replacement by weight: Kool et
al., Stochastic Beams and Where to Find Them, ICML 2019); ``hot`` sends every token to one expert
and to K - 1 uniform others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moe_prof.ep.cases import Case, Routing
from moe_prof.ep.loads import rows_per_expert
from moe_prof.ep.predictions import Rows

F32 = npt.NDArray[np.float32]
I32 = npt.NDArray[np.int32]
I8 = npt.NDArray[np.int8]

_TOKENS, _ROUTING, _WEIGHTS = 1, 2, 3
_INT8_RMS = 74.0
"""Root mean square of uniform int8 values."""
OUTLIER_EVERY, OUTLIER_SCALE = 256, 20.0
HOT_EXPERT = 0


@dataclass(frozen=True, slots=True)
class Batch:
    """The global batch. x: (T, h) f32; ids: (T, K) i32, distinct in a row; scales: (T, K) f32."""

    x: F32
    ids: I32
    scales: F32


@dataclass(frozen=True, slots=True)
class ExpertWeights:
    """One expert. w1: (h, n) i8; s1: (n,) f32; w2: (n/2, h) i8; s2: (h,) f32; all C-order."""

    w1: I8
    s1: F32
    w2: I8
    s2: F32


def batch(case: Case) -> Batch:
    """Tokens, routing and scales of all ranks together."""
    generator = np.random.default_rng([case.seed, _TOKENS, case.h, case.tokens])
    x = generator.standard_normal((case.tokens, case.h), dtype=np.float32)
    channel = np.exp(generator.standard_normal(case.h, dtype=np.float32))
    channel[::OUTLIER_EVERY] *= OUTLIER_SCALE
    x *= channel
    generator = np.random.default_rng([case.seed, _ROUTING, case.experts, case.tokens])
    ids = route(case.routing, case.tokens, case.experts, case.top_k, generator)
    scales = generator.random(ids.shape, dtype=np.float32) + np.float32(0.1)
    if case.top_k:
        scales /= scales.sum(axis=1, keepdims=True)
    return Batch(x, ids, scales)


def route(
    routing: Routing, tokens: int, experts: int, top_k: int, generator: np.random.Generator
) -> I32:
    """(tokens, top_k) i32 distinct expert ids, in the order in which they were drawn."""
    logits = np.zeros(experts)
    if routing == "lognormal":
        logits = generator.standard_normal(experts)
    keys = logits + generator.gumbel(size=(tokens, experts))
    if routing == "hot":
        keys[:, HOT_EXPERT] = np.inf
    order = np.argsort(-keys, axis=1, kind="stable")[:, :top_k]
    return np.ascontiguousarray(order, dtype=np.int32)


def expert_weights(case: Case, expert: int) -> ExpertWeights:
    """Weights over the whole int8 range; scales keep the outputs at the size of the tokens."""
    m = case.n // 2
    generator = np.random.default_rng([case.seed, _WEIGHTS, case.h, case.n, expert])
    w1 = np.frombuffer(generator.bytes(case.h * case.n), np.int8).reshape(case.h, case.n)
    w2 = np.frombuffer(generator.bytes(m * case.h), np.int8).reshape(m, case.h)
    s1 = _scales(case.n, case.h, generator)
    s2 = _scales(case.h, m, generator)
    return ExpertWeights(w1, s1, w2, s2)


def rows_of(case: Case, ids: I32, rank: int, block_rows: int) -> Rows:
    """What a rank handles: its tokens, the rows that it sends, and those that its experts get.

    Args:
        block_rows: rows of an expert that share a walk over its weights.
    """
    local = case.local_experts
    part = case.tokens_of(rank)
    mine = rows_per_expert(ids, case.experts)[rank * local : (rank + 1) * local]
    return Rows(
        tokens=part.stop - part.start, sent=int((ids[part] >= 0).sum()), received=int(mine.sum()),
        walks=int((-(-mine // block_rows)).sum()), local_experts=local,
    )  # fmt: skip


def _scales(outputs: int, reduction: int, generator: np.random.Generator) -> F32:
    spread = generator.random(outputs, dtype=np.float32) + np.float32(0.5)
    return spread / np.float32(_INT8_RMS * np.sqrt(reduction))
