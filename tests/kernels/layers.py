"""Small layers for kernel tests: seeded, adversarial, and the layer restated in plain loops."""

import dataclasses
import math
import struct

import numpy as np

from moe_prof.kernels.inputs import random_tokens, random_weights
from moe_prof.kernels.weights import Weights
from moe_prof.scenario import Scenario


def f32(value):
    """Round a Python float to the nearest f32."""
    return struct.unpack("f", struct.pack("f", value))[0]


def layer(n=5, d=33, h=31, e=9, k=3, *, seed=0, **changes):
    """Seeded weights and tokens of one shape; ``changes`` replace fields of the weights."""
    scenario = Scenario(n, d, h, e, k)
    weights = random_weights(scenario, seed)
    return with_changes(weights, **changes), random_tokens(scenario, seed)


def with_changes(weights, **changes):
    """The weights with some fields replaced; the shared expert is dropped with ``has_shared``."""
    if changes.get("has_shared") is False and weights.has_shared:
        for name in ("gate", "up", "down", "gate_scale", "up_scale", "down_scale"):
            changes.setdefault(name, getattr(weights, name)[:-1])
    return dataclasses.replace(weights, **changes)


def plain_forward(w: Weights, x):
    """The layer, one value at a time in Python floats; returns y and, per token, (ids, gates)."""
    outputs, choices = [], []
    for token in x.tolist():
        ids, gates = plain_routing(w, token)
        y = list(token) if w.has_residual else [0.0] * len(token)
        terms = [(w.num_experts, 1.0)] if w.has_shared else []
        for expert, gate in [*terms, *zip(ids, gates, strict=True)]:
            ffn = plain_ffn(w, expert, token)
            y = [total + gate * value for total, value in zip(y, ffn, strict=True)]
        outputs.append(y)
        choices.append((ids, gates))
    return outputs, choices


def plain_routing(w: Weights, token):
    """The chosen experts of one token, best first, and their gates."""
    z = [dot(row, token) for row in w.router.tolist()]
    if w.score == "sigmoid":
        a = [1 / (1 + math.exp(-v)) if v > -700 else 0.0 for v in z]
    else:
        total = sum(math.exp(v - max(z)) for v in z)
        a = [math.exp(v - max(z)) / total for v in z]
    score = [affinity + bias for affinity, bias in zip(a, w.bias.tolist(), strict=True)]
    size = w.num_experts // w.n_group
    groups = [range(g * size, (g + 1) * size) for g in range(w.n_group)]
    rank = [sum(sorted((score[e] for e in group), reverse=True)[:2]) for group in groups]
    kept = sorted(range(w.n_group), key=lambda g: (-rank[g], g))[: w.topk_group]
    allowed = [e for g in kept for e in groups[g]]
    ids = sorted(allowed, key=lambda e: (-score[e], e))[: w.top_k]
    total = sum(a[e] for e in ids) if w.normalize_gates else 1.0
    return ids, [a[e] / total * w.routed_scaling_factor for e in ids]


def plain_ffn(w: Weights, expert, token):
    """One expert's output for one token."""
    q, scale = plain_quantize(token, f32)
    gate = plain_matvec(w.gate[expert], q, scale, w.gate_scale_per_channel[expert])
    up = plain_matvec(w.up[expert], q, scale, w.up_scale_per_channel[expert])
    h = [g / (1 + math.exp(-g)) * u for g, u in zip(gate, up, strict=True)]
    q, scale = plain_quantize(h, float)
    return plain_matvec(w.down[expert], q, scale, w.down_scale_per_channel[expert])


def plain_quantize(row, rounded):
    """int8 values and the scale of one row; ``rounded`` rounds each step to the precision meant."""
    largest = max(abs(v) for v in row)
    if largest < 2.0**-100:
        return [0] * len(row), 0.0
    inverse = rounded(127 / largest)
    return [round(rounded(v * inverse)) for v in row], rounded(largest / 127)


def plain_matvec(matrix, row, scale, channel_scales):
    """Integer dot products, dequantized."""
    pairs = zip(matrix.tolist(), channel_scales.tolist(), strict=True)
    return [dot(weights, row) * (scale * channel) for weights, channel in pairs]


def dot(left, right):
    """A dot product, summed from the first element on."""
    total = 0
    for a, b in zip(left, right, strict=True):
        total += a * b
    return total


def twins(w: Weights, first, second):
    """The weights with expert ``second`` routed exactly as ``first``."""
    router, bias = w.router.copy(), w.bias.copy()
    router[second], bias[second] = router[first], bias[first]
    return with_changes(w, router=router, bias=bias)


def filled(w: Weights, value):
    """The weights with every int8 weight set to ``value``, a scalar or what broadcasts."""
    return with_changes(
        w,
        gate=np.broadcast_to(np.int8(value), w.gate.shape).copy(),
        up=np.broadcast_to(np.int8(value), w.up.shape).copy(),
        down=np.broadcast_to(np.int8(value), w.down.shape).copy(),
    )
