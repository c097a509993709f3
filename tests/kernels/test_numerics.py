"""Every variant on every path against the oracle, on the cases that kernels get wrong first."""

import dataclasses
import functools
import os

import numpy as np
import pytest

from moe_prof import kernels
from moe_prof.errors import InputError
from moe_prof.kernels.oracle import errors
from moe_prof.kernels.table import BY_NAME, VARIANTS
from tests.kernels.cases import MAKERS, case
from tests.kernels.layers import layer

ALL_PATHS = [(spec.name, isa) for spec in VARIANTS for isa in spec.isas]
PATHS = [(name, isa) for name, isa in ALL_PATHS if isa in kernels.isas(name)]
EXACT_PATHS = [
    (name, isa) for name, isa in PATHS if BY_NAME[name].order == "reference" and name != "scalar"
]
SCALAR = ("scalar", "portable")
THREADS = min(2, len(os.sched_getaffinity(0)))

each_path = pytest.mark.parametrize("path", PATHS, ids="-".join)
each_case = pytest.mark.parametrize("name", MAKERS)


def prepare(path, w, *, threads=THREADS, max_tokens=128):
    """A plan of one variant on one path."""
    variant, isa = path
    if not BY_NAME[variant].threads:
        threads = 1
    return kernels.variant(variant).prepare(w, threads=threads, isa=isa, max_tokens=max_tokens)


@functools.cache
def outcome(path, name):
    """What a path makes of a case: (y, chosen experts)."""
    w, x = case(name).w, case(name).x
    with prepare(path, w) as plan:
        y = plan.forward(x)
        return y, plan.routing(x.shape[0])


@pytest.mark.parametrize("path", [path for path in ALL_PATHS if path not in PATHS], ids="-".join)
def test_path_runs_here(path):
    """A path that this machine or build lacks is shown as skipped."""
    pytest.skip(f"{path[0]} has no path {path[1]} on this machine")


@each_path
def test_forced_path_runs(path):
    """The plan says that it is the variant and path asked for."""
    w, _ = layer()
    with prepare(path, w) as plan:
        assert (plan.info.variant, plan.info.isa) == path


@each_case
@each_path
def test_output_is_the_oracles(path, name):
    """The output is within the tolerance that the table states for the variant."""
    spec, (y, _) = BY_NAME[path[0]], outcome(path, name)
    expected = case(name).y
    result = errors(y, expected)
    assert y.shape == expected.shape
    assert y.dtype == np.float32
    assert result.rel_rmse <= spec.rel_rmse, result
    assert result.worst_error <= spec.worst_token, result


@each_case
@each_path
def test_choice_is_the_oracles(path, name):
    """The experts are those of the oracle, in its order, ties included."""
    chosen = outcome(path, name)[1]
    assert chosen.ids.tolist() == case(name).routing.ids.tolist()


@each_case
@each_path
def test_gates_are_the_oracles(path, name):
    """The gates are finite, near the oracle's, and sum to the scaling factor unless kept raw."""
    gates, w = outcome(path, name)[1].gates, case(name).w
    np.testing.assert_allclose(gates, case(name).routing.gates, rtol=2e-3, atol=1e-6)
    if not w.normalize_gates:
        return
    total = np.full(len(gates), w.routed_scaling_factor)
    np.testing.assert_allclose(gates.sum(axis=1, dtype=np.float64), total, rtol=1e-5)


@each_case
@pytest.mark.parametrize("path", EXACT_PATHS, ids="-".join)
def test_reference_order_is_bit_equal_to_scalar(path, name):
    """Variants that keep the reference's order of summation give the bits of scalar."""
    bits = outcome(path, name)[0].view(np.int32)
    assert bits.tolist() == outcome(SCALAR, name)[0].view(np.int32).tolist()


@each_path
def test_forward_again_gives_the_same_bits(path):
    """A second forward, after one of other tokens, repeats the first."""
    w, x = layer(9)
    with prepare(path, w) as plan:
        first = plan.forward(x)
        plan.forward(x[::-1].copy() * np.float32(3))
        assert plan.forward(x).tobytes() == first.tobytes()


@each_path
def test_input_is_left_alone(path):
    """The tokens are not changed."""
    w, x = layer(9)
    before = x.copy()
    with prepare(path, w) as plan:
        plan.forward(x)
    assert x.tobytes() == before.tobytes()


@each_path
@pytest.mark.parametrize("max_tokens", [1, 4, 33])
def test_more_tokens_than_the_workspace(path, max_tokens):
    """Tokens beyond the workspace are computed in slices, with the same result."""
    w, x = layer(34)
    with prepare(path, w, max_tokens=34) as plan:
        whole = plan.forward(x)
    with prepare(path, w, max_tokens=max_tokens) as plan:
        sliced = plan.forward(x)
    spec, difference = BY_NAME[path[0]], errors(sliced, whole.astype(np.float64))
    assert difference.worst_error <= (0 if spec.order == "reference" else spec.worst_token)


@each_path
@pytest.mark.parametrize("n", [1, 9, 33])
def test_one_thread_gives_the_result_of_more(path, n):
    """The number of threads does not change the result."""
    w, x = layer(n, d=100, h=96)
    with prepare(path, w, threads=1) as plan:
        one = plan.forward(x)
    with prepare(path, w) as plan:
        assert plan.forward(x).tobytes() == one.tobytes()


@each_path
def test_tokens_that_are_not_contiguous(path):
    """Strided and column-major tokens give the result of their copies."""
    w, x = layer(8)
    with prepare(path, w) as plan:
        strided, column_major = plan.forward(x[::2]), plan.forward(np.asfortranarray(x))
        assert strided.tobytes() == plan.forward(x[::2].copy()).tobytes()
        assert column_major.tobytes() == plan.forward(x).tobytes()


@each_path
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: x.astype(np.float64), "x: dtype is float64, float32 is needed"),
        (lambda x: x[:, :-1], r"x: shape is \(5, 32\), \(tokens, 33\) is needed"),
        (lambda x: x[0], r"x: shape is \(33,\)"),
        (lambda x: np.where(x == x[1, 2], np.nan, x), r"x: not finite at \(1, 2\)"),
        (lambda x: np.where(x == x[3, 0], np.inf, x), r"x: not finite at \(3, 0\)"),
        (lambda x: x.tolist(), "x: a NumPy array is needed, got list"),
    ],
    ids=["dtype", "width", "one row", "nan", "inf", "list"],
)
def test_bad_tokens_are_refused(path, change, message):
    """Tokens that break the contract are refused in one clear line, and the plan stays usable."""
    w, x = layer()
    with prepare(path, w) as plan:
        expected = plan.forward(x)
        with pytest.raises(InputError, match=message):
            plan.forward(change(x))
        assert plan.forward(x).tobytes() == expected.tobytes()


@each_path
def test_plans_do_not_share_state(path):
    """Two plans of other shapes can be used in turns."""
    w, x = layer(9)
    other_w, other_x = layer(4, 96, 100, 3, 2)
    with prepare(path, w) as plan, prepare(path, other_w) as other:
        first, other_first = plan.forward(x), other.forward(other_x)
        assert plan.forward(x).tobytes() == first.tobytes()
        assert other.forward(other_x).tobytes() == other_first.tobytes()


@each_path
def test_weights_may_be_gone_before_the_plan(path):
    """A plan keeps what it needs of its weights alive."""
    w, x = layer()
    plan = prepare(path, dataclasses.replace(w, gate=w.gate.copy(), router=w.router.copy()))
    with plan:
        first = plan.forward(x)
        rubbish = [np.full_like(w.gate, 77) for _ in range(20)]
        assert len(rubbish) == 20
        assert plan.forward(x).tobytes() == first.tobytes()
