"""The oracle against a restatement of the layer in plain Python loops, and its own edge cases."""

import math

import numpy as np
import pytest

from moe_prof.errors import InputError
from moe_prof.kernels import oracle
from moe_prof.kernels.oracle import Errors, errors, quantize_tokens, reference, routing
from tests.kernels.layers import layer, plain_forward, twins, with_changes

OPTIONS = {
    "default": {},
    "softmax": {"score": "softmax"},
    "groups": {"n_group": 3, "topk_group": 2},
    "softmax groups": {"score": "softmax", "n_group": 3, "topk_group": 1},
    "single groups": {"n_group": 9, "topk_group": 4},
    "scaled": {"routed_scaling_factor": 2.5},
    "no shared": {"has_shared": False},
    "no residual": {"has_residual": False},
    "raw gates": {"normalize_gates": False},
    "raw softmax gates": {"score": "softmax", "normalize_gates": False},
}


@pytest.mark.parametrize("changes", OPTIONS.values(), ids=OPTIONS)
def test_reference_equals_the_plain_loops(changes):
    """Every option gives what the same layer in plain loops gives."""
    w, x = layer(4, 13, 11, 9, 3, **changes)
    expected, _ = plain_forward(w, x)
    np.testing.assert_allclose(reference(w, x), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("changes", OPTIONS.values(), ids=OPTIONS)
def test_routing_equals_the_plain_loops(changes):
    """Every option chooses the same experts in the same order, with the same gates."""
    w, x = layer(6, 13, 11, 9, 3, seed=4, **changes)
    _, choices = plain_forward(w, x)
    ids, gates, _ = routing(w, x)
    assert ids.tolist() == [chosen for chosen, _ in choices]
    np.testing.assert_allclose(gates, [gate for _, gate in choices], rtol=1e-13)


def test_scales_per_channel():
    """Scales that differ per output channel reach their channel."""
    w, x = layer(3, 7, 5, 4, 2)
    rng = np.random.default_rng(1)
    scales = {
        "gate_scale": rng.uniform(0.001, 0.01, (5, 5)).astype(np.float32),
        "up_scale": rng.uniform(0.001, 0.01, (5, 5)).astype(np.float32),
        "down_scale": rng.uniform(0.001, 0.01, (5, 7)).astype(np.float32),
    }
    w = with_changes(w, **scales)
    np.testing.assert_allclose(reference(w, x), plain_forward(w, x)[0], rtol=1e-12)


def test_no_tokens():
    """N = 0 gives an output without rows, and a choice without rows."""
    w, x = layer(0)
    assert reference(w, x).shape == (0, 33)
    assert routing(w, x).ids.shape == (0, 3)


def test_exact_ties_choose_the_lower_index():
    """Experts with equal router rows and biases are chosen by index."""
    w, x = layer(20, e=4, k=1)
    w = twins(twins(twins(w, 0, 1), 0, 2), 0, 3)
    assert routing(w, x).ids.tolist() == [[0]] * 20


def test_ties_keep_their_bits_whatever_the_position():
    """Equal router rows give equal scores in every column and for every number of tokens."""
    w, x = layer(7, d=257, e=257, k=1)
    router = np.repeat(w.router[:1], 257, axis=0)
    scores = routing(with_changes(w, router=router, bias=np.zeros(257, np.float32)), x).scores
    assert (scores == scores[:, :1]).all()


def test_chunks_do_not_show(monkeypatch):
    """The scores do not depend on how many tokens are taken at a time."""
    w, x = layer(11)
    expected = routing(w, x).scores
    monkeypatch.setattr(oracle, "SCORES_PER_CHUNK", 18)
    assert (routing(w, x).scores == expected).all()


@pytest.mark.parametrize("size", [1e-30, 1.0, 1e4, 1e30])
@pytest.mark.parametrize("score", ["sigmoid", "softmax"])
def test_gates_stay_finite_and_sum_to_one(size, score):
    """Router outputs of any size, of either sign, give gates that sum to 1."""
    w, x = layer(6, score=score)
    w = with_changes(w, router=w.router * np.float32(size))
    gates = routing(w, x).gates
    np.testing.assert_allclose(gates.sum(axis=1), 1.0, rtol=1e-12)


def test_hopeless_affinities_still_give_gates():
    """When every affinity underflows, the gates follow the logarithms."""
    w, x = layer(1, d=2, e=3, k=2)
    router = np.array([[-1000, 0], [-1001, 0], [-2000, 0]], np.float32)
    w = with_changes(w, router=router, bias=np.zeros(3, np.float32))
    x = np.array([[1.0, 0.0]], np.float32)
    gates = routing(w, x).gates[0].tolist()
    expected = 1 / (1 + math.exp(-1))
    assert gates == pytest.approx([expected, 1 - expected], rel=1e-12)


def test_quantization_of_zeros_and_denormals():
    """Rows below 2^-100 become zeros with scale 0."""
    x = np.zeros((3, 4), np.float32)
    x[1] = 1e-40
    x[2] = 2.0**-101
    q, scale = quantize_tokens(x)
    assert q.tolist() == [[0] * 4] * 3
    assert scale.tolist() == [0.0] * 3


def test_quantization_just_above_the_limit():
    """A row of 2^-100 is quantized like any other."""
    q, scale = quantize_tokens(np.array([[2.0**-100, -(2.0**-101)]], np.float32))
    assert q.tolist() == [[127, -64]]
    assert scale.tolist() == [float(np.float32(2.0**-100) / np.float32(127))]


def test_quantization_rounds_half_to_even():
    """Values in the middle go to the even integer."""
    q, _ = quantize_tokens(np.array([[127, 0.5, 1.5, -2.5]], np.float32))
    assert q.tolist() == [[127, 0, 2, -2]]


def test_largest_floats_are_quantized():
    """The largest finite f32 does not overflow on the way."""
    q, _ = quantize_tokens(np.array([[3.4028235e38, -3.4028235e38, 0]], np.float32))
    assert q.tolist() == [[127, -127, 0]]


def test_errors_of_equal_results():
    """No difference is an error of 0 at no token, also where the expected values are 0."""
    y = np.array([[1.0, 2.0], [0.0, 0.0]])
    assert errors(y.astype(np.float32), y) == Errors(0.0, 0.0, None)


def test_errors_of_a_known_difference():
    """Total and worst token by hand: differences 0.5 at size 5, and 0.12 at size 1."""
    expected = np.array([[3.0, 4.0], [1.0, 0.0]])
    actual = np.array([[3.5, 4.0], [1.0, 0.12]])
    result = errors(actual, expected)
    assert result.rel_rmse == pytest.approx(math.sqrt((0.25 + 0.0144) / 26))
    assert result.worst_error == pytest.approx(0.12)
    assert result.worst_token == 1


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_errors_of_non_finite_values(value):
    """A value that is not finite is an infinite error, never a NaN that compares false."""
    actual = np.array([[1.0, 2.0], [value, 1.0]])
    assert errors(actual, np.ones((2, 2))) == Errors(math.inf, math.inf, 1)


def test_errors_where_zeros_are_expected():
    """Anything instead of zeros is infinitely wrong."""
    assert errors(np.full((1, 2), 1e-9), np.zeros((1, 2))) == Errors(math.inf, math.inf, 0)


def test_errors_of_different_shapes():
    """Results of another shape can't be compared."""
    with pytest.raises(InputError, match=r"result: shape is \(2, 3\), \(2, 2\) is needed"):
        errors(np.zeros((2, 3)), np.zeros((2, 2)))


def test_bad_tokens_are_refused():
    """The oracle checks its input like the variants do."""
    w, x = layer()
    with pytest.raises(InputError, match="x: dtype is float64"):
        reference(w, x.astype(np.float64))
