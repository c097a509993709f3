"""Weights: what construction accepts, copies and refuses."""

import dataclasses

import numpy as np
import pytest

from moe_prof.errors import InputError
from moe_prof.kernels.inputs import random_weights
from moe_prof.kernels.weights import MAX_REDUCTION, Weights, check_tokens
from moe_prof.scenario import Scenario

E, D, H, K = 4, 7, 5, 2


def arrays(**changes):
    """Arguments of a small valid layer, some of them changed."""
    w = random_weights(Scenario(1, D, H, E, K))
    names = ("router", "bias", "gate", "up", "down", "gate_scale", "up_scale", "down_scale")
    return {name: getattr(w, name) for name in names} | {"top_k": K} | changes


def test_sizes_and_bytes():
    """The sizes follow from the arrays."""
    w = Weights(**arrays())
    assert (w.num_experts, w.num_stored, w.d_model, w.d_ff) == (E, E + 1, D, H)
    assert w.nbytes == 4 * E * D + 4 * E + 3 * (E + 1) * D * H + 12 * (E + 1)


def test_arrays_in_c_order_are_not_copied():
    """Large weights are shared with the caller."""
    given = arrays()
    assert Weights(**given).gate is given["gate"]


def test_other_orders_are_copied():
    """An array in another order becomes C-ordered with the same values."""
    given = arrays()
    fortran = np.asfortranarray(given["down"])
    w = Weights(**(given | {"down": fortran}))
    assert w.down.flags.c_contiguous
    assert w.down.tolist() == given["down"].tolist()


def test_unaligned_arrays_are_copied():
    """An array that starts between elements becomes aligned, with the same values."""
    given = arrays()
    raw = np.zeros(given["bias"].nbytes + 1, np.uint8)
    unaligned = raw[1:].view(np.float32)
    unaligned[:] = given["bias"]
    w = Weights(**(given | {"bias": unaligned}))
    assert w.bias.flags.aligned
    assert w.bias.tolist() == given["bias"].tolist()


def test_without_a_shared_expert():
    """Without the shared expert the arrays hold E experts."""
    given = arrays()
    for name in ("gate", "up", "down", "gate_scale", "up_scale", "down_scale"):
        given[name] = given[name][:E]
    w = Weights(**given, has_shared=False)
    assert (w.num_experts, w.num_stored) == (E, E)


def test_shared_expert_missing():
    """Arrays of E experts are refused when there should be a shared one."""
    given = arrays()
    with pytest.raises(InputError, match=r"gate: shape is \(4, 5, 7\), \(5, H, 7\) is needed"):
        Weights(**(given | {"gate": given["gate"][:E]}))


def test_scales_per_matrix_are_broadcast_per_channel():
    """One scale a matrix becomes one a channel."""
    w = Weights(**arrays())
    assert w.gate_scale_per_channel.tolist() == [[v] * H for v in w.gate_scale.tolist()]
    assert w.down_scale_per_channel.shape == (E + 1, D)
    assert w.up_scale_per_channel.flags.c_contiguous


def test_scales_per_channel_are_kept():
    """Scales given per channel are used as they are."""
    scale = np.arange((E + 1) * H, dtype=np.float32).reshape(E + 1, H)
    w = Weights(**arrays(up_scale=scale))
    assert w.up_scale_per_channel is scale


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("router", np.float64), ("gate", np.int32), ("gate", np.uint8), ("down_scale", np.float16)],
)
def test_nothing_is_cast(name, dtype):
    """Another dtype is refused, also where a cast would lose nothing."""
    given = arrays()
    with pytest.raises(InputError, match=f"{name}: dtype is {np.dtype(dtype).name}"):
        Weights(**(given | {name: given[name].astype(dtype)}))


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("router", (E,)),
        ("bias", (E + 1,)),
        ("bias", (E, 1)),
        ("up", (E + 1, H + 1, D)),
        ("up", (E + 1, D, H)),
        ("down", (E + 1, H, D)),
        ("gate_scale", (E,)),
        ("up_scale", (E + 1, D)),
        ("down_scale", (E + 1, H)),
    ],
)
def test_wrong_shapes(name, shape):
    """An array of another shape is refused by name, with the shape needed."""
    dtype = np.int8 if name in ("up", "down") else np.float32
    with pytest.raises(InputError, match=rf"{name}: shape is .* is needed"):
        Weights(**arrays(**{name: np.zeros(shape, dtype)}))


@pytest.mark.parametrize("shape", [(0, D), (E, 0)])
def test_empty_router(shape):
    """A layer has at least one expert and one channel."""
    with pytest.raises(InputError, match="router: shape"):
        Weights(**arrays(router=np.zeros(shape, np.float32)))


@pytest.mark.parametrize("name", ["router", "bias", "gate_scale", "up_scale", "down_scale"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_non_finite_values(name, value):
    """A value that is not finite is refused, with its place."""
    array = arrays()[name].copy()
    array.flat[1] = value
    with pytest.raises(InputError, match=rf"{name}: not finite at \("):
        Weights(**arrays(**{name: array}))


def test_a_list_is_no_array():
    """A plain list is refused by its type."""
    with pytest.raises(InputError, match="bias: a NumPy array is needed, got list"):
        Weights(**arrays(bias=[0.0] * E))


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("top_k", 0),
        ("top_k", E + 1),
        ("top_k", 2.0),
        ("top_k", True),
        ("score", "relu"),
        ("n_group", 0),
        ("n_group", 3),
        ("topk_group", 2),
        ("routed_scaling_factor", 0.0),
        ("routed_scaling_factor", float("nan")),
        ("has_residual", 1),
        ("normalize_gates", None),
    ],
)
def test_bad_options(option, value):
    """An option out of its range is refused by name."""
    with pytest.raises(InputError, match=f"weights: {option} = "):
        Weights(**arrays(**{option: value}))


def test_top_k_must_fit_into_the_groups_kept():
    """K experts can't be chosen from groups that hold fewer."""
    with pytest.raises(InputError, match="more than the 2 experts of the 1 groups kept"):
        Weights(**arrays(top_k=3, n_group=2, topk_group=1))


def test_reduction_too_long_for_int32():
    """A dot product that could overflow int32 is refused."""
    d = MAX_REDUCTION + 1
    long = arrays(
        router=np.zeros((1, d), np.float32), bias=np.zeros(1, np.float32), top_k=1, has_shared=False
    )
    for name in ("gate", "up"):
        long[name] = np.zeros((1, 1, d), np.int8)
    long["down"] = np.zeros((1, d, 1), np.int8)
    for name in ("gate_scale", "up_scale", "down_scale"):
        long[name] = np.zeros(1, np.float32)
    with pytest.raises(InputError, match=r"D \(d_model\) = 132105 is larger than 132104"):
        Weights(**long)


def test_longest_reduction_fits_int32():
    """The limit is the last length at which the worst case fits."""
    assert MAX_REDUCTION * 127 * 128 <= 2**31 - 1 < (MAX_REDUCTION + 1) * 127 * 128


def test_weights_are_frozen():
    """A field can't be set after construction."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        Weights(**arrays()).top_k = 1


def test_replace_checks_again():
    """Changing an option through dataclasses.replace is checked like construction."""
    with pytest.raises(InputError, match="top_k"):
        dataclasses.replace(Weights(**arrays()), top_k=E + 1)


def test_tokens_in_another_order_are_copied():
    """Tokens that are not C-ordered keep their values."""
    x = np.arange(6 * D, dtype=np.float32).reshape(6, D)[::2]
    checked = check_tokens(x, D)
    assert checked.flags.c_contiguous
    assert checked.tolist() == x.tolist()


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.zeros((2, D)), "x: dtype is float64, float32 is needed"),
        (np.zeros((2, D + 1), np.float32), r"x: shape is \(2, 8\), \(tokens, 7\) is needed"),
        (np.zeros(D, np.float32), r"x: shape is \(7,\)"),
        (np.full((2, D), np.nan, np.float32), r"x: not finite at \(0, 0\) \(nan\)"),
        ([[0.0] * D], "x: a NumPy array is needed, got list"),
    ],
)
def test_bad_tokens(x, message):
    """Tokens of another dtype, shape or type, or not finite, are refused."""
    with pytest.raises(InputError, match=message):
        check_tokens(x, D)
