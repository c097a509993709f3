"""One token through its experts, and the variant that shares whole tokens among threads.

Integers are exact: int16 x int8 products summed in int32, a form that LLVM turns into vpmaddwd and
its like. The bodies of parallel loops are calls: numba drops stores through the fields of a named
tuple when they stand in the loop itself.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from moe_prof.kernels.jit.compile import entry, inner
from moe_prof.kernels.jit.routing import F32, I8, I16, Layer, Scratch, route

SMALLEST_BITS = np.int32((127 - 100) << 23)
"""The f32 2^-100 as an integer: a row without a larger magnitude is quantized to zeros."""
ROUNDER = np.float32(1.5 * 2**23)
"""Added and taken away again, it rounds an f32 below 2^22 to an integer, half to even."""


@entry
def repeat_tokens(iterations: int, x: F32, y: F32, layer: Layer, scratch: Scratch) -> None:
    """y = layer(x), ``iterations`` times, in slices that fit the workspace. x, y: (N, D)."""
    for _ in range(iterations):
        for low in range(0, x.shape[0], scratch.ids.shape[0]):
            high = min(x.shape[0], low + scratch.ids.shape[0])
            x_part, y_part = x[low:high], y[low:high]
            for slot in numba.prange(scratch.z.shape[0]):
                signed: Any = np.int64(slot)  # unsigned and signed integers would mix to f64
                forward_share(signed, x_part, y_part, layer, scratch)


@inner
def forward_share(slot: int, x: F32, y: F32, layer: Layer, scratch: Scratch) -> None:
    """The tokens of one slot."""
    shared = layer.bias.shape[0]
    low, high = share(slot, scratch.z.shape[0], x.shape[0])
    for n in range(low, high):
        route(x[n], n, slot, layer, scratch)
        x_scale = quantize(x[n], scratch.x_q[slot])
        start_output(x[n], y[n], layer.has_residual)
        if layer.gate.shape[0] > shared:
            ffn(shared, x_scale, slot, layer, scratch)
            add(scratch.out[slot], y[n])
        for k in range(layer.top_k):
            ffn(scratch.ids[n, k], x_scale, slot, layer, scratch)
            add_gated(scratch.gates[n, k], scratch.out[slot], y[n])


@inner
def share(slot: int, slots: int, count: int) -> tuple[int, int]:
    """First and one past the last of ``count`` items that belong to a slot."""
    return count * slot // slots, count * (slot + 1) // slots


@inner
def ffn(expert: int, x_scale: np.float32, slot: int, layer: Layer, scratch: Scratch) -> None:
    """One expert on the token quantized in scratch.x_q[slot], into scratch.out[slot]."""
    x_q, h, h_q, out = scratch.x_q[slot], scratch.h[slot], scratch.h_q[slot], scratch.out[slot]
    for f in range(h.shape[0]):
        gate = dot(x_q, layer.gate[expert, f]) * (x_scale * layer.gate_scale[expert, f])
        up = dot(x_q, layer.up[expert, f]) * (x_scale * layer.up_scale[expert, f])
        h[f] = silu_times(gate, up)
    h_scale = quantize(h, h_q)
    for d in range(out.shape[0]):
        out[d] = dot(h_q, layer.down[expert, d]) * (h_scale * layer.down_scale[expert, d])


@inner
def quantize(row: F32, row_q: I16) -> np.float32:
    """row: (n,) f32 to integers -127..127 in row_q; returns the scale.

    The magnitudes are compared as integers: the bits of non-negative floats have their order, and
    an integer maximum vectorizes.
    """
    bits = row.view(np.int32)
    largest_bits = np.int32(0)
    for i in range(bits.shape[0]):
        largest_bits = max(largest_bits, np.int32(bits[i] & np.int32(0x7FFFFFFF)))
    if largest_bits < SMALLEST_BITS:
        for i in range(row_q.shape[0]):
            row_q[i] = np.int16(0)
        return np.float32(0.0)
    largest = np.int32(largest_bits).view(np.float32)
    inverse = np.float32(127.0) / largest
    for i in range(row.shape[0]):
        row_q[i] = np.int16((row[i] * inverse + ROUNDER) - ROUNDER)
    return largest / np.float32(127.0)


@inner
def dot(row: I16, weights: I8) -> np.float32:
    """Exact integer product of two (n,) rows."""
    total = np.int32(0)
    for i in range(weights.shape[0]):
        total = np.int32(total + np.int32(np.int32(row[i]) * np.int32(weights[i])))
    return np.float32(total)


@inner
def silu_times(gate: np.float32, up: np.float32) -> np.float32:
    """SiLU(gate) * up."""
    return (gate / (np.float32(1.0) + math.exp(-gate))) * up


@inner
def start_output(x: F32, y: F32, has_residual: bool) -> None:
    """y starts from x, or from zeros. x, y: (D,)."""
    for d in range(y.shape[0]):
        y[d] = x[d] if has_residual else np.float32(0.0)


@inner
def add(term: F32, y: F32) -> None:
    """y += term. Both (D,)."""
    for d in range(y.shape[0]):
        y[d] += term[d]


@inner
def add_gated(gate: np.float32, term: F32, y: F32) -> None:
    """y += gate * term. Both (D,)."""
    for d in range(y.shape[0]):
        y[d] += gate * term[d]
