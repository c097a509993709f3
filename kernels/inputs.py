"""Seeded weights and tokens: the same bits from this module and from the C++ driver.

A counter-based generator, so that any element can be computed alone and in any order: element i of
a stream is a hash of (seed, stream, i). Source of the mixing constants: the SplitMix64 finalizer
(Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).

Weights use the whole int8 range, -128 included. The scales are chosen such that gate, up and the
FFN's output are of the order of 1. Token rows differ in magnitude (a quarter to four times), and
one value in 256 is an outlier.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from moe_prof.errors import UsageError
from moe_prof.kernels.memory import check_memory, required_bytes
from moe_prof.kernels.repeated import repeated
from moe_prof.kernels.weights import F32, I8, Weights
from moe_prof.presets import Score
from moe_prof.scenario import Scenario

U64 = npt.NDArray[np.uint64]

MASK = (1 << 64) - 1
GOLD = 0x9E3779B97F4A7C15
STREAM_STEP = 0xD1B54A32D192ED03
SIGMA = 65536 / math.sqrt(3)
# Small enough that affinities do not saturate and biases only tip the balance: tokens then spread
# over nearly all experts, as a trained router makes them
ROUTER_DEVIATION = 0.25
BIAS_RANGE = 0.02
"""Standard deviation of the sum of four uniform 16-bit integers."""
MEAN = 131070
INT8_RMS = 73.9
"""Root mean square of the uniform int8 values -128..127."""
CHUNK = 1 << 15
"""Elements hashed at a time, so that the temporaries stay in the L2 cache."""


class Stream(IntEnum):
    """Which array an element belongs to."""

    ROUTER = 1
    BIAS = 2
    GATE = 3
    UP = 4
    DOWN = 5
    GATE_SCALE = 6
    UP_SCALE = 7
    DOWN_SCALE = 8
    TOKENS = 9
    ROW_MAGNITUDE = 10
    OUTLIER = 11


def random_weights(scenario: Scenario, seed: int = 0) -> Weights:
    """Weights of the scenario's shape and options, one scale a matrix.

    Softmax affinities are of the order of 1 / E, which biases of the other layers would drown, and
    models with softmax scores have none: the biases are then zeros. Of experts that share memory
    the matrices repeat, scales and router rows are each expert's own.

    Raises:
        UsageError: no Scenario, a seed that is not in 0..2^64-1, or memory would not do.
    """
    _check_request(scenario, seed)
    _, d, h, e, k = scenario.shape
    options, stored = scenario.options, scenario.stored_experts
    check_memory(f"scenario {scenario.label}", required_bytes(scenario))
    router_scale = np.float32(ROUTER_DEVIATION / (SIGMA * math.sqrt(d)))
    return Weights(
        router=_normal(seed, Stream.ROUTER, (e, d), router_scale),
        bias=_biases(seed, e, options.score),
        gate=_experts(seed, Stream.GATE, scenario, (h, d)),
        up=_experts(seed, Stream.UP, scenario, (h, d)),
        down=_experts(seed, Stream.DOWN, scenario, (d, h)),
        gate_scale=_scales(seed, Stream.GATE_SCALE, stored, d),
        up_scale=_scales(seed, Stream.UP_SCALE, stored, d),
        down_scale=_scales(seed, Stream.DOWN_SCALE, stored, h),
        top_k=k,
        **asdict(options),
    )


def random_tokens(scenario: Scenario, seed: int = 0) -> F32:
    """Tokens: (N, D) f32, C-order, normal with a magnitude per row and one outlier in 256.

    Raises:
        UsageError: no Scenario, a seed that is not in 0..2^64-1, or memory would not do.
    """
    _check_request(scenario, seed)
    n, d, _, _, _ = scenario.shape
    check_memory(f"the tokens of scenario {scenario.label}", 4 * n * d)
    x = _normal(seed, Stream.TOKENS, (n, d), np.float32(1.0 / SIGMA))
    exponents = (hash_bits(seed, Stream.ROW_MAGNITUDE, 0, n) % np.uint64(5)).astype(np.int32) - 2
    x *= np.ldexp(np.float32(1.0), exponents)[:, None]
    flat = x.reshape(-1)
    for low in range(0, flat.size, CHUNK):
        part = flat[low : low + CHUNK]
        outliers = hash_bits(seed, Stream.OUTLIER, low, part.size) % np.uint64(256) == 0
        part[outliers] *= np.float32(8.0)
    return x


def hash_bits(seed: int, stream: int, first: int, count: int) -> U64:
    """(count,) uint64: elements first, first + 1, ... of a stream."""
    start = _mix_int((seed * GOLD + stream * STREAM_STEP) & MASK)
    offset = np.uint64((start + (first + 1) * GOLD) & MASK)
    z = np.arange(count, dtype=np.uint64)
    z *= np.uint64(GOLD)
    z += offset
    return _mix(z)


def _mix(z: U64) -> U64:
    """The finalizer, in place."""
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return z


def _mix_int(z: int) -> int:
    """The finalizer for one Python int below 2^64."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def _normal(seed: int, stream: Stream, shape: tuple[int, int], scale: np.float32) -> F32:
    """f32 values, nearly normal: a sum of four uniform integers, exact, times ``scale``."""
    out = np.empty(shape, np.float32)
    flat = out.reshape(-1)
    for low in range(0, flat.size, CHUNK):
        part = flat[low : low + CHUNK]
        pieces = hash_bits(seed, stream, low, part.size).view(np.uint16).reshape(-1, 4)
        part[:] = pieces.sum(axis=1, dtype=np.int32) - MEAN
    flat *= scale
    return out


def _unit(seed: int, stream: Stream, count: int) -> F32:
    """(count,) f32, uniform in [0, 1), multiples of 2^-24."""
    values = (hash_bits(seed, stream, 0, count) >> np.uint64(40)).astype(np.float32)
    return values * np.float32(2.0**-24)


def _int8(seed: int, stream: Stream, shape: tuple[int, int, int]) -> I8:
    """int8 values, uniform: the bytes of the hash, the lowest first."""
    size = math.prod(shape)
    out = np.empty(-(-size // 8), dtype="<u8")
    for low in range(0, out.size, CHUNK):
        part = out[low : low + CHUNK]
        part[:] = hash_bits(seed, stream, low, part.size)
    return out.view(np.int8)[:size].reshape(shape)


def _biases(seed: int, count: int, score: Score) -> F32:
    if score == "softmax":
        return np.zeros(count, np.float32)
    return (_unit(seed, Stream.BIAS, count) - np.float32(0.5)) * np.float32(BIAS_RANGE)


def _experts(seed: int, stream: Stream, scenario: Scenario, matrix: tuple[int, int]) -> I8:
    stored, distinct = scenario.stored_experts, scenario.distinct_experts
    if not 0 < distinct < stored:
        return _int8(seed, stream, (stored, *matrix))
    return repeated(_int8(seed, stream, (distinct, *matrix)), stored)


def _scales(seed: int, stream: Stream, count: int, fan_in: int) -> F32:
    """(count,) f32: about 1 / (RMS of int8 * sqrt(fan_in)), within a quarter of it."""
    base = np.float32(1.0 / (INT8_RMS * math.sqrt(fan_in)))
    return base * (np.float32(0.75) + np.float32(0.5) * _unit(seed, stream, count))


def _check_request(scenario: Scenario, seed: int) -> None:
    if not isinstance(scenario, Scenario):
        raise UsageError(f"scenario: a Scenario is needed, got {type(scenario).__name__}")
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= MASK:
        raise UsageError(f"seed = {seed!r} must be a whole number in 0..2^64-1")
