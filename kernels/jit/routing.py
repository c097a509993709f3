"""Routing of one token: router outputs, the exact choice of K experts, their gates.

Sums of f32 values run from the first element on. Where f32 scores can't prove the order of the best
experts, those in doubt are scored again in f64; softmax and group-limited routing are done in f64
throughout. Source of the rules: the layer's definition; DeepSeek-V3 (arXiv 2412.19437) for groups.

The parts of a plan are passed as named tuples, which numba takes by value.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from moe_prof.kernels.jit.compile import inner

F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
I16 = npt.NDArray[np.int16]
I8 = npt.NDArray[np.int8]

VANISHED = np.float32(1e-30)
"""Affinities whose sum is below this are normalized through their logarithms."""


class Layer(NamedTuple):
    """Weights and options. D d_model, H d_ff, E routed experts, S 1 with a shared one else 0."""

    columns: F32  # (D, E): the router, transposed so that experts are contiguous
    bias: F32  # (E,)
    gate: I8  # (E + S, H, D)
    up: I8  # (E + S, H, D)
    down: I8  # (E + S, D, H)
    gate_scale: F32  # (E + S, H)
    up_scale: F32  # (E + S, H)
    down_scale: F32  # (E + S, D)
    top_k: int
    softmax: bool
    n_group: int
    topk_group: int
    factor: np.float32
    has_residual: bool
    normalize: bool  # gates are divided by their sum
    error_per_norm: float  # a score's f32 error is at most this times ||x||, plus error_floor
    error_floor: float


class Scratch(NamedTuple):
    """Buffers of each of T slots, and the routing of the M tokens at hand.

    A slot is one share of a parallel loop; as many as there are threads.
    """

    z: F32  # (T, E)
    affinity: F32  # (T, E)
    score: F64  # (T, E)
    ranked: F64  # (T, K + 1)
    ranked_id: I64  # (T, K + 1)
    group_rank: F64  # (T, n_group)
    group_kept: I64  # (T, n_group)
    x_q: I16  # (T, D)
    h: F32  # (T, H)
    h_q: I16  # (T, H)
    out: F32  # (T, D)
    ids: I64  # (M, K)
    gates: F32  # (M, K)


@inner
def route(x: F32, n: int, slot: int, layer: Layer, scratch: Scratch) -> None:
    """Chosen experts and gates of token n, x: (D,), into scratch.ids[n] and scratch.gates[n]."""
    z, affinity, score = scratch.z[slot], scratch.affinity[slot], scratch.score[slot]
    ids, gates = scratch.ids[n], scratch.gates[n]
    exact = layer.softmax or layer.n_group > 1
    if not exact:
        router_outputs(x, layer.columns, z)
        for e in range(z.shape[0]):
            affinity[e] = np.float32(1.0) / (np.float32(1.0) + math.exp(-z[e]))
            score[e] = np.float32(affinity[e] + layer.bias[e])
            exact |= not math.isfinite(z[e])
    if exact:
        rank_exactly(x, slot, layer, scratch)
    else:
        rank_proven(x, slot, layer, scratch)
    total = np.float32(0.0)
    for k in range(layer.top_k):
        ids[k] = scratch.ranked_id[slot, k]
        total += affinity[ids[k]]
    if exact or total < VANISHED:
        gates_through_logarithms(x, ids, gates, layer)
        return
    for k in range(layer.top_k):
        gate = affinity[ids[k]] / total if layer.normalize else affinity[ids[k]]
        gates[k] = gate * layer.factor


@inner
def router_outputs(x: F32, columns: F32, z: F32) -> None:
    """z_e = sum of x_d columns_de from d = 0 on, in f32; four steps per pass over z."""
    for e in range(z.shape[0]):
        z[e] = np.float32(0.0)
    whole = x.shape[0] // 4 * 4
    for d in range(0, whole, 4):
        x0, x1, x2, x3 = x[d], x[d + 1], x[d + 2], x[d + 3]
        r0, r1, r2, r3 = columns[d], columns[d + 1], columns[d + 2], columns[d + 3]
        for e in range(z.shape[0]):
            z[e] = (((z[e] + x0 * r0[e]) + x1 * r1[e]) + x2 * r2[e]) + x3 * r3[e]
    for d in range(whole, x.shape[0]):
        for e in range(z.shape[0]):
            z[e] += x[d] * columns[d, e]


@inner
def router_output_exactly(x: F32, columns: F32, expert: int) -> float:
    """One router output, summed in f64 from d = 0 on."""
    total = 0.0
    for d in range(x.shape[0]):
        total += np.float64(x[d]) * np.float64(columns[d, expert])
    return total


@inner
def rank_proven(x: F32, slot: int, layer: Layer, scratch: Scratch) -> None:
    """Rank the K best; scores that f32 could have put in a wrong order are replaced by f64 ones."""
    score, ranked, ids = scratch.score[slot], scratch.ranked[slot], scratch.ranked_id[slot]
    best = min(layer.top_k + 1, score.shape[0])
    rank(score, best, ranked, ids)
    squares = 0.0
    for d in range(x.shape[0]):
        squares += np.float64(x[d]) * np.float64(x[d])
    doubt = 2.0 * (layer.error_per_norm * math.sqrt(squares) + layer.error_floor)
    certain = True
    for k in range(best - 1):
        certain &= ranked[k] - ranked[k + 1] > doubt
    if certain:
        return
    lowest = ranked[layer.top_k - 1] - doubt
    for e in range(score.shape[0]):
        if score[e] >= lowest:
            z = router_output_exactly(x, layer.columns, e)
            score[e] = 1.0 / (1.0 + math.exp(-z)) + np.float64(layer.bias[e])
        else:
            score[e] = -math.inf
    rank(score, layer.top_k, ranked, ids)


@inner
def rank_exactly(x: F32, slot: int, layer: Layer, scratch: Scratch) -> None:
    """Rank the K best by f64 scores of all experts, inside the groups kept."""
    score = scratch.score[slot]
    for e in range(score.shape[0]):
        score[e] = 0.0
    for d in range(x.shape[0]):
        value = np.float64(x[d])
        for e in range(score.shape[0]):
            score[e] += value * np.float64(layer.columns[d, e])
    to_affinities(score, layer.softmax)
    for e in range(score.shape[0]):
        score[e] += np.float64(layer.bias[e])
    if layer.topk_group < layer.n_group:
        ranks, kept = scratch.group_rank[slot], scratch.group_kept[slot]
        drop_lost_groups(score, layer.topk_group, ranks, kept)
    rank(score, layer.top_k, scratch.ranked[slot], scratch.ranked_id[slot])


@inner
def to_affinities(z: F64, softmax: bool) -> None:
    """Router outputs to affinities, in place."""
    if not softmax:
        for e in range(z.shape[0]):
            z[e] = 1.0 / (1.0 + math.exp(-z[e]))
        return
    largest = -math.inf
    for e in range(z.shape[0]):
        largest = max(largest, z[e])
    total = 0.0
    for e in range(z.shape[0]):
        z[e] = math.exp(z[e] - largest)
        total += z[e]
    for e in range(z.shape[0]):
        z[e] /= total


@inner
def drop_lost_groups(score: F64, count: int, ranks: F64, kept: I64) -> None:
    """Put all scores to -inf but those of the ``count`` groups with the best two-score sums."""
    size = score.shape[0] // ranks.shape[0]
    for g in range(ranks.shape[0]):
        first, second = -math.inf, -math.inf
        for e in range(g * size, (g + 1) * size):
            if score[e] > first:
                first, second = score[e], first
            elif score[e] > second:
                second = score[e]
        ranks[g] = first if size == 1 else first + second
        kept[g] = 0
    for _ in range(count):
        best = -1
        for g in range(ranks.shape[0]):
            if kept[g] == 0 and (best < 0 or ranks[g] > ranks[best]):
                best = g
        kept[best] = 1
    for e in range(score.shape[0]):
        if kept[e // size] == 0:
            score[e] = -math.inf


@inner
def rank(score: F64, count: int, ranked: F64, ids: I64) -> None:
    """The ``count`` largest scores, descending, and their indexes; among equals the lower first."""
    held = 0
    for e in range(score.shape[0]):
        value = score[e]
        if held == count and not value > ranked[count - 1]:
            continue
        place = held if held < count else count - 1
        while place > 0 and value > ranked[place - 1]:
            ranked[place], ids[place] = ranked[place - 1], ids[place - 1]
            place -= 1
        ranked[place], ids[place] = value, e
        held = min(held + 1, count)


@inner
def gates_through_logarithms(x: F32, ids: I64, gates: F32, layer: Layer) -> None:
    """Gates for affinities of any size, in f64. x: (D,); ids, gates: (K,)."""
    if not layer.normalize:
        below = log_softmax_sum(x, layer) if layer.softmax else 0.0
        for k in range(layer.top_k):
            power = math.exp(log_affinity(x, ids[k], layer) - below)
            gates[k] = np.float32(power) * layer.factor
        return
    largest = -math.inf
    for k in range(layer.top_k):
        largest = max(largest, log_affinity(x, ids[k], layer))
    total = 0.0
    for k in range(layer.top_k):
        total += math.exp(log_affinity(x, ids[k], layer) - largest)
    for k in range(layer.top_k):
        power = math.exp(log_affinity(x, ids[k], layer) - largest)
        gates[k] = np.float32(power / total) * layer.factor


@inner
def log_affinity(x: F32, expert: int, layer: Layer) -> float:
    """log sigmoid(z), or z itself: softmax affinities differ by a common factor only."""
    z = router_output_exactly(x, layer.columns, expert)
    if layer.softmax:
        return z
    return min(z, 0.0) - math.log1p(math.exp(-abs(z)))


@inner
def log_softmax_sum(x: F32, layer: Layer) -> float:
    """Logarithm of the sum that softmax affinities have below their fraction stroke. x: (D,)."""
    largest = -math.inf
    for e in range(layer.bias.shape[0]):
        largest = max(largest, router_output_exactly(x, layer.columns, e))
    total = 0.0
    for e in range(layer.bias.shape[0]):
        total += math.exp(router_output_exactly(x, layer.columns, e) - largest)
    return largest + math.log(total)
