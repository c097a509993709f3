"""The fused operator: against the float64 oracle; its bits by small ops, ranks, options, paths."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moe_prof.ep import native, oracle
from moe_prof.ep.group import Options
from tests.moe_prof.ep.made import BF16, FP16, gathered, layer, run, split, tokens

CASES = {
    "plain": ({}, {}),
    "fp16": ({}, {"dtype": FP16}),
    "skipped ids": ({}, {"skip": 0.4}),
    "mask": ({}, {"masked": 5}),
    "nothing active": ({}, {"masked": 0}),
    "shared": ({"n_shared": 64}, {}),
    "shared wider than routed, smooth": ({"n_shared": 160, "smooth": True}, {"dtype": FP16}),
    "smooth": ({"smooth": True}, {}),
    "everything": ({"n_shared": 64, "smooth": True}, {"masked": 7, "skip": 0.3}),
    "scales in bf16": ({"scale_dtype": BF16}, {}),
    "scales in fp16": ({"scale_dtype": FP16}, {"dtype": FP16}),
    "heavy tails": ({"smooth": True}, {"heavy": True}),
    "no expert at all": ({}, {"k": 0}),
    "all experts": ({"experts": 6}, {"k": 6}),
    "one expert": ({"experts": 1}, {"k": 1}),
    "widths beside panels": ({"h": 518, "n": 102, "n_shared": 34}, {}),
}
OPTIONS = [Options(overlap, fused) for overlap in (True, False) for fused in (True, False)]


def assert_right(made, all_tokens, results):
    """Every rank's outputs are the oracle's within its tolerance, and the counts are exact."""
    for rank, (t, (output, share, nums)) in enumerate(zip(all_tokens, results, strict=True)):
        expected, expected_share = oracle.reference(t, made.weights)
        assert output.dtype == share.dtype == t.x.dtype
        assert oracle.deviation(output, expected).within
        assert oracle.deviation(share, expected_share).within
        active = [
            len(u.x) if u.x_active_mask is None else u.x_active_mask.sum() for u in all_tokens
        ]
        wanted = oracle.expert_token_nums(
            [u.expert_ids for u in all_tokens], active, made.experts, len(all_tokens), rank
        )
        assert nums.dtype == np.int64
        np.testing.assert_array_equal(nums, wanted)


@pytest.mark.parametrize("case", CASES)
def test_one_rank_agrees_with_the_oracle_and_with_small_ops(case):
    """Each option alone and all together; fused and small ops have the same bits."""
    of_layer, of_tokens = CASES[case]
    made = layer(**of_layer)
    t = tokens(made, 9, **of_tokens)
    results = run(made, [t])
    assert_right(made, [t], results)
    for way in ("fused", "small"):
        again = run(made, [t], way=way, as_list=True)
        for got, expected in zip(gathered(again), gathered(results), strict=True):
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("experts", [8, 16])
def test_bits_do_not_depend_on_the_number_of_ranks(experts):
    """1, 2, 4 and 8 ranks: deep and, with one expert a rank, shallow path."""
    made = layer(experts=experts, n_shared=64, smooth=True)
    t = tokens(made, 16, skip=0.1)
    expected = gathered(run(made, [t]))
    for ranks in (2, 4, 8):
        parts = split(t, [16 // ranks] * ranks)
        for way in ("fused", "small"):
            results = run(made, parts, way=way)
            for got, wanted in zip(gathered(results), expected, strict=True):
                np.testing.assert_array_equal(got, wanted)
    assert_right(made, parts, results)


@pytest.mark.parametrize("experts", [2, 6])
@pytest.mark.parametrize("threads", [1, 2])
def test_options_and_threads_change_no_bit(experts, threads):
    """Overlap, cache fusion and the team's size are only ways; one expert a rank: shallow path."""
    made = layer(experts=experts, n_shared=64)
    parts = [tokens(made, 7, seed=rank, k=2) for rank in range(2)]
    expected = gathered(run(made, parts))
    for options in OPTIONS:
        results = run(made, parts, options=options, threads=threads)
        assert_right(made, parts, results)
        for got, wanted in zip(gathered(results), expected, strict=True):
            np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("isa", ["amx_int8", "avx512_vnni", "avx_vnni", "avx2", "portable"])
def test_every_path_has_the_same_bits(isa):
    """What the best path computes, every other one computes: products are exact, fp32 is fixed."""
    if isa not in native.usable_isas():
        pytest.skip(f"this CPU or build lacks {isa}")
    made = layer(h=530, n=102, n_shared=66, smooth=True)
    t = tokens(made, 21, heavy=True)
    expected = gathered(run(made, [t]))
    for options in (Options(), Options(cache_fused=False)):
        for got, wanted in zip(
            gathered(run(made, [t], isa=isa, options=options)), expected, strict=True
        ):
            np.testing.assert_array_equal(got, wanted)


def test_ranks_may_have_different_numbers_of_tokens():
    """One rank without tokens takes part and returns nothing; the others are as if alone."""
    made = layer(n_shared=64)
    t = tokens(made, 12)
    parts = split(t, [5, 0, 6, 1])
    for way in ("fused", "small"):
        results = run(made, parts, way=way, max_bs=8, global_bs=32)
        assert results[1][0].shape == (0, 512)
        for got, wanted in zip(gathered(results), gathered(run(made, [t])), strict=True):
            np.testing.assert_array_equal(got, wanted)


def test_no_rank_has_tokens():
    """An empty call ends."""
    made = layer()
    for output, share, nums in run(made, split(tokens(made, 0), [0, 0]), max_bs=4, global_bs=8):
        assert output.shape == share.shape == (0, 512)
        assert not nums.any()


@pytest.mark.parametrize("rows", [255, 256, 257, 288, 385])
def test_many_rows_of_one_expert(rows):
    """All tokens choose one expert: blocks and their remainders, other experts empty."""
    made = layer(n=64, experts=4)
    sizes = [rows // 2, rows - rows // 2]
    t = tokens(made, rows, k=1)
    t = replace(t, expert_ids=np.full((rows, 1), 3, np.int32))
    parts = split(t, sizes)
    results = run(made, parts, max_bs=256, global_bs=512)
    assert_right(made, parts, results)
    assert results[1][2].tolist() == [0, rows]
    for got, wanted in zip(
        gathered(run(made, parts, way="small", max_bs=256, global_bs=512)),
        gathered(results), strict=True,
    ):  # fmt: skip
        np.testing.assert_array_equal(got, wanted)


def test_rows_of_zeros_and_of_tiny_values():
    """A zero row gives zeros, a row whose reciprocal overflows too; others are untouched."""
    made = layer(n_shared=64)
    t = tokens(made, 4)
    x = t.x.copy()
    x[1] = 0
    x[2] = np.float32(1e-39)
    results = run(made, [replace(t, x=x)])
    alone = run(made, [t])
    for i in range(2):
        assert not results[0][i][1:3].astype(np.float32).any()
        np.testing.assert_array_equal(results[0][i][[0, 3]], alone[0][i][[0, 3]])


def test_inactive_rows_are_zeros_in_output_but_not_in_share_output():
    """The mask cuts dispatch and combine; the shared expert sees all rows."""
    made = layer(n_shared=64)
    t = tokens(made, 6)
    ids = np.where(np.arange(6)[:, None] < 2, t.expert_ids, 999).astype(np.int32)
    masked = replace(t, x_active_mask=np.arange(6) < 2, expert_ids=ids)
    ((output, share, nums),) = run(made, [masked])
    ((full, full_share, _),) = run(made, [t])
    assert not output[2:].astype(np.float32).any()
    np.testing.assert_array_equal(output[:2], full[:2])
    np.testing.assert_array_equal(share, full_share)
    assert nums.sum() == 2 * 3


def written_sequence(made, t):
    """The operator in fp32 and int32 as its definition writes it; exp is the core's."""
    w, f32 = made.weights, np.float32
    output = np.zeros(t.x.shape, f32)
    for row, ids in enumerate(t.expert_ids):
        for j, e in enumerate(ids):
            v = t.x[row].astype(f32) * made.smooth[e]
            factor = f32(127) / np.abs(v).max()
            q, s = np.rint(v * factor).astype(np.int32), f32(1) / factor
            y = ((q @ w.gmm1_weight[e].astype(np.int32)).astype(f32) * w.gmm1_weight_scale[e]) * s
            gate, up = np.split(y, 2)
            minus, power = -gate, np.empty_like(gate)
            native.library().moe_ep_exp(minus.size, minus.ctypes.data, power.ctypes.data)
            z = (gate / (f32(1) + power)) * up
            largest = np.abs(z).max()
            q2 = np.rint((z * f32(127)) * (f32(1) / largest)).astype(np.int32)
            s2 = largest * (f32(1) / f32(127))
            c2 = (q2 @ w.gmm2_weight[e].astype(np.int32)).astype(f32)
            o = ((c2 * w.gmm2_weight_scale[e]) * s2).astype(t.x.dtype).astype(f32)
            output[row] = output[row] + o * t.expert_scales[row, j]
    return output.astype(t.x.dtype)


@pytest.mark.parametrize("dtype", [BF16, FP16])
def test_bits_are_those_of_the_written_fp32_sequence(dtype):
    """NumPy, operation by operation: nothing is contracted, reordered or approximated."""
    made = layer(h=600, n=150, smooth=True)
    t = tokens(made, 6, dtype=dtype, heavy=True)
    ((output, _, _),) = run(made, [t])
    np.testing.assert_array_equal(output.view(np.uint16), written_sequence(made, t).view(np.uint16))


def test_back_to_back_calls_on_one_group():
    """Many calls, one after another, without a barrier between them."""
    made = layer(n=32, experts=4)
    parts = [tokens(made, 3, seed=rank, k=2) for rank in range(2)]
    results = run(made, parts, calls=50)
    for got, wanted in zip(gathered(results), gathered(run(made, parts)), strict=True):
        np.testing.assert_array_equal(got, wanted)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    ranks=st.sampled_from([1, 2, 3]), local=st.sampled_from([1, 2, 3]),
    sizes=st.tuples(st.sampled_from([512, 513, 777]), st.integers(1, 90), st.integers(0, 70)),
    bs=st.lists(st.sampled_from([0, 1, 2, 9, 17, 40]), min_size=3, max_size=3),
    options=st.sampled_from(OPTIONS), seed=st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_any_sizes(*, ranks, local, sizes, bs, options, seed):
    """Random shapes, skips, masks and types: the oracle's result, the same bits in every way."""
    rng = np.random.default_rng(seed)
    (h, m, m_shared), experts = sizes, ranks * local
    dtype = BF16 if rng.random() < 0.5 else FP16
    made = layer(
        seed, h=h, n=2 * m, experts=experts, n_shared=2 * m_shared, smooth=rng.random() < 0.5
    )
    k = int(rng.integers(0, min(experts, 6) + 1))
    parts = [
        tokens(
            made, rows, seed=seed + rank, k=k, dtype=dtype, skip=0.2,
            masked=rows // 2 if rng.random() < 0.3 else None,
        )
        for rank, rows in enumerate(bs[:ranks])
    ]  # fmt: skip
    same = {"max_bs": 40, "global_bs": 40 * ranks}
    results = run(made, parts, **same)
    assert_right(made, parts, results)
    threads = int(rng.integers(1, 4))
    for again in (
        run(made, parts, options=options, threads=threads, **same),
        run(made, parts, way="small", threads=threads, as_list=True, **same),
    ):
        for got, wanted in zip(gathered(again), gathered(results), strict=True):
            np.testing.assert_array_equal(got, wanted)
