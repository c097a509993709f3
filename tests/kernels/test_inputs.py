"""The seeded generator: literal golden values, an element-by-element restatement, memory check."""

import math
import struct

import numpy as np
import pytest

from moe_prof.errors import UsageError
from moe_prof.kernels import inputs, memory
from moe_prof.kernels.inputs import hash_bits, random_tokens, random_weights
from moe_prof.kernels.oracle import routing
from moe_prof.scenario import SCENARIOS, Scenario

SMALL = Scenario(3, 7, 5, 4, 2)
MASK = (1 << 64) - 1

GOLDEN_BITS_SEED_0 = ["0x1df5df97578d90c0", "0xbb0e8eb991d7d0f7"]
GOLDEN_BITS_SEED_MAX = ["0x615d319c740a0cd0"]
GOLDEN_ROUTER = ["-0x1.11d98e0000000p-6", "0x1.c3f2400000000p-4"]
GOLDEN_GATE = [-71, -100, -7, 98, 108, -113, -68, 96]
GOLDEN_GATE_SCALE = ["0x1.012a600000000p-8", "0x1.87d7ba0000000p-8"]
GOLDEN_TOKENS = ["0x1.b03a540000000p+1", "-0x1.4dda500000000p-2"]


def f32(value):
    """Round a Python float to the nearest f32."""
    return struct.unpack("f", struct.pack("f", value))[0]


def mix(z):
    """The generator's finalizer, restated with Python integers."""
    z ^= z >> 30
    z = z * 0xBF58476D1CE4E5B9 & MASK
    z ^= z >> 27
    z = z * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def bits(seed, stream, index):
    """Element ``index`` of a stream, restated with Python integers."""
    gold = 0x9E3779B97F4A7C15
    start = mix((seed * gold + stream * 0xD1B54A32D192ED03) & MASK)
    return mix((start + (index + 1) * gold) & MASK)


def normal(seed, stream, index, scale):
    """One value of a normal stream: two exact integers' product, rounded once."""
    u = bits(seed, stream, index)
    total = sum(u >> shift & 0xFFFF for shift in (0, 16, 32, 48)) - 131070
    return f32(total * f32(scale * math.sqrt(3) / 65536))


def unit(seed, stream, index):
    """One value of a uniform stream."""
    return (bits(seed, stream, index) >> 40) / 2**24


def test_hash_bits_golden_values():
    """The hash has the documented values, so that another language can check itself by them."""
    assert [hex(v) for v in hash_bits(0, 1, 0, 2).tolist()] == GOLDEN_BITS_SEED_0
    assert [hex(v) for v in hash_bits(2**64 - 1, 9, 5, 1).tolist()] == GOLDEN_BITS_SEED_MAX


def test_hash_bits_equal_the_scalar_definition():
    """Vectorized hashing gives what the definition gives for one element at a time."""
    expected = [bits(7, 3, i) for i in range(11, 40)]
    assert hash_bits(7, 3, 11, 29).tolist() == expected


def test_router_values_are_rounded_once():
    """Every router value is the exact integer times the f32 scale, rounded to f32."""
    expected = [normal(3, 1, i, 0.25 / math.sqrt(7)) for i in range(28)]
    assert random_weights(SMALL, 3).router.ravel().tolist() == expected


def test_int8_weights_are_the_bytes_of_the_hash():
    """Byte j of a weight array is byte j % 8 of word j / 8, as two's complement."""
    expected = [(bits(0, 5, j // 8) >> 8 * (j % 8) & 0xFF) for j in range(5 * 7 * 5)]
    down = random_weights(SMALL).down
    assert down.shape == (5, 7, 5)
    assert down.view(np.uint8).ravel().tolist() == expected


def test_bias_and_scales_follow_the_definition():
    """Bias and scales are computed in f32, one rounding a step."""
    w = random_weights(SMALL, 9)
    bias = [f32(f32(unit(9, 2, i) - 0.5) * f32(0.02)) for i in range(4)]
    base = f32(1 / (73.9 * math.sqrt(5)))
    scale = [f32(base * f32(0.75 + f32(0.5 * unit(9, 8, i)))) for i in range(5)]
    assert w.bias.tolist() == bias
    assert w.down_scale.tolist() == scale


def test_tokens_follow_the_definition():
    """A token value is normal, times its row's power of two, times 8 for an outlier."""
    s = Scenario(40, 33, 4, 2, 1)
    expected = [
        normal(1, 9, i, 1.0)
        * 2.0 ** (bits(1, 10, i // 33) % 5 - 2)
        * (8.0 if bits(1, 11, i) % 256 == 0 else 1.0)
        for i in range(40 * 33)
    ]
    assert random_tokens(s, 1).ravel().tolist() == expected


def test_golden_values_of_small_inputs():
    """A few literal values, so that a change of the generator can't go unnoticed."""
    w, x = random_weights(SMALL), random_tokens(SMALL)
    assert [v.hex() for v in w.router[0, :2].tolist()] == GOLDEN_ROUTER
    assert w.gate.ravel()[:8].tolist() == GOLDEN_GATE
    assert [v.hex() for v in w.gate_scale[:2].tolist()] == GOLDEN_GATE_SCALE
    assert [v.hex() for v in x[0, :2].tolist()] == GOLDEN_TOKENS


def test_chunks_do_not_show(monkeypatch):
    """The values do not depend on how many are hashed at a time."""
    s = Scenario(9, 31, 33, 3, 1)
    weights, tokens = random_weights(s, 5), random_tokens(s, 5)
    monkeypatch.setattr(inputs, "CHUNK", 13)
    assert random_weights(s, 5).up.tolist() == weights.up.tolist()
    assert random_weights(s, 5).router.tolist() == weights.router.tolist()
    assert random_tokens(s, 5).tolist() == tokens.tolist()


def test_seeds_differ():
    """Another seed gives other weights and tokens."""
    assert random_weights(SMALL, 0).gate.tolist() != random_weights(SMALL, 1).gate.tolist()
    assert random_tokens(SMALL, 0).tolist() != random_tokens(SMALL, 1).tolist()


def test_weights_use_the_whole_int8_range():
    """-128 and 127 both occur."""
    gate = random_weights(SCENARIOS["S1"]).gate
    assert (int(gate.min()), int(gate.max())) == (-128, 127)


def test_no_tokens():
    """N = 0 is an array without rows."""
    assert random_tokens(Scenario(0, 7, 5, 4, 2)).shape == (0, 7)


@pytest.mark.parametrize("seed", [-1, 2**64, 1.0, True, "0"])
def test_bad_seed(seed):
    """A seed that is no unsigned 64-bit integer is a usage error."""
    with pytest.raises(UsageError, match="seed"):
        random_weights(SMALL, seed)


def test_too_large_a_scenario_says_how_much_memory_is_needed():
    """Sizes that memory can't hold are refused before anything is allocated."""
    huge = Scenario(1, 1 << 17, 1 << 17, 1024, 1)
    needed = f"{memory.required_bytes(huge) / 2**30:.1f} GiB"
    with pytest.raises(UsageError, match=f"131072,1024,1 needs {needed} of memory, .* GiB are av"):
        random_weights(huge)


def test_too_many_tokens_are_refused(monkeypatch):
    """Tokens are checked against the memory available as well."""
    monkeypatch.setattr(memory, "available_bytes", lambda: 4 * 3 * 7 - 1)
    with pytest.raises(UsageError, match=r"tokens of scenario 3,7,5,4,2 needs 0\.0 GiB"):
        random_tokens(SMALL)


def test_weight_bytes_are_what_is_allocated():
    """The size computed from the shape is the size of the arrays."""
    assert memory.weight_bytes(SMALL) == random_weights(SMALL).nbytes


def test_available_memory_is_the_least_limit(monkeypatch):
    """The tightest of machine and control groups decides."""
    monkeypatch.setattr(memory, "memory_left_bytes", lambda tree: 12345)
    assert memory.available_bytes() == 12345


def test_tokens_spread_over_the_experts():
    """S4's 2048 choices reach nearly all 512 experts; uniform routing would reach 503."""
    s = SCENARIOS["S4"]
    ids = routing(random_weights(s), random_tokens(s)).ids
    assert len(np.unique(ids)) > 480
