"""The operator's oracle: a case by hand, its measure of deviation, the counts."""

from dataclasses import replace

import numpy as np

from moe_prof.ep import oracle
from moe_prof.ep.call import TokenArguments
from moe_prof.ep.prepared import WeightArguments
from tests.moe_prof.ep.made import FP16, layer, tokens


def test_a_case_by_hand():
    """One value of h, gate and up: x = 2 becomes q = 127, s = 2 / 127; C = 127 w; z = silu(g) u."""
    weights = WeightArguments(
        np.array([[[50, 25]]], np.int8), np.array([[0.01, 0.02]], np.float32),
        np.array([[[10]]], np.int8), np.array([[0.1]], np.float32),
    )  # fmt: skip
    call = TokenArguments(
        np.array([[2.0]], FP16), np.array([[0]], np.int32), np.array([[3.0]], np.float32)
    )
    gate = up = 2 * 0.5
    z = gate / (1 + np.exp(-gate)) * up
    output, share = oracle.reference(call, weights)
    np.testing.assert_allclose(output[0, 0], 3 * z * 10 * 0.1, rtol=2e-3)
    assert share[0, 0] == 0


def test_lists_and_tensors_are_the_same():
    """As the operator takes them."""
    made = layer(n=16, experts=3, n_shared=8, smooth=True)
    t = tokens(made, 3, k=2)
    names = ("gmm1_weight", "gmm1_weight_scale", "gmm2_weight", "gmm2_weight_scale")
    as_list = replace(made.weights, **{name: list(getattr(made.weights, name)) for name in names})
    for got, wanted in zip(
        oracle.reference(t, as_list), oracle.reference(t, made.weights), strict=True
    ):
        np.testing.assert_array_equal(got, wanted)


def test_deviation():
    """Relative, over all and of the worst token; zeros must be zeros, equal infinities agree."""
    expected = np.array([[3.0, 4.0], [0.0, 0.0], [np.inf, 1.0]])
    assert oracle.deviation(expected, expected) == oracle.Deviation(0.0, 0.0)
    assert oracle.deviation(expected, expected).within
    off = expected + np.array([[0.005, 0.0], [0.0, 0.0], [0.0, 0.0]])
    np.testing.assert_allclose(oracle.deviation(off, expected).worst_token, 0.001)
    wrong = np.array([[3.0, 4.0], [0.0, 1e-6], [np.inf, 1.0]])
    assert not oracle.deviation(wrong, expected).within
    assert not oracle.deviation(np.full((3, 2), np.nan), expected).within
    assert oracle.deviation(np.zeros((0, 2)), np.zeros((0, 2))).within


def test_token_counts():
    """Plain counts of each rank's experts, skipped and inactive choices left out."""
    ids = [np.array([[0, 1], [3, -1]], np.int32), np.array([[3, 2], [0, 1]], np.int32)]
    counts = [oracle.expert_token_nums(ids, [2, 1], 4, 2, rank).tolist() for rank in range(2)]
    assert counts == [[1, 1], [1, 2]]
