"""The core's scalar kernels: conversions bit by bit, the exponential, quantization, expandIdx."""

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moe_prof.ep import native
from moe_prof.errors import UnavailableError
from tests.moe_prof.ep.made import BF16, FP16

ISAS = ("amx_int8", "avx512_vnni", "avx_vnni", "avx2", "portable")


@pytest.fixture(params=ISAS)
def core(request):
    """The library of every path that runs here."""
    if request.param not in native.usable_isas():
        pytest.skip(f"this CPU or build lacks {request.param}")
    return native.library(request.param)


def converted(core, dtype, values):
    """fp32 to the bits of dtype."""
    values = np.ascontiguousarray(values, np.float32)
    out = np.empty(values.shape, np.uint16)
    code = native.dtype_code(dtype)
    assert core.moe_ep_from_f32(code, values.size, values.ctypes.data, out.ctypes.data) == 0
    return out


@pytest.mark.parametrize("dtype", [BF16, FP16])
def test_every_16_bit_value_becomes_fp32_and_back(core, dtype):
    """All 65536 patterns; NaN stay NaN."""
    bits = np.arange(65536, dtype=np.uint16)
    values = np.empty(bits.shape, np.float32)
    code = native.dtype_code(dtype)
    assert core.moe_ep_to_f32(code, bits.size, bits.ctypes.data, values.ctypes.data) == 0
    expected = bits.view(dtype).astype(np.float32)
    nan = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(values), nan)
    np.testing.assert_array_equal(values[~nan].view(np.uint32), expected[~nan].view(np.uint32))
    back = converted(core, dtype, values)
    np.testing.assert_array_equal(back[~nan], bits[~nan])
    assert np.isnan(back[nan].view(dtype).astype(np.float32)).all()


@pytest.mark.parametrize("dtype", [BF16, FP16])
def test_fp32_rounds_half_to_even(core, dtype):
    """Halves, values beside them, denormals and overflows: as NumPy casts."""
    bits = np.arange(0, 65536, dtype=np.uint32)
    halves = (bits << 16) | np.uint32(0x8000)
    rng = np.random.default_rng(0)
    patterns = np.concatenate(
        [halves, halves - 1, halves + 1, rng.integers(0, 2**32, 200_000, dtype=np.uint32)]
    ).astype(np.uint32)
    values = np.concatenate(
        [patterns.view(np.float32), np.ldexp(1.0 + np.arange(4096) / 2048, -25).astype(np.float32)]
    )
    with np.errstate(over="ignore", invalid="ignore"):
        expected = values.astype(dtype)
    nan = np.isnan(values)
    np.testing.assert_array_equal(
        converted(core, dtype, values)[~nan], expected.view(np.uint16)[~nan]
    )


def test_the_exponential_is_accurate_and_the_same_on_every_path(core):
    """Below 2 ulp over its range; infinite above, tiny below, NaN stays."""
    values = np.concatenate(
        [np.linspace(-87.3, 88.72, 100_001), np.linspace(-1, 1, 20_001), [0.0, -0.0]]
    ).astype(np.float32)
    out = np.empty_like(values)
    core.moe_ep_exp(values.size, values.ctypes.data, out.ctypes.data)
    exact = np.exp(values.astype(np.float64))
    error = np.abs(out - exact) / np.spacing(exact.astype(np.float32)).astype(np.float64)
    assert error.max() < 2.0
    best = np.empty_like(values)
    native.library().moe_ep_exp(values.size, values.ctypes.data, best.ctypes.data)
    np.testing.assert_array_equal(out, best)
    edges = np.array([89, 1e30, np.inf, -100, -np.inf], np.float32)
    core.moe_ep_exp(edges.size, edges.ctypes.data, out.ctypes.data)
    assert np.isinf(out[:3]).all()
    np.testing.assert_allclose(out[3:5], math.exp(-87.336), rtol=1e-5)


@pytest.mark.parametrize("dtype", [BF16, FP16])
def test_quantization_is_the_written_fp32_sequence(core, dtype):
    """Bit by bit what NumPy computes in fp32, ties included, with and without smoothing."""
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [rng.standard_normal((20, 519)), rng.standard_t(1.5, (20, 519)), np.zeros((1, 519))]
    ).astype(dtype)
    smooth = rng.uniform(0.1, 9, 519).astype(np.float32)
    for scales in (None, smooth):
        v = x.astype(np.float32) * (np.float32(1) if scales is None else scales)
        largest = np.abs(v).max(axis=1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.float32(127) / largest
            expected = np.nan_to_num(np.rint(v * factor))
        q, scale = native.quantize(x, scales, core)
        np.testing.assert_array_equal(q, expected)
        np.testing.assert_array_equal(scale, (np.float32(1) / factor)[:, 0])


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.tuples(st.integers(0, 64), st.integers(0, 64), st.integers(8, 256)),
    seed=st.integers(0, 2**32 - 1), skipped=st.sampled_from([0.0, 0.3, 1.0]),
)  # fmt: skip
def test_the_table_gives_the_expand_idx_of_the_count(sizes, seed, skipped):
    """Small batches: prefix sums over a uint8 table and counting choice by choice agree."""
    (bs, active, experts), k = sizes, 8
    rng = np.random.default_rng(seed)
    active = min(active, bs)
    ids = np.array([rng.permutation(experts)[:k] for _ in range(bs)], np.int32).reshape(bs, k)
    ids[rng.random(ids.shape) < skipped] = -1
    by_count = native.route(ids, active, experts, 1)
    for method in (0, 2):
        for got, expected in zip(native.route(ids, active, experts, method), by_count, strict=True):
            np.testing.assert_array_equal(got, expected)
    seen = {}
    for place in np.ndindex(active, k):
        expert = ids[place]
        expected = -1 if expert < 0 else seen.get(expert, 0)
        assert by_count[0][place] == expected
        seen[expert] = expected + 1
    assert (by_count[0][active:] == -1).all()
    assert by_count[1].sum() == (ids[:active] >= 0).sum()


@pytest.mark.parametrize(("bs", "k", "experts"), [(65, 8, 64), (64, 7, 64), (64, 8, 257)])
def test_the_table_serves_small_batches_only(bs, k, experts):
    """Beyond its sizes it is refused, the count still serves."""
    ids = np.tile(np.arange(k, dtype=np.int32), (bs, 1))
    with pytest.raises(UnavailableError, match="route by method 2: not for these sizes"):
        native.route(ids, bs, experts, 2)
    assert native.route(ids, bs, experts)[1].max() == bs


def test_dtypes_of_numpy_and_the_core_agree():
    """bf16 is ml_dtypes' type."""
    assert np.dtype(ml_dtypes.bfloat16) == native.BF16
    assert native.dtype_code(BF16) == 0
    assert native.dtype_code(FP16) == 1
