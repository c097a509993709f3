"""NumPy: the exact layer with its int8 products as f32 matrix products of the BLAS.

A sum of int8 products is exact in f32 while it stays below 2^24, for any weights up to 1032 terms;
tokens are grouped by expert, as a NumPy program would do it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from benchmarks.contender import F32, Contender
from moe_prof.kernels import Weights
from moe_prof.kernels.oracle import quantize_tokens

SMALLEST = np.float32(2.0**-100)


class NumpyBlas(Contender):
    """Grouped W8A8 products in f32."""

    def availability(self) -> str:
        """NumPy is always there."""
        return ""

    def prepare(self, weights: Weights, threads: int, max_tokens: int) -> None:
        """Weights as f32, gate and up in one matrix."""
        self._w = weights
        self._gate_up = np.concatenate((weights.gate, weights.up), axis=1).astype(np.float32)
        self._down = weights.down.astype(np.float32)
        self._gate_up_scale = np.concatenate(
            (weights.gate_scale_per_channel, weights.up_scale_per_channel), axis=1
        )
        self._down_scale = weights.down_scale_per_channel
        self.path = f"numpy {np.__version__}, f32 BLAS"

    def forward(self, x: F32) -> F32:
        """Router, buckets, experts, sum."""
        w = self._w
        affinity = 1 / (1 + np.exp(-(x @ w.router.T)))
        ids = chosen(affinity + w.bias, w.top_k)
        gates = np.take_along_axis(affinity, ids, axis=1)
        gates *= w.routed_scaling_factor / gates.sum(axis=1, keepdims=True)
        int8_x, scale = quantize_tokens(x)
        x_q = int8_x.astype(np.float32)
        y = x + self._ffn(w.num_experts, x_q, scale)
        for expert, rows, slots in buckets(ids):
            ffn = self._ffn(expert, x_q[rows], scale[rows])
            y[rows] += gates[rows, slots, None] * ffn
        return y

    def _ffn(self, expert: int, x_q: F32, scale: F32) -> F32:
        products = (x_q @ self._gate_up[expert].T) * (scale[:, None] * self._gate_up_scale[expert])
        d_ff = self._w.d_ff
        gate, up = products[:, :d_ff], products[:, d_ff:]
        h = gate / (1 + np.exp(-gate)) * up
        largest = np.maximum(np.abs(h).max(axis=1, keepdims=True), SMALLEST)
        h_q = np.rint(h * (np.float32(127) / largest))
        out: F32 = (h_q @ self._down[expert].T) * (
            largest / np.float32(127) * self._down_scale[expert]
        )
        return out


def chosen(scores: F32, top_k: int) -> npt.NDArray[np.intp]:
    """(N, K): the experts with the largest scores, in any order."""
    experts = scores.shape[1]
    if top_k == experts:
        return np.broadcast_to(np.arange(experts), scores.shape).copy()
    found: npt.NDArray[np.intp] = np.argpartition(scores, experts - top_k, axis=1)[:, -top_k:]
    return found


def buckets(
    ids: npt.NDArray[np.integer],
) -> list[tuple[int, npt.NDArray[np.intp], npt.NDArray[np.intp]]]:
    """Per expert that is needed: its number, its tokens, and which of their choices it is."""
    flat = ids.ravel()
    order = np.argsort(flat, kind="stable")
    experts, starts = np.unique(flat[order], return_index=True)
    top_k = ids.shape[1]
    return [
        (int(expert), places // top_k, places % top_k)
        for expert, places in zip(experts, np.split(order, starts[1:]), strict=True)
    ]
