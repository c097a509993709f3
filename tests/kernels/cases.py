"""Layers that a kernel gets wrong first: a name for each, and a function that makes it.

A case is (weights, tokens). ``case(name)`` adds what the oracle says of it, computed once.
"""

import functools
from typing import NamedTuple

import numpy as np

from moe_prof.kernels.oracle import Routing, reference, routing
from moe_prof.kernels.weights import Weights
from tests.kernels.layers import filled, layer, twins, with_changes

ODD_SIZES = (1, 9, 31, 33, 96, 100)


class Case(NamedTuple):
    """One layer and what is expected of it."""

    w: Weights
    x: np.ndarray
    y: np.ndarray
    routing: Routing


def shapes():
    """Every pair of odd sizes in every two of N, D and H."""
    size = len(ODD_SIZES)
    for i in range(size):
        for j in range(size):
            n, d, h = ODD_SIZES[i], ODD_SIZES[j], ODD_SIZES[(i + j) % size]
            yield f"shape {n},{d},{h}", functools.partial(layer, n, d, h, seed=i * size + j)


def experts():
    """Numbers of experts around powers of two, one expert, all chosen, most of them empty."""
    for n, e, k in ((3, 1, 1), (5, 2, 2), (4, 257, 2), (3, 257, 257), (2, 64, 63), (100, 3, 1)):
        yield f"experts {n} tokens {e},{k}", functools.partial(layer, n, 31, 9, e, k)
    yield "empty experts", functools.partial(layer, 1, 33, 31, 128, 2)
    yield "no tokens", functools.partial(layer, 0)
    yield "long rows of x", functools.partial(layer, 3, 4099, 9, 4, 2)
    yield "long rows of h", functools.partial(layer, 3, 9, 4099, 4, 2)


def one_hot(at=4):
    """Every token chooses the same expert first."""
    w, x = layer(33, 33, 31, 9, 1)
    bias = np.zeros(9, np.float32)
    bias[at] = 10.0
    return with_changes(w, bias=bias), x


def with_tokens(change, **changes):
    """A layer whose tokens are changed by a function of (tokens, random generator)."""
    w, x = layer(9, 100, 33, 9, 3, **changes)
    changed = np.broadcast_to(change(x, np.random.default_rng(7)), x.shape)
    return w, np.ascontiguousarray(changed, dtype=np.float32)


def tokens():
    """Rows of zeros, denormals, outliers, sizes at the edge of f32, and mixtures."""
    changes = {
        "zeros": lambda x, rng: x * 0,
        "negative zeros": lambda x, rng: x * np.float32(-0.0),
        "a row of zeros": lambda x, rng: x * (np.arange(9)[:, None] != 4),
        "denormals": lambda x, rng: x * np.float32(1e-40),
        "one denormal": lambda x, rng: np.where(np.arange(100) == 17, np.float32(1e-44), 0),
        "just below the limit": lambda x, rng: np.sign(x) * np.float32(2.0**-101),
        "just at the limit": lambda x, rng: np.sign(x) * np.float32(2.0**-100),
        "outliers": lambda x, rng: x * np.where(rng.random(x.shape) < 0.02, 1000, 1),
        "one outlier": lambda x, rng: x * np.where(np.arange(100) == 99, 1000, 1),
        "one non-zero": lambda x, rng: np.where(np.arange(100) == 99, x, 0),
        "huge": lambda x, rng: x * np.float32(1e12),
        "tiny": lambda x, rng: x * np.float32(1e-20),
        "sizes of all kinds": lambda x, rng: x * 10.0 ** np.arange(-24, 12, 4)[:, None],
        "halves": lambda x, rng: np.where(np.arange(100) == 0, 127, rng.integers(-99, 99) + 0.5),
    }
    for name, change in changes.items():
        yield f"tokens {name}", functools.partial(with_tokens, change)


def extreme_weights(pattern, signs):
    """Weights at the ends of int8 in a repeating pattern; tokens of one size with signs in one."""
    w, x = layer(5, 100, 96, 5, 2)
    gate = np.resize(np.array(pattern, np.int8), 100)
    down = np.resize(np.array(pattern, np.int8), 96)
    w = with_changes(
        filled(w, 0), gate=gate + 0 * w.gate, up=gate + 0 * w.up, down=down + 0 * w.down
    )
    return w, np.ascontiguousarray(
        np.resize(np.array(signs, np.float32), 100) * np.abs(x[:, :1]) * np.float32(0.01)
    )


def weights():
    """Products and sums at the ends of int8, int16 and of saturating instructions."""
    patterns = {
        "-128": (-128,),
        "127": (127,),
        "-128 127": (-128, 127),
        "127 -127": (127, -127),
        "-128 -128 127 127": (-128, -128, 127, 127),
        "0 -128": (0, -128),
    }
    for name, pattern in patterns.items():
        for sign, signs in {"+": (1,), "-": (-1,), "+-": (1, -1), "++--": (1, 1, -1, -1)}.items():
            yield f"weights {name} x {sign}", functools.partial(extreme_weights, pattern, signs)


def scales_per_channel():
    """A scale for each output channel, of both signs, some of them zero."""
    w, x = layer(9, 33, 31, 9, 3)
    rng = np.random.default_rng(3)

    def draw(channels):
        values = rng.uniform(-0.02, 0.02, (10, channels)) * (rng.random((10, channels)) > 0.1)
        return values.astype(np.float32)

    return with_changes(w, gate_scale=draw(31), up_scale=draw(31), down_scale=draw(33)), x


def scaled(size):
    """Activations of another size: gate and up multiplied by it."""
    w, x = layer(9, 33, 31, 9, 3)
    factor = np.float32(size)
    return with_changes(w, gate_scale=w.gate_scale * factor, up_scale=w.up_scale * factor), x


def scales():
    """Scales per channel; activations so large that exp overflows, so small that h vanishes."""
    yield "scales per channel", scales_per_channel
    for size in (1e4, 1e-3, 1e-12, 1e-18):
        yield f"activations x {size:g}", functools.partial(scaled, size)


def ties():
    """Equal scores, and scores that f32 sums can't tell apart."""

    def duplicated():
        w, x = layer(33, 33, 9, 9, 3)
        return twins(twins(twins(w, 7, 2), 7, 5), 0, 8), x

    def all_equal():
        w, x = layer(9, 31, 9, 33, 5)
        router = np.repeat(w.router[:1], 33, axis=0)
        return with_changes(w, router=router, bias=np.zeros(33, np.float32)), x

    def near(ulps):
        w, x = layer(64, 96, 9, 16, 3, seed=2)
        rng = np.random.default_rng(ulps)
        router = w.router[rng.integers(0, 4, 16)]
        router = router * (1 + rng.integers(-ulps, ulps + 1, router.shape) * 1e-7)
        return with_changes(w, router=router.astype(np.float32), bias=np.zeros(16, np.float32)), x

    def near_bias():
        w, x = layer(33, 33, 9, 16, 3)
        router = np.repeat(w.router[:1], 16, axis=0)
        bias = np.float32(0.5) + np.arange(16) % 5 * np.float32(2.0**-24)
        return with_changes(w, router=router, bias=bias.astype(np.float32)), x

    def saturated():
        w, x = layer(33, 33, 9, 16, 3)
        return with_changes(w, router=w.router * np.float32(1e3), bias=w.bias * 0), x

    yield "ties of three pairs", duplicated
    yield "ties of all experts", all_equal
    yield "near ties 1e-7", functools.partial(near, 1)
    yield "near ties 1e-6", functools.partial(near, 10)
    yield "near ties by bias", near_bias
    yield "ties of saturated sigmoids", saturated


def with_router(size, shift, **changes):
    """Router outputs of another size, all moved by ``shift`` through the first channel."""
    w, x = layer(9, 33, 31, 9, 3, **changes)
    router, x = w.router * np.float32(size), x.copy()
    router[:, 0], x[:, 0] = shift, 1.0
    return with_changes(w, router=router), x


def routers():
    """Router outputs so large, so small or so negative that f32 affinities fail."""
    sizes = ((1e3, 0), (1e-30, 0), (1e36, 0), (1, -60), (1, -90), (1, 90))
    for score in ("sigmoid", "softmax"):
        for size, shift in sizes:
            for normalize in (True, False):
                changes = {"score": score, "normalize_gates": normalize}
                make = functools.partial(with_router, size, shift, **changes)
                raw = "" if normalize else " raw gates"
                yield f"router {size:g} {shift:+g} {score}{raw}", make
    yield "router hopeless sigmoids", functools.partial(with_router, 1, -1e4)


def options():
    """Every option of the layer, alone and together."""
    changes = {
        "softmax": {"score": "softmax"},
        "groups": {"n_group": 4, "topk_group": 2},
        "all groups kept": {"n_group": 4, "topk_group": 4},
        "groups of one": {"n_group": 16, "topk_group": 5},
        "softmax groups": {"score": "softmax", "n_group": 4, "topk_group": 1},
        "factor": {"routed_scaling_factor": 2.5},
        "no shared": {"has_shared": False},
        "no residual": {"has_residual": False},
        "raw gates": {"normalize_gates": False},
        "raw softmax gates": {"score": "softmax", "normalize_gates": False, "has_residual": False},
        "all": {
            "score": "softmax",
            "n_group": 8,
            "topk_group": 3,
            "routed_scaling_factor": 16.0,
            "has_shared": False,
            "has_residual": False,
        },
    }
    for name, change in changes.items():
        yield f"option {name}", functools.partial(layer, 33, 33, 31, 16, 3, **change)

    def group_ties():
        w, x = layer(33, 33, 9, 16, 3, n_group=4, topk_group=2)
        router, bias = np.tile(w.router[:4], (4, 1)), np.tile(w.bias[:4], 4)
        return with_changes(w, router=router, bias=bias), x

    yield "option ties of groups", group_ties


def channel_scales(n, d, h, e, k, **changes):
    """A layer with a scale for each output channel, as quantized models have, and its options."""
    w, x = layer(n, d, h, e, k, **changes)
    rng = np.random.default_rng(d + e)

    def spread(scales, width):
        return np.float32(scales[:, None] * rng.uniform(0.5, 1.5, (w.num_stored, width)))

    return with_changes(
        w,
        gate_scale=spread(w.gate_scale, h),
        up_scale=spread(w.up_scale, h),
        down_scale=spread(w.down_scale, d),
    ), x


def models():
    """Routing, widths and scales of published models, with the other sizes small."""
    plain = {"score": "softmax", "has_shared": False, "has_residual": False}
    grouped = {
        "n_group": 8, "topk_group": 4, "routed_scaling_factor": 2.5, "has_residual": False,
    }  # fmt: skip
    shapes = {
        "deepseek-v3, width 7168": ((2, 7168, 8, 32, 8), grouped),
        "deepseek-v3, 256 experts": ((5, 64, 24, 256, 8), grouped),
        "qwen3-30b-a3b": ((5, 2048, 12, 128, 8), plain),
        "mixtral-8x7b, width 4096": ((3, 4096, 14, 8, 2), plain),
        "mixtral-8x7b, inner width 14336": ((2, 40, 14336, 8, 2), plain),
        "olmoe": ((5, 256, 64, 64, 8), {**plain, "normalize_gates": False}),
        "512 experts, 12 a token": ((5, 96, 16, 512, 12), grouped),
        "512 experts, 12 a token, softmax": ((5, 96, 16, 512, 12), {**grouped, **plain}),
    }
    for name, (sizes, changes) in shapes.items():
        yield f"model {name}", functools.partial(channel_scales, *sizes, **changes)


MAKERS = {
    name: make
    for family in (shapes, experts, tokens, weights, scales, ties, routers, options, models)
    for name, make in family()
} | {"one hot expert": one_hot}


@functools.cache
def case(name):
    """The case of that name with the oracle's answer."""
    w, x = MAKERS[name]()
    return Case(w, x, reference(w, x), routing(w, x))
