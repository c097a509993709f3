"""The oracle: the layer in float64 and exact integers, plain NumPy, no tricks worth a bug.

Every kernel variant is judged by :func:`reference`. Integers are exact: products of int8 values are
summed in float64, which holds every sum below 2^53. The quantization of x is done in f32 as the
layer defines it, because it decides the integers; all else is float64.

Source of the formulas: the layer's definition (W8A8, one scale per token, SwiGLU experts, a shared
expert, gates normalized over the chosen); group-limited routing as in DeepSeek-V3 (arXiv
2412.19437, section 2.1.2 and the published model code: a group is ranked by its two best scores).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from moe_prof.errors import InputError
from moe_prof.kernels.weights import F32, I8, Weights, check_tokens, check_weights

F64 = npt.NDArray[np.float64]
I32 = npt.NDArray[np.int32]

SMALLEST_MAGNITUDE = 2.0**-100
"""A row whose largest magnitude is below this is quantized to zeros with scale 0."""
SCORES_PER_CHUNK = 1 << 15
"""Scores accumulated at a time, so that they stay in the L2 cache."""
WEIGHTS_PER_BLOCK = 1 << 17
"""Weights held in f64 at a time: a whole matrix of a model would be new pages for every product."""


class Routing(NamedTuple):
    """Which experts serve which token.

    Attributes:
        ids: (N, K) int32, the chosen experts by descending score; equal scores, lower index first.
        gates: (N, K) f64, their weights in the sum.
        scores: (N, E) f64, affinity plus bias, by which they were chosen.
    """

    ids: I32
    gates: F64
    scores: F64


@dataclass(frozen=True, slots=True)
class Errors:
    """How far a result is from the oracle's.

    Attributes:
        rel_rmse: ||actual - expected|| / ||expected|| over all values; 0 when both are zero,
            infinite when only the expected are or when a value is not finite.
        worst_error: the largest of the same ratio of single tokens.
        worst_token: that token's index, None when every token is exact.
    """

    rel_rmse: float
    worst_error: float
    worst_token: int | None


def reference(w: Weights, x: F32) -> F64:
    """The layer's output y: (N, D) f64, for tokens x: (N, D) f32.

    Raises:
        InputError: x is not (N, D) f32 and finite, or w is not Weights.
    """
    x = check_tokens(x, check_weights(w).d_model)
    ids, gates, _ = routing(w, x)
    x_q, x_scale = quantize_tokens(x)
    y = x.astype(np.float64) if w.has_residual else np.zeros(x.shape)
    if w.has_shared:
        y += _ffn(w, w.num_experts, x_q, x_scale)
    for expert in np.unique(ids):
        rows, slots = np.nonzero(ids == expert)
        ffn = _ffn(w, int(expert), x_q[rows], x_scale[rows])
        y[rows] += gates[rows, slots, None] * ffn
    return y


def routing(w: Weights, x: F32) -> Routing:
    """The choice of experts for tokens x: (N, D) f32.

    Raises:
        InputError: x is not (N, D) f32 and finite, or w is not Weights.
    """
    z = _router_outputs(check_weights(w).router, check_tokens(x, w.d_model))
    scores = _affinities(w, z) + w.bias.astype(np.float64)
    ranked = scores if w.n_group == 1 else _without_lost_groups(w, scores)
    ids = np.argsort(-ranked, axis=1, kind="stable")[:, : w.top_k].astype(np.int32)
    chosen = np.take_along_axis(z, ids, axis=1)
    if w.score == "sigmoid":
        chosen = -np.logaddexp(0.0, -chosen)
    if w.normalize_gates:
        gates = _softmax(chosen)
    elif w.score == "softmax":
        gates = np.take_along_axis(_softmax(z), ids, axis=1)
    else:
        gates = np.exp(chosen)
    gates = gates * w.routed_scaling_factor
    return Routing(ids, gates, scores)


def quantize_tokens(x: F32) -> tuple[I8, F32]:
    """x: (N, D) f32 to int8 of the same shape and one scale a token, (N,) f32, all in f32."""
    largest = np.abs(x).max(axis=1)
    usable = largest >= np.float32(SMALLEST_MAGNITUDE)
    divisor = np.where(usable, largest, np.float32(1.0))
    inverse = np.where(usable, np.float32(127.0) / divisor, np.float32(0.0))
    scale = np.where(usable, largest / np.float32(127.0), np.float32(0.0))
    return np.rint(x * inverse[:, None]).astype(np.int8), scale


def errors(actual: npt.NDArray[np.floating], expected: F64) -> Errors:
    """Compare a result with the oracle's, both (N, D).

    Raises:
        InputError: the shapes differ.
    """
    if actual.shape != expected.shape:
        raise InputError(f"result: shape is {actual.shape}, {expected.shape} is needed")
    difference = actual.astype(np.float64) - expected
    difference[~np.isfinite(difference)] = np.inf
    size = np.linalg.norm(expected, axis=1)
    distance = np.linalg.norm(difference, axis=1)
    per_token = np.divide(distance, size, out=np.where(distance > 0, np.inf, 0.0), where=size > 0)
    if not per_token.any():
        return Errors(0.0, 0.0, None)
    worst = int(per_token.argmax())
    total = float(np.linalg.norm(size))
    rel_rmse = float(np.linalg.norm(distance)) / total if total > 0 else np.inf
    return Errors(rel_rmse, float(per_token[worst]), worst)


def _router_outputs(router: F32, x: F32) -> F64:
    """z: (N, E) f64, each a sum over d from 0 upwards, so that equal rows give equal bits.

    A product of two f32 values is exact in f64; a BLAS would choose other orders of summation for
    other columns, and a tie would be decided by its tiling.
    """
    columns = np.ascontiguousarray(router.T, dtype=np.float64)
    z = np.zeros((x.shape[0], router.shape[0]))
    step = max(1, SCORES_PER_CHUNK // router.shape[0])
    for low in range(0, x.shape[0], step):
        part = z[low : low + step]
        values = np.ascontiguousarray(x[low : low + step].T, dtype=np.float64)
        product = np.empty_like(part)
        for value, column in zip(values, columns, strict=True):
            np.multiply(value[:, None], column, out=product)
            part += product
    return z


def _affinities(w: Weights, z: F64) -> F64:
    """a: (N, E) f64 in 0..1."""
    if w.score == "softmax":
        return _softmax(z)
    with np.errstate(over="ignore"):
        return 1.0 / (1.0 + np.exp(-z))


def _softmax(z: F64) -> F64:
    """Softmax over the last axis; a row without values stays empty."""
    powers = np.exp(z - z.max(axis=1, keepdims=True))
    result: F64 = powers / powers.sum(axis=1, keepdims=True)
    return result


def _without_lost_groups(w: Weights, scores: F64) -> F64:
    """Scores with those of all but the ``topk_group`` best groups at minus infinity."""
    grouped = scores.reshape(len(scores), w.n_group, -1)
    two_best = -np.sort(-grouped, axis=2)[:, :, :2]
    order = np.argsort(-two_best.sum(axis=2), axis=1, kind="stable")
    kept = np.zeros(order.shape, np.bool_)
    np.put_along_axis(kept, order[:, : w.topk_group], True, axis=1)
    masked: F64 = np.where(kept[:, :, None], grouped, -np.inf)
    return masked.reshape(scores.shape)


def _ffn(w: Weights, expert: int, x_q: I8, x_scale: F32) -> F64:
    """One expert's output, (rows, D) f64, for quantized rows (rows, D) and their scales (rows,)."""
    row_scale = x_scale.astype(np.float64)[:, None]
    gate = _dot(x_q, w.gate[expert]) * (row_scale * w.gate_scale[expert])
    up = _dot(x_q, w.up[expert]) * (row_scale * w.up_scale[expert])
    with np.errstate(over="ignore"):
        h = gate / (1.0 + np.exp(-gate)) * up
    largest = np.abs(h).max(axis=1, keepdims=True)
    usable = largest >= SMALLEST_MAGNITUDE
    inverse = np.where(usable, 127.0 / np.where(usable, largest, 1.0), 0.0)
    scale = np.where(usable, largest / 127.0, 0.0)
    h_q = np.rint(h * inverse)
    out: F64 = _dot(h_q, w.down[expert]) * (scale * w.down_scale[expert])
    return out


def _dot(rows: I8 | F64, matrix: I8) -> F64:
    """Exact integer products (rows, out) of int8 values held in any dtype."""
    left = rows.astype(np.float64)
    products = np.empty((len(rows), len(matrix)))
    step = max(1, WEIGHTS_PER_BLOCK // matrix.shape[1])
    for low in range(0, len(matrix), step):
        block = matrix[low : low + step].astype(np.float64)
        np.matmul(left, block.T, out=products[:, low : low + step])
    return products
