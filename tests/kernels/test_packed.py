"""The packed variant through the plan API, against the oracle and the scalar reference."""

import numpy as np
import pytest

from moe_prof import kernels
from moe_prof.kernels.features import read_cpu, supported
from moe_prof.kernels.table import BY_NAME
from tests.kernels.layers import filled, layer, twins, with_changes

SPEC = BY_NAME["packed"]
ODD = (1, 9, 31, 33, 96, 100)

pytestmark = pytest.mark.skipif(
    not any(isa in SPEC.isas for isa in supported(read_cpu())),
    reason=f"this CPU has none of the paths of packed: {', '.join(SPEC.isas)}",
)


def forward(w, x, threads=1, **options):
    """The output of a fresh plan."""
    with kernels.variant("packed").prepare(w, threads=threads, **options) as plan:
        return plan.forward(x)


def errors(y, expected):
    """Relative RMSE over all values, and of the worst token."""
    difference = y.astype(np.float64) - expected
    norm = np.sqrt((expected**2).sum(axis=1))
    rows = np.sqrt((difference**2).sum(axis=1)) / np.where(norm == 0, 1, norm)
    return np.sqrt((difference**2).sum()) / max(np.sqrt((expected**2).sum()), 1e-30), rows.max()


def assert_within_table(w, x, threads=1, **options):
    """Equal to the oracle within the tolerance that the table states."""
    rel_rmse, worst = errors(forward(w, x, threads, **options), kernels.reference(w, x))
    assert rel_rmse <= SPEC.rel_rmse
    assert worst <= SPEC.worst_token


@pytest.mark.parametrize("d", ODD)
@pytest.mark.parametrize("h", ODD)
@pytest.mark.parametrize("n", [1, 7])
def test_odd_sizes(n, d, h):
    """Sizes around the edges of tiles, for one token and for several."""
    assert_within_table(*layer(n, d, h, 9, 3))


@pytest.mark.parametrize("n", [*ODD, 2, 5, 129])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_odd_numbers_of_tokens(n, threads):
    """Any number of tokens with 1..3 threads, more threads than tokens included."""
    assert_within_table(*layer(n, 40, 24, 5, 2), threads=threads)


@pytest.mark.parametrize(("e", "k"), [(1, 1), (257, 3), (257, 257), (31, 31), (40, 33)])
@pytest.mark.parametrize("n", [1, 6])
def test_odd_numbers_of_experts(n, e, k):
    """E = 257, K = E, one expert, and K beyond what the fast choice handles."""
    assert_within_table(*layer(n, 33, 16, e, k), threads=2)


def test_no_tokens():
    """N = 0 gives an empty output."""
    w, x = layer()
    assert forward(w, x[:0]).shape == (0, 33)


@pytest.mark.parametrize("threads", [1, 2])
def test_more_tokens_than_the_workspace(threads):
    """A forward of more than max_tokens is computed in slices, the last one of one token."""
    w, x = layer(9, 33, 31, 9, 3)
    rel_rmse, _ = errors(forward(w, x, threads, max_tokens=4), kernels.reference(w, x))
    assert rel_rmse <= SPEC.rel_rmse


@pytest.mark.parametrize("n", [1, 8])
@pytest.mark.parametrize("value", [-128, 127])
def test_extreme_weights(n, value):
    """All weights at one end of the int8 range."""
    w, x = layer(n, 64, 48, 5, 2)
    assert_within_table(filled(w, value), x)


@pytest.mark.parametrize("n", [1, 8])
@pytest.mark.parametrize(
    "changes",
    [
        {"has_shared": False},
        {"has_residual": False},
        {"score": "softmax"},
        {"n_group": 4, "topk_group": 2},
        {"routed_scaling_factor": 2.5},
    ],
    ids="+".join,
)
def test_options_of_real_models(n, changes):
    """Each option of the weights, for one token and for several."""
    assert_within_table(*layer(n, 33, 31, 12, 3, **changes), threads=2)


@pytest.mark.parametrize("row", [0.0, 1e-40, 1e-35, 1e15])
def test_rows_out_of_the_ordinary(row):
    """A row of zeros, denormals, tiny or huge values beside ordinary ones."""
    w, x = layer(6)
    x[2] = np.float32(row)
    assert_within_table(w, x)


def test_outliers():
    """Single values a thousand times larger than the rest."""
    w, x = layer(6)
    x[::2, 5] *= 1000
    assert_within_table(w, x)


@pytest.mark.parametrize("n", [1, 40])
def test_tied_experts_choose_the_lower_index(n):
    """Experts with equal routers are ranked by index, in the order of the oracle."""
    w, x = layer(n, 32, 16, 8, 3)
    for expert in range(1, 8):
        w = twins(w, 0, expert)
    with kernels.variant("packed").prepare(w) as plan:
        plan.forward(x)
        ids = plan.routing(n).ids
    np.testing.assert_array_equal(ids, np.tile([0, 1, 2], (n, 1)))


@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_choice_is_that_of_exact_scores(scale):
    """Near ties (router rows that differ in one part in 10^6) are decided as in double precision.

    With scale 30 the scores saturate: their differences are then far smaller than those of z.
    """
    w, x = layer(64, 96, 8, 32, 4)
    rng = np.random.default_rng(1)
    router = np.repeat(w.router[:8], 4, axis=0) * np.float32(scale)
    router *= (1 + 1e-6 * rng.standard_normal(router.shape)).astype(np.float32)
    w = with_changes(w, router=router, bias=np.zeros_like(w.bias))
    z = x.astype(np.float64) @ router.T.astype(np.float64)
    expected = np.argsort(-1 / (1 + np.exp(-z)), axis=1, kind="stable")[:, :4]
    with kernels.variant("packed").prepare(w) as plan:
        plan.forward(x)
        np.testing.assert_array_equal(plan.routing(64).ids, expected)


@pytest.mark.parametrize("shape", [(1, 256, 128, 16, 4), (128, 256, 128, 16, 4), (7, 33, 9, 64, 8)])
def test_routing_is_that_of_scalar(shape):
    """The chosen experts are those of the scalar reference, the gates equal to a few ulp."""
    w, x = layer(*shape)
    chosen = []
    for name in ("scalar", "packed"):
        with kernels.variant(name).prepare(w) as plan:
            plan.forward(x)
            chosen.append(plan.routing(shape[0]))
    np.testing.assert_array_equal(chosen[0].ids, chosen[1].ids)
    np.testing.assert_allclose(chosen[0].gates, chosen[1].gates, rtol=2e-5)


@pytest.mark.parametrize("n", [1, 20])
def test_threads_do_not_change_the_result(n):
    """The same bits with 1, 2 and 3 threads."""
    w, x = layer(n, 100, 96, 9, 3)
    outputs = [forward(w, x, threads) for threads in (1, 2, 3)]
    np.testing.assert_array_equal(outputs[0], outputs[1])
    np.testing.assert_array_equal(outputs[0], outputs[2])


@pytest.mark.parametrize("n", [1, 20])
def test_nothing_is_left_over_from_an_overflowed_forward(n):
    """A forward after one that filled the workspace with infinities and NaN is as a fresh one."""
    w, x = layer(n, 33, 31, 9, 3)
    huge = np.full((21, 33), 3e38, dtype=np.float32)
    huge[:, ::2] = -3e38
    with kernels.variant("packed").prepare(w, threads=2) as plan:
        plan.forward(huge[:n])
        plan.forward(huge)
        y = plan.forward(x)
    np.testing.assert_array_equal(y, forward(w, x, threads=2))


def test_skewed_routing_and_empty_experts():
    """All tokens on the same experts, the others empty."""
    w, x = layer(70, 33, 31, 64, 2)
    bias = np.zeros(64, dtype=np.float32)
    bias[[3, 40]] = 10
    w = with_changes(w, bias=bias)
    assert_within_table(w, x, threads=2)


@pytest.mark.parametrize("isa", SPEC.isas)
@pytest.mark.parametrize("max_tokens", [1, 64])
def test_plan_proves_what_ran(isa, max_tokens):
    """The plan names the variant, the path asked for, its microkernel and tile."""
    if isa not in supported(read_cpu()):
        pytest.skip(f"this CPU has no {isa} path")
    w, _ = layer()
    with kernels.variant("packed").prepare(w, threads=1, isa=isa, max_tokens=max_tokens) as plan:
        info = plan.info
    assert (info.variant, info.isa, info.threads) == ("packed", isa, 1)
    assert (info.mr == 1) == (max_tokens == 1)
    assert info.microkernel.endswith(f"s8_gemm_{info.mr}x{info.nr}c{info.kr}__{isa}")
    assert min(info.weight_bytes, info.workspace_bytes) > 0
