"""The operator in float64 and integers: slow, plain NumPy, one rank's tokens over all experts.

It rounds where the operator rounds (q, q2, the cast before the combine, the last cast) and
nowhere else, with one exception: x's quantization is computed in fp32 as the operator's
definition says, since 16-bit inputs often lie exactly between two integers. A value of q2 that
lies within fp32's error of a half may round the other way than in the operator, and a cast too,
so results agree within ``REL_RMSE`` and, token by token, ``WORST_TOKEN``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from moe_prof.ep.call import TokenArguments
from moe_prof.ep.native import Array
from moe_prof.ep.prepared import WeightArguments

F64 = npt.NDArray[np.float64]

REL_RMSE = 1e-3  # half a rounding to bf16, 2^-9
WORST_TOKEN = 5e-3


@dataclass(frozen=True, slots=True)
class Deviation:
    """How far a result is from the oracle: over all values, and of the worst token."""

    rel_rmse: float
    worst_token: float

    @property
    def within(self) -> bool:
        """Whether both are below their limits."""
        return self.rel_rmse <= REL_RMSE and self.worst_token <= WORST_TOKEN


def reference(tokens: TokenArguments, weights: WeightArguments) -> tuple[Array, Array]:
    """output and share_output of one rank.

    Args:
        tokens: the rank's operands.
        weights: of all E experts, as if L were E.
    """
    x = np.asarray(tokens.x, np.float64)
    dtype = tokens.x.dtype
    mask = tokens.x_active_mask
    active = len(x) if mask is None else int(np.count_nonzero(mask))
    output = np.zeros(x.shape, np.float64)
    for t in range(active):
        for j, e in enumerate(tokens.expert_ids[t]):
            if e < 0:
                continue
            smooth = tokens.expert_smooth_scales
            row = expert(
                x[t : t + 1] * (1.0 if smooth is None else np.asarray(smooth[e], np.float64)),
                *(_of(value, e) for value in _routed(weights)),
            )
            o = _cast(row, dtype).astype(np.float64)[0]
            output[t] += o * float(tokens.expert_scales[t, j])
    return _cast(output, dtype), _cast(_shared(x, tokens, weights), dtype)


def expert_token_nums(
    expert_ids: Sequence[Array], active: Sequence[int], experts: int, ranks: int, rank: int
) -> npt.NDArray[np.int64]:
    """(L) rows that each local expert of ``rank`` receives.

    Args:
        expert_ids: (B, k) of each rank.
        active: active rows of each rank.
        experts, ranks: E and P.
        rank: whose experts.
    """
    chosen = np.concatenate(
        [ids[:rows].ravel() for ids, rows in zip(expert_ids, active, strict=True)]
    )
    counts = np.bincount(chosen[chosen >= 0], minlength=experts)
    local = experts // ranks
    return counts[rank * local : (rank + 1) * local].astype(np.int64)


def deviation(got: Array, expected: Array) -> Deviation:
    """How far ``got`` is from the oracle's result; rows of zeros must be zeros."""
    a, b = np.asarray(got, np.float64), np.asarray(expected, np.float64)
    if a.size == 0:
        return Deviation(0.0, 0.0)
    same = a == b  # an overflow of fp16 is the oracle's too
    error = (np.where(same, 0.0, a) - np.where(same, 0.0, b)) ** 2
    size = np.where(np.isinf(b), 0.0, b) ** 2
    by_token = np.sqrt(_ratio(error.sum(axis=1), size.sum(axis=1)))
    return Deviation(float(np.sqrt(_ratio(error.sum(), size.sum()))), float(by_token.max()))


def _cast(values: F64, dtype: np.dtype[Any]) -> Array:
    """Rounded to the dtype; what is too large for it becomes infinite."""
    with np.errstate(over="ignore"):
        return values.astype(dtype)


def _ratio(error: F64, size: F64) -> F64:
    """error / size; nothing over nothing is 0."""
    error, size = np.asarray(error), np.asarray(size)
    return np.divide(
        error, size, out=np.where(error > 0, np.inf, 0.0).astype(np.float64), where=size > 0
    )


def _quantize(v: F64) -> tuple[F64, F64]:
    """int8 values and scales of rows, half to even; a row of zeros has scale 0."""
    largest = np.abs(v).max(axis=1, keepdims=True, initial=0.0)
    factor = np.divide(127.0, largest, out=np.zeros_like(largest), where=largest > 0)
    return np.rint(v * factor), largest / 127.0


def _quantize_x(v: F64) -> tuple[F64, F64]:
    """The same of x, in fp32: d = 127 / a, q = rint(v * d), s = 1 / d."""
    v32 = v.astype(np.float32)
    largest = np.abs(v32).max(axis=1, keepdims=True, initial=np.float32(0))
    with np.errstate(divide="ignore", over="ignore"):
        factor = np.float32(127) / largest
    factor[np.isinf(factor)] = 0  # such a row becomes zeros
    scale = np.divide(np.float32(1), factor, out=np.zeros_like(factor), where=factor > 0)
    return np.rint(v32 * factor).astype(np.float64), scale.astype(np.float64)


def expert(x: F64, w1: Array, scale1: Array, w2: Array, scale2: Array) -> F64:
    """Steps 1 to 5 of one expert over rows x (rows, h), before the cast."""
    q, s = _quantize_x(x)
    y = (q @ w1.astype(np.float64)) * np.asarray(scale1, np.float64) * s
    gate, up = np.split(y, 2, axis=1)
    with np.errstate(over="ignore"):  # a gate far below zero lets nothing through
        q2, s2 = _quantize(gate / (1.0 + np.exp(-gate)) * up)
    return (q2 @ w2.astype(np.float64)) * np.asarray(scale2, np.float64) * s2


def _routed(w: WeightArguments) -> tuple[object, ...]:
    return w.gmm1_weight, w.gmm1_weight_scale, w.gmm2_weight, w.gmm2_weight_scale


def _of(value: object, expert: int) -> Array:
    """One expert's part of a tensor, of a list, or of a list of one tensor."""
    if not isinstance(value, np.ndarray):
        assert isinstance(value, Sequence)
        single = len(value) == 1 and value[0].ndim >= 2 and expert >= 0
        value = value[0] if single and (value[0].ndim == 3 or len(value[0]) > 1) else value
    found: Array = value[expert]
    return found


def _shared(x: F64, tokens: TokenArguments, w: WeightArguments) -> F64:
    if (
        w.share_gmm1_weight is None or w.share_gmm1_weight_scale is None
        or w.share_gmm2_weight is None or w.share_gmm2_weight_scale is None or len(x) == 0
    ):  # fmt: skip
        return np.zeros(x.shape)
    smooth = tokens.share_smooth_scales
    v = x * (1.0 if smooth is None else np.asarray(smooth, np.float64))
    return expert(
        v, w.share_gmm1_weight, w.share_gmm1_weight_scale, w.share_gmm2_weight,
        w.share_gmm2_weight_scale,
    )  # fmt: skip
