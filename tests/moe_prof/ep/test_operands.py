"""Checks of the operator's operands: a refusal names argument, value and what is allowed."""

from dataclasses import replace

import numpy as np
import pytest

from moe_prof.ep.call import TokenArguments, exec_flags, operator_call
from moe_prof.ep.group import LocalGroup
from moe_prof.ep.operands import (
    Attributes,
    ExecFlag,
    check_attributes,
    check_scale,
    check_smooth,
    check_tokens,
    check_values,
    check_width,
)
from moe_prof.ep.prepared import WeightArguments, prepare_experts
from moe_prof.errors import InputError, MoeProfError, UsageError
from tests.moe_prof.ep.made import BF16, FP16

E, K, H, B = 8, 2, 512, 4
GOOD = Attributes(2, 1, E, 0, 0)


def arguments(**changes):
    """Operands that pass, with some replaced."""
    values = {
        "x": np.ones((B, H), BF16),
        "expert_ids": np.tile(np.array([[0, 5]], np.int32), (B, 1)),
        "expert_scales": np.ones((B, K), np.float32),
        "mask": None,
    }
    return {**values, **changes}


def with_value(array, place, value):
    """A copy with one value set."""
    changed = array.copy()
    changed[place] = value
    return changed


def test_good_operands_pass():
    """Both dtypes, -1, an empty batch, a mask that is a prefix."""
    good = arguments()
    assert check_tokens(**good, a=GOOD) == B
    assert check_tokens(**arguments(x=np.ones((B, H), FP16)), a=GOOD) == B
    ids = with_value(with_value(good["expert_ids"], (1, 0), -1), (1, 1), -1)
    assert check_tokens(**arguments(expert_ids=ids), a=GOOD) == B
    assert check_tokens(**arguments(mask=np.array([True, True, False, False])), a=GOOD) == 2
    empty = {
        "x": np.ones((0, H), BF16), "expert_ids": np.ones((0, K), np.int32),
        "expert_scales": np.ones((0, K), np.float32), "mask": np.ones(0, np.bool_),
    }  # fmt: skip
    assert check_tokens(**empty, a=GOOD) == 0


IDS = arguments()["expert_ids"]
WRONG_TOKENS = [
    ({"x": np.ones((B, H), np.float32)}, "x has dtype float32; it must be an array of bfloat16"),
    ({"x": [[1.0]]}, "x has dtype list"),
    ({"x": np.ones(H, BF16)}, r"x has shape \(512,\); it must be \(bs, h\)"),
    ({"x": np.ones((257, H), BF16)}, r"bs \(x.shape\[0\]\) = 257 is not in 0..256"),
    ({"x": np.ones((B, 511), BF16)}, r"h \(x.shape\[1\]\) = 511 is not in 512..7168"),
    ({"x": np.ones((B, 7169), BF16)}, r"= 7169 is not in 512..7168"),
    ({"x": with_value(np.ones((B, H), BF16), (2, 7), np.nan)}, r"x\[2, 7\] is nan"),
    ({"x": with_value(np.ones((B, H), FP16), (3, 0), -np.inf)}, r"x\[3, 0\] is -inf"),
    ({"expert_ids": IDS.astype(np.int64)}, "expert_ids has dtype int64; it must be .* int32"),
    ({"expert_ids": IDS[:2]}, r"expert_ids has shape \(2, 2\); it must be \(4, k\)"),
    ({"expert_ids": with_value(IDS, (1, 1), E)}, r"expert_ids\[1, 1\] = 8 is not in -1..7"),
    ({"expert_ids": with_value(IDS, (3, 0), -2)}, r"expert_ids\[3, 0\] = -2 is not in -1..7"),
    ({"expert_ids": with_value(IDS, (2, 1), 0)}, r"expert_ids\[2, 1\] = 0 repeats expert 0"),
    ({"expert_scales": np.ones((B, 3), np.float32)}, r"shape \(4, 3\); it must be \(4, 2\)"),
    ({"expert_scales": np.full((B, K), np.inf, np.float32)}, r"expert_scales\[0, 0\] is inf"),
    ({"expert_scales": np.ones((B, K))}, "expert_scales has dtype float64"),
    (
        {"mask": np.array([True, False, False, True])},
        "no prefix: row 1 is false, yet row 3 is true",
    ),
    ({"mask": np.ones(B, np.int8)}, "x_active_mask has dtype int8"),
    ({"mask": np.ones(3, np.bool_)}, r"x_active_mask has shape \(3,\); it must be \(4,\)"),
]


@pytest.mark.parametrize(("changes", "message"), WRONG_TOKENS)
def test_wrong_operands_are_refused_by_name(changes, message):
    """Shapes, dtypes, ids, mask and values, with row and column."""
    given = arguments(**changes)
    with pytest.raises(MoeProfError, match=message):
        check_tokens(**given, a=GOOD)
        del given["mask"]
        check_values(**given, experts=E)


@pytest.mark.parametrize(("changes", "message"), WRONG_TOKENS)
def test_the_operator_itself_refuses_them(changes, message):
    """By a quick look in the core, and the slow one for its words; good operands pass both."""
    group = LocalGroup(B, H, E, K)
    given = arguments()
    layer = weights(local=E)
    attributes = Attributes(1, 0, E, 0, 0)

    def tokens(given):
        return TokenArguments(
            given["x"], given["expert_ids"], given["expert_scales"], x_active_mask=given["mask"]
        )

    operator_call(tokens(given), layer, group, attributes)
    with pytest.raises(MoeProfError, match=message):
        operator_call(tokens({**given, **changes}), layer, group, attributes)


@pytest.mark.parametrize(
    ("changes", "k", "message"),
    [
        ({"moe_expert_num": 513, "ep_rank_size": 1, "ep_rank_id": 0}, 2, "= 513 is not in 1..512"),
        ({"moe_expert_num": 0}, 0, "moe_expert_num = 0 is not in 1..512"),
        ({"moe_expert_num": 7}, 2, "moe_expert_num = 7 is not a multiple of ep_rank_size = 2"),
        ({"ep_rank_id": 2}, 2, "ep_rank_id = 2 is not in 0..1"),
        ({"quant_mode": 1}, 2, "quant_mode = 1 is unknown; only 0"),
        ({"global_bs": 9}, 2, "global_bs = 9 is not a multiple of ep_rank_size = 2"),
        ({"global_bs": 514}, 2, "global_bs = 514 is not in 0..512"),
        ({"global_bs": 2.0}, 2, "global_bs = 2.0 is not an integer"),
        ({"moe_expert_num": 16}, 13, "= 13 is not in 0..12"),
        ({}, 9, r"top-k \(expert_ids.shape\[1\]\) = 9 is not in 0..8"),
    ],
)
def test_wrong_attributes_are_refused(changes, k, message):
    """Ranges and divisibility of the attributes."""
    with pytest.raises(UsageError, match=message):
        check_attributes(replace(GOOD, **changes), k)


def test_more_tokens_than_global_bs_allows():
    """B of a rank is at most maxB."""
    with pytest.raises(UsageError, match=r"bs = 4 is above global_bs / ep_rank_size = 3"):
        check_tokens(**arguments(), a=replace(GOOD, global_bs=6))


@pytest.mark.parametrize(
    ("n", "strict", "message"),
    [
        (1000, True, "n = 1000 is not in 1024..6144"),
        (7168, True, "n = 7168 is not in 1024..6144"),
        (1536, True, r"n = 1536 is not a multiple of 1024 \(strict mode\)"),
        (1025, False, "n = 1025 is odd; gate and up are its two halves"),
        (0, False, "n = 0 is not in 2..264208"),
    ],
)
def test_widths(n, strict, message):
    """Any even width, in strict mode the reference operator's."""
    for good in (1024, 2048, 6144):
        check_width("n", good, strict=True)
    check_width("n", 1026, strict=False)
    with pytest.raises(UsageError, match=message):
        check_width("n", n, strict=strict)


def test_scales_may_be_fp32_or_of_the_dtype_of_x():
    """No other dtype, and finite."""
    check_scale("s", np.ones(3, np.float32), (3,), BF16)
    check_scale("s", np.ones(3, BF16), (3,), BF16)
    with pytest.raises(InputError, match="s has dtype float16; it must be float32 or x's dtype"):
        check_scale("s", np.ones(3, FP16), (3,), BF16)
    with pytest.raises(InputError, match=r"s\[1\] is nan"):
        check_scale("s", np.array([1, np.nan, 1], np.float32), (3,), BF16)


def test_smoothing_scales():
    """Over all experts; the shared expert needs its own."""
    smooth = np.ones((E, H), np.float32)
    check_smooth(smooth, None, E, H, shared=False)
    with pytest.raises(InputError, match="share_smooth_scales is missing"):
        check_smooth(smooth, None, E, H, shared=True)
    with pytest.raises(InputError, match=r"expert_smooth_scales has shape .* must be \(8, 512\)"):
        check_smooth(smooth[:4], None, E, H, shared=False)
    with pytest.raises(InputError, match=r"share_smooth_scales\[0\] is inf"):
        check_smooth(None, np.full(H, np.inf, np.float32), E, H, shared=False)


def weights(n=32, local=2, **changes):
    """Weight arguments that pass, with some replaced."""
    values = {
        "gmm1_weight": np.zeros((local, H, n), np.int8),
        "gmm1_weight_scale": np.ones((local, n), np.float32),
        "gmm2_weight": np.zeros((local, n // 2, H), np.int8),
        "gmm2_weight_scale": np.ones((local, H), np.float32),
    }
    return WeightArguments(**{**values, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gmm1_weight": np.zeros((3, H, 32), np.int8)}, "first size must be the 2 local experts"),
        ({"gmm1_weight": np.zeros((2, H, 32))}, r"gmm1_weight has dtype float64; it must be int8"),
        ({"gmm1_weight": np.zeros((2, 600, 32), np.int8)}, r"it must be \(512, n\)"),
        ({"gmm2_weight": np.zeros((2, 15, H), np.int8)}, r"gmm2_weight\[0\] .*must be \(16, 512\)"),
        ({"gmm1_weight_scale": np.ones((2, 31), np.float32)}, r"gmm1_weight_scale\[0\] has shape"),
        ({"gmm2_weight": [np.zeros((16, H), np.int8)] * 2}, "four weight inputs must agree"),
        ({"gmm1_weight": [np.zeros((H, 32), np.int8)] * 2}, "four weight inputs must agree"),
        ({"gmm1_weight": [np.zeros((H, 32), np.int8)] * 3}, "a list of 3 tensors; it must have 2"),
        ({"share_gmm1_weight": np.zeros((H, 8), np.int8)}, "share_gmm1_weight_scale is missing"),
        ({"gmm1_weight": np.zeros((2, H, 33), np.int8)}, "= 33 is odd"),
    ],
)
def test_wrong_weights_are_refused(changes, message):
    """Shapes, dtypes, lists beside tensors, half a shared expert."""
    with pytest.raises(MoeProfError, match=message):
        prepare_experts(weights(**changes), 2, H, BF16)


def test_strict_mode_refuses_small_widths():
    """The same weights pass without it."""
    with pytest.raises(UsageError, match=r"gmm1HLen .* = 32 is not in 1024..6144"):
        prepare_experts(weights(), 2, H, BF16, strict=True)


@pytest.mark.parametrize(
    ("group", "message"),
    [
        (None, "group_ep is missing"),
        (LocalGroup(B, H, 4, K), "moe_expert_num = 2, but group_ep was made for 4"),
        (LocalGroup(B, 1024, 2, K), "= 512, but group_ep was made for 1024"),
        (LocalGroup(B - 1, H, 2, K), "= 4, but group_ep was made for at most 3"),
        (LocalGroup(B, H, 2, K - 1), "= 2, but group_ep was made for at most 1"),
    ],
)
def test_group_and_call_must_fit(group, message):
    """A group is made for sizes; a call beyond them is refused."""
    tokens = TokenArguments(
        np.ones((B, H), BF16), np.tile(np.array([[0, 1]], np.int32), (B, 1)),
        np.ones((B, K), np.float32),
    )  # fmt: skip
    with pytest.raises(UsageError, match=message):
        operator_call(tokens, weights(), group, Attributes(1, 0, 2, 0, 0))


def test_flags_have_the_operators_bits():
    """Deep with more than one expert a rank; one bit an option."""
    none = {"tensor_list": False, "mask": False, "shared": False, "smooth": False}
    assert exec_flags(1, **none) == 0
    assert exec_flags(2, **none) == ExecFlag.DEEP_FUSE == 1
    for option, bit in (("tensor_list", 2), ("mask", 4), ("shared", 8), ("smooth", 16)):
        assert exec_flags(1, **{**none, option: True}) == bit
