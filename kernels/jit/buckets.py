"""All tokens at once: routed, gathered into one bucket per expert, multiplied, scattered back.

A bucket is a run of rows, one row for each (token, expert) pair, so that the weights of an expert
are read once for all its tokens. The threads cut the output channels of all buckets into equal
shares of work, which balances whatever the sizes of the buckets, down to a single token.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from moe_prof.kernels.jit.compile import entry, inner
from moe_prof.kernels.jit.routing import F32, I16, I64, Layer, Scratch, route
from moe_prof.kernels.jit.tokens import (
    add,
    add_gated,
    dot,
    quantize,
    share,
    silu_times,
    start_output,
)

CHANNELS = 16
"""Output channels handed to a slot at a time: a cache line of f32 values."""
ROUTE, GATHER, GATE_UP, QUANTIZE, DOWN, COMBINE = range(6)
"""The parallel stages, in their order; positions are filled before the second."""
ROWS = 32
"""Rows multiplied by one weight row in a go: few enough to stay in the L1 cache at D = 512."""


class Buckets(NamedTuple):
    """R = M * (K + S) rows for M tokens, K routed experts each, S = 1 with a shared one else 0."""

    first: I64  # (E + S + 1): where each expert's rows start, and the number of rows
    cursor: I64  # (E + S)
    position: I64  # (M, K + S): the row of each token's k-th expert, the shared one last
    x_q: I16  # (R, D)
    x_scale: F32  # (R,)
    h: F32  # (R, H)
    h_q: I16  # (R, H)
    h_scale: F32  # (R,)
    out: F32  # (R, D)


Plan = tuple[Layer, Scratch, Buckets]


@entry
def repeat_buckets(  # noqa: PLR0917 - a parallel loop takes no nested tuples
    iterations: int, x: F32, y: F32, layer: Layer, scratch: Scratch, buckets: Buckets
) -> None:
    """y = layer(x), ``iterations`` times, in slices that fit the workspace. x, y: (N, D).

    The stages share one parallel loop, because each such loop costs seconds of compilation.
    """
    for _ in range(iterations):
        for low in range(0, x.shape[0], scratch.ids.shape[0]):
            high = min(x.shape[0], low + scratch.ids.shape[0])
            x_part, y_part = x[low:high], y[low:high]
            for stage in range(COMBINE + 1):
                if stage == GATHER:
                    fill_positions(high - low, layer, scratch, buckets)
                for slot in numba.prange(scratch.z.shape[0]):
                    plan = (layer, scratch, buckets)
                    signed: Any = np.int64(slot)  # unsigned and signed integers would mix to f64
                    run_share(stage, signed, x_part, y_part, plan)


@inner
def run_share(stage: int, slot: int, x: F32, y: F32, plan: Plan) -> None:
    """A slot's share of a stage. x, y: (M, D)."""
    layer, scratch, buckets = plan
    slots = scratch.z.shape[0]
    if stage == ROUTE:
        route_share(slot, x, layer, scratch)
    elif stage == GATHER:
        gather_share(slot, x, scratch, buckets)
    elif stage == GATE_UP:
        gate_up_share(slot, slots, layer, buckets)
    elif stage == QUANTIZE:
        quantize_share(slot, slots, buckets)
    elif stage == DOWN:
        down_share(slot, slots, layer, buckets)
    else:
        combine_share(slot, x, y, plan)


@inner
def route_share(slot: int, x: F32, layer: Layer, scratch: Scratch) -> None:
    """Chosen experts and gates of a slot's tokens. x: (M, D)."""
    low, high = share(slot, scratch.z.shape[0], x.shape[0])
    for n in range(low, high):
        route(x[n], n, slot, layer, scratch)


@inner
def fill_positions(tokens: int, layer: Layer, scratch: Scratch, buckets: Buckets) -> None:
    """Count tokens per expert, sum up where each bucket starts, and give every pair its row."""
    first, cursor, position = buckets.first, buckets.cursor, buckets.position
    routed, stored = layer.bias.shape[0], cursor.shape[0]
    for e in range(stored):
        cursor[e] = 0
    for n in range(tokens):
        for k in range(layer.top_k):
            cursor[scratch.ids[n, k]] += 1
    if stored > routed:
        cursor[routed] = tokens
    first[0] = 0
    for e in range(stored):
        first[e + 1] = first[e] + cursor[e]
        cursor[e] = first[e]
    for n in range(tokens):
        for k in range(position.shape[1]):
            expert = scratch.ids[n, k] if k < layer.top_k else routed
            position[n, k] = cursor[expert]
            cursor[expert] += 1


@inner
def gather_share(slot: int, x: F32, scratch: Scratch, buckets: Buckets) -> None:
    """Quantize a slot's tokens, once each, and copy them into the rows of their experts."""
    low, high = share(slot, scratch.z.shape[0], x.shape[0])
    for n in range(low, high):
        scale = quantize(x[n], scratch.x_q[slot])
        for k in range(buckets.position.shape[1]):
            row = buckets.position[n, k]
            buckets.x_scale[row] = scale
            for d in range(x.shape[1]):
                buckets.x_q[row, d] = scratch.x_q[slot, d]


@inner
def gate_up_share(slot: int, slots: int, layer: Layer, buckets: Buckets) -> None:
    """h = SiLU(gate) * up, a slot's channels of all rows."""
    for e in range(buckets.cursor.shape[0]):
        begin, end = channel_share(slot, slots, e, buckets.first, buckets.h.shape[1])
        if begin == end:
            continue
        last = buckets.first[e + 1]
        for start in range(buckets.first[e], last, ROWS):
            for f in range(begin, end):
                for row in range(start, min(start + ROWS, last)):
                    x_q, scale = buckets.x_q[row], buckets.x_scale[row]
                    gate = dot(x_q, layer.gate[e, f]) * (scale * layer.gate_scale[e, f])
                    up = dot(x_q, layer.up[e, f]) * (scale * layer.up_scale[e, f])
                    buckets.h[row, f] = silu_times(gate, up)


@inner
def quantize_share(slot: int, slots: int, buckets: Buckets) -> None:
    """A slot's rows of h to integers."""
    low, high = share(slot, slots, buckets.first[-1])
    for row in range(low, high):
        buckets.h_scale[row] = quantize(buckets.h[row], buckets.h_q[row])


@inner
def down_share(slot: int, slots: int, layer: Layer, buckets: Buckets) -> None:
    """The experts' outputs, a slot's channels of all rows."""
    for e in range(buckets.cursor.shape[0]):
        begin, end = channel_share(slot, slots, e, buckets.first, buckets.out.shape[1])
        if begin == end:
            continue
        last = buckets.first[e + 1]
        for start in range(buckets.first[e], last, ROWS):
            for d in range(begin, end):
                for row in range(start, min(start + ROWS, last)):
                    scale = buckets.h_scale[row] * layer.down_scale[e, d]
                    buckets.out[row, d] = dot(buckets.h_q[row], layer.down[e, d]) * scale


@inner
def channel_share(slot: int, slots: int, expert: int, first: I64, channels: int) -> tuple[int, int]:
    """First and one past the last output channel of an expert that belong to a slot.

    All work is laid out bucket after bucket, in a bucket block of channels after block, in a block
    row after row, and cut into equal shares; a block belongs to the slot in whose share it starts.
    """
    rows = first[expert + 1] - first[expert]
    if rows == 0:
        return 0, 0
    blocks = (channels + CHANNELS - 1) // CHANNELS
    low, high = share(slot, slots, first[-1] * blocks)
    start = first[expert] * blocks
    begin = min(blocks, (max(low, start) - start + rows - 1) // rows)
    end = min(blocks, (max(high, start) - start + rows - 1) // rows)
    return min(channels, begin * CHANNELS), min(channels, end * CHANNELS)


@inner
def combine_share(slot: int, x: F32, y: F32, plan: Plan) -> None:
    """y = residual + shared + gated sum in top-K order, for a slot's tokens. x, y: (M, D)."""
    layer, scratch, buckets = plan
    low, high = share(slot, scratch.z.shape[0], x.shape[0])
    for n in range(low, high):
        start_output(x[n], y[n], layer.has_residual)
        if buckets.position.shape[1] > layer.top_k:
            add(buckets.out[buckets.position[n, layer.top_k]], y[n])
        for k in range(layer.top_k):
            add_gated(scratch.gates[n, k], buckets.out[buckets.position[n, k]], y[n])
