"""The microkernels of each x86 path by themselves, called through ctypes, against NumPy.

Every test runs natively where the CPU has the path, and on the emulated CPU (tests/emulation) for
the paths that few CPUs have.
"""

import ctypes
import re
import shutil
import subprocess

import numpy as np
import pytest

from moe_prof.kernels.compiler import find_compiler
from moe_prof.kernels.features import read_cpu, supported
from tests.kernels.isa_kernels import PACKED, PATHS
from tests.kernels.packed_calls import (
    Kernels,
    aligned,
    packed_panel,
    pointer,
    pointers,
    product,
    quantized_row,
    random_rows,
    row_bytes,
    row_of,
    side_by_side,
    size,
    values_of,
)

FLAGS = ("-std=c++17", "-O3", "-ffp-contract=off", "-fPIC", "-DMOE_CHECK_MICROKERNELS", "-shared")
EMULATED = ("avx_vnni", "avx512_vnni")
RUNS = [(path, "native") for path in PATHS]
RUNS += [(path, "emulated") for path in PATHS if path.isa in EMULATED]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A function that compiles a path's kernels, each path once."""

    done = {}

    def compile_path(path):
        if path.isa in done:
            return done[path.isa]
        out = tmp_path_factory.mktemp("microkernels") / f"lib{path.isa}.so"
        sources = map(str, path.sources())
        argv = [*find_compiler().argv, *FLAGS, *path.flags, "-o", str(out), *sources]
        subprocess.run(argv, check=True, capture_output=True)
        return done.setdefault(path.isa, out)

    return compile_path


@pytest.fixture(scope="module", params=RUNS, ids=lambda run: f"{run[0].isa}-{run[1]}")
def lib(request, compiled):
    """The kernels of each path, on this CPU if it has the path, or on the emulated one."""
    path, where = request.param
    if where == "native" and path.isa not in supported(read_cpu()):
        pytest.skip(f"this CPU lacks the path {path.isa}")
    cpu = request.getfixturevalue("emulated_cpu") if where == "emulated" else None
    return Kernels(path, compiled(path), cpu)


@pytest.mark.parametrize("k", [1, 3, 4, 5, 31, 32, 33, 36, 64, 100, 257])
def test_product_is_exact_for_the_whole_int8_range(lib, k):
    """Random weights of -128..127 against random rows give NumPy's int64 product, in each tile."""
    rng = np.random.default_rng(k)
    weights = rng.integers(-128, 128, (lib.path.nr, k)).astype(np.int8)
    for m in range(1, lib.path.mr + 1):
        q = random_rows(rng, m, k)
        expected = q.astype(np.int64) @ weights.T.astype(np.int64)
        np.testing.assert_array_equal(product(lib, weights, q), expected)


@pytest.mark.parametrize("k", [1, 4, 31, 100])
def test_product_with_several_panels_is_exact(lib, k):
    """One call gives what the products with each of three panels are, in each tile."""
    path = lib.path
    rng = np.random.default_rng(k)
    weights = rng.integers(-128, 128, (3, path.nr, k)).astype(np.int8)
    panels = aligned(3 * path.panel_bytes(k))
    panels[:] = np.concatenate([packed_panel(lib, panel) for panel in weights])
    for m in range(0 if path.near else 1, path.mr + 1):  # 0: the other kernel for one row
        q = random_rows(rng, m or 1, k)
        rows = side_by_side([row_of(lib, row) for row in q])
        acc = np.full((len(q), 3 * path.nr + 3), 77, dtype=np.int32)
        if m == 0:
            lib.multiply_panels(path.near, k, rows, panels, acc)
        else:
            lib.multiply(k, rows, panels, acc)
        expected = q.astype(np.int64) @ weights.reshape(-1, k).T.astype(np.int64)
        np.testing.assert_array_equal(acc[:, :-3], expected)
        assert (acc[:, -3:] == 77).all()


@pytest.mark.parametrize("weight", [-128, -127, -1, 0, 1, 127])
@pytest.mark.parametrize("value", [-127, 127, "alternating"])
def test_product_does_not_saturate(lib, weight, value):
    """Constant weights against rows of +-127: the largest sums that int16 and int32 steps meet."""
    k = 1024
    weights = np.full((lib.path.nr, k), weight, dtype=np.int8)
    for m in range(1, lib.path.mr + 1):
        q = np.full((m, k), 127 if value == "alternating" else value, dtype=np.int8)
        if value == "alternating":
            q[:, ::2] = -127
        expected = q.astype(np.int64) @ weights.T.astype(np.int64)
        np.testing.assert_array_equal(product(lib, weights, q), expected)


@pytest.mark.parametrize("value", [-127, 127])
def test_longest_product_stays_exact(lib, value):
    """K = 132104, the largest whose worst sum fits int32, at that worst case."""
    k = (2**31 - 1) // (127 * 128)
    weights = np.full((2, k), -128, dtype=np.int8)
    for m in (1, lib.path.mr):
        q = np.full((m, k), value, dtype=np.int8)
        np.testing.assert_array_equal(product(lib, weights, q), value * -128 * k)


@pytest.mark.parametrize("pairs", [1, 3, 64])
def test_candidates_product_is_exact(lib, pairs):
    """int16 products over two blocks of d, for each number of rows; other rows are not written."""
    path, nr, d = lib.path, lib.path.nr, 2 * pairs
    most = int(path.names["candidates"].split("_")[2].split("x")[0])
    rng = np.random.default_rng(pairs)
    weights = rng.integers(-32767, 32768, (nr, d)).astype(np.int16)
    weights[0], weights[1] = 32767, -32767
    panel = aligned(2 * path.panel16_values(d)).view(np.int16)
    lib.of("pack_candidates")(size(d), pointers([*weights]), pointer(panel))
    x = rng.integers(-80, 81, (most, d)).astype(np.int16)
    rows = aligned(2 * most * path.row16_values(d)).view(np.int16).reshape(most, -1)
    for row, values in zip(rows, x.astype(np.float32), strict=True):
        left_over = lib["f32_qs16_quantize"](
            size(d), pointer(values), ctypes.c_float(1), pointer(row)
        )
        assert left_over == 0
    expected = x.astype(np.int64) @ weights.T.astype(np.int64)
    for m in range(1, most + 1):
        acc = np.full((most, nr + 3), 77, dtype=np.int32)
        if path.least_tile_rows:
            lib["configure_tiles"](size(32))
        for first in (1, 0):
            lib.of("candidates")(
                size(m), size(pairs), pointers([*rows[:m]]), pointer(panel), ctypes.c_int(first),
                pointer(acc), size(nr + 3),
            )  # fmt: skip
        if path.least_tile_rows:
            lib["release_tiles"]()
        np.testing.assert_array_equal(acc[:m, :nr], 2 * expected[:m])
        assert (acc[m:] == 77).all()
        assert (acc[:, nr:] == 77).all()


def test_missing_channels_are_zero(lib):
    """Channels beyond the matrix give products of zero."""
    rng = np.random.default_rng(5)
    panel = packed_panel(lib, rng.integers(-128, 128, (3, 33)).astype(np.int8))
    row = row_of(lib, random_rows(rng, 1, 33)[0])
    acc = np.full(lib.path.nr, 77, dtype=np.int32)
    lib.multiply(33, [row], panel, acc)
    np.testing.assert_array_equal(acc[3:], 0)


@pytest.mark.parametrize("n", [1, 7, 8, 9, 31, 32, 33, 96, 100])
def test_quantization_is_the_reference_bit_for_bit(lib, n):
    """q = rint(v * (127 / a)) in fp32, half to even, and the padding is zero."""
    values = np.random.default_rng(n).standard_normal(n).astype(np.float32) * np.float32(37)
    row, scale = quantized_row(lib, values)
    largest = np.abs(values).max()
    expected = np.rint(values * (np.float32(127) / largest)).astype(np.int8)
    quantized = values_of(lib, row)
    np.testing.assert_array_equal(quantized[:n], expected)
    assert scale == largest / np.float32(127)
    assert not quantized[n:].any()


def test_quantization_rounds_half_to_even(lib):
    """Values exactly between two integers go to the even one."""
    values = np.array([127, 0.5, 1.5, 2.5, -0.5, -1.5, -126.5, 126.5], dtype=np.float32)
    row, _ = quantized_row(lib, values)
    expected = [127, 0, 2, 2, 0, -2, -126, 126]
    np.testing.assert_array_equal(values_of(lib, row)[:8], expected)


@pytest.mark.parametrize("largest", [0.0, 1e-45, 2.0**-101])
def test_vanishing_row_has_scale_zero(lib, largest):
    """A row with max |v| below 2^-100 becomes zeros with scale 0, never NaN."""
    values = np.array([largest, -largest, 0.0], dtype=np.float32)
    row, scale = quantized_row(lib, values)
    assert scale == 0.0
    assert not values_of(lib, row).any()


def test_overflowed_row_stays_within_127(lib):
    """Infinite and NaN values of an overflowed h never become -128, which the kernels exclude."""
    values = np.array([np.inf, -np.inf, np.nan, 1.0], dtype=np.float32)
    row = aligned(row_bytes(lib, 4))
    lib.of("quantize")(size(4), pointer(values), ctypes.c_float(np.inf), pointer(row))
    assert values_of(lib, row)[:4].min() >= -127


def ulp_error(lib, values):
    """Largest error of the vector exp, in units in the last place of the exact result."""
    out = np.empty_like(values)
    lib["f32_exp"](size(values.size), pointer(values), pointer(out))
    exact = np.exp(values.astype(np.float64))
    ulp = np.spacing(exact.astype(np.float32)).astype(np.float64)
    return np.max(np.abs(out - exact) / ulp)


def stated_exp_bound():
    """MOE_EXP_MAX_ULP of the source."""
    text = (PACKED / "avx2" / "exp__avx2.h").read_text()
    return float(re.search(r"#define MOE_EXP_MAX_ULP ([\d.]+)", text)[1])


@pytest.mark.parametrize(("sign", "clamp"), [(0, 88.722), (1 << 31, 87.336)])
def test_exp_keeps_its_stated_bound(lib, sign, clamp):
    """Every 509th float from 0 to the clamp, in ulp against double precision."""
    last = int(np.float32(clamp).view(np.uint32))
    bits = np.arange(0, last, 509, dtype=np.uint32) + np.uint32(sign)
    assert ulp_error(lib, bits.view(np.float32)) <= stated_exp_bound()


def test_exp_is_clamped(lib):
    """Beyond the clamps the result stays a normal number, for infinities too."""
    values = np.array([-np.inf, -1000, -88, 89, 1000, np.inf, 0.0, -0.0], dtype=np.float32)
    out = np.empty_like(values)
    lib["f32_exp"](size(8), pointer(values), pointer(out))
    assert (np.diff(out[:6]) >= 0).all()
    assert np.finfo(np.float32).tiny <= out[0] < 1.2e-38
    assert 3.39e38 < out[5] <= np.finfo(np.float32).max
    np.testing.assert_array_equal(out[6:], 1.0)


@pytest.mark.parametrize("one", [True, False])
@pytest.mark.parametrize("kc", [1, 3, 4, 33, 128])
def test_router_block_adds_to_what_is_there(lib, one, kc):
    """Two blocks give the whole product for each number of rows; others are not written."""
    kernel = "f32_router_1x16" if one else lib.path.names["router"]
    most = int(kernel.rpartition("_")[2].partition("x")[0])
    rng = np.random.default_rng(kc)
    x = rng.standard_normal((most, 2 * kc)).astype(np.float32)
    panel = rng.standard_normal((2 * kc, 16)).astype(np.float32)
    for mr in range(1, most + 1):
        z = np.full((most + 1, 20), 77, dtype=np.float32)
        for block in (0, 1):
            part = slice(block * kc, (block + 1) * kc)
            lib[kernel](
                size(mr), size(kc), pointers([row[part] for row in x[:mr]]), pointer(panel[part]),
                ctypes.c_int(block == 0), pointer(z), size(20),
            )  # fmt: skip
        np.testing.assert_allclose(z[:mr, :16], x[:mr] @ panel, rtol=1e-4, atol=1e-4)
        assert (z[mr:] == 77).all()
        assert (z[:, 16:] == 77).all()


@pytest.mark.parametrize("n", [1, 7, 16, 33, 257])
def test_sigmoid_scores(lib, n):
    """Affinity within 4 * 2^-24 of the sigmoid, score = affinity + bias."""
    rng = np.random.default_rng(n)
    z = (rng.standard_normal(n) * 20).astype(np.float32)
    bias = rng.standard_normal(n).astype(np.float32)
    affinity, score = np.empty_like(z), np.empty_like(z)
    finite = lib["f32_sigmoid_scores"](
        size(n), pointer(z), pointer(bias), pointer(affinity), pointer(score)
    )
    assert finite == 1
    exact = 1 / (1 + np.exp(-z.astype(np.float64)))
    assert np.max(np.abs(affinity - exact)) <= 4 * 2.0**-24
    np.testing.assert_array_equal(score, affinity + bias)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_sigmoid_scores_report_non_finite_input(lib, value):
    """One infinity or NaN in the last, partial vector is reported."""
    z = np.zeros(19, dtype=np.float32)
    z[18] = value
    affinity, score = np.empty_like(z), np.empty_like(z)
    finite = lib["f32_sigmoid_scores"](
        size(19), pointer(z), pointer(z), pointer(affinity), pointer(score)
    )
    assert finite == 0


@pytest.mark.parametrize("n", [1, 8, 19])
@pytest.mark.parametrize("threshold", [-10.0, 0.0, 10.0])
def test_find_above_visits_every_value(lib, n, threshold):
    """Searching on from each hit lists exactly the values above the threshold."""
    scores = np.random.default_rng(n).standard_normal(n).astype(np.float32)
    found, at = [], 0
    while at < n:
        at = lib["f32_find_above"](size(at), size(n), pointer(scores), ctypes.c_float(threshold))
        found.append(at)
        at += 1
    assert [i for i in found if i < n] == np.flatnonzero(scores > threshold).tolist()


@pytest.mark.parametrize("n", [1, 9, 16, 31, 100])
def test_combine_is_in_the_given_order(lib, n):
    """x, then each part times its gate, multiplied and then added, in fp32."""
    rng = np.random.default_rng(n)
    x, *parts = rng.standard_normal((4, n)).astype(np.float32)
    gates = rng.standard_normal(3).astype(np.float32)
    y = np.full(n + 1, 77, dtype=np.float32)
    lib["f32_combine"](size(n), pointer(x), pointers(parts), pointer(gates), size(3), pointer(y))
    expected = x
    for gate, part in zip(gates, parts, strict=True):
        expected = expected + gate * part
    np.testing.assert_array_equal(y[:n], expected)
    assert y[n] == 77


def test_swiglu_of_a_dual_panel(lib):
    """h = SiLU(g) * u from the gate and up channels; the largest |h| is returned."""
    nr, half = lib.path.nr, lib.path.nr // 2
    rng = np.random.default_rng(3)
    acc = rng.integers(-(2**20), 2**20, (5, nr)).astype(np.int32)
    scales = (rng.random((5, nr)) * 1e-4).astype(np.float32)
    h = np.empty(5 * half, dtype=np.float32)
    largest = lib.of("swiglu")(
        size(5), pointer(acc), pointer(scales), ctypes.c_float(0.5), pointer(h)
    )
    value = acc * (0.5 * scales.astype(np.float64))
    gate, up = value[:, :half], value[:, half:]
    np.testing.assert_allclose(h.reshape(5, half), gate / (1 + np.exp(-gate)) * up, rtol=1e-5)
    assert largest == np.abs(h).max()


@pytest.mark.parametrize("mr", [1, 4])
def test_dequantize_writes_its_channels_only(lib, mr):
    """f32(acc) * (h_scale * scale) at the panel's place in each row."""
    nr = lib.path.nr
    rng = np.random.default_rng(mr)
    acc = rng.integers(-(2**24), 2**24, (mr, nr)).astype(np.int32)
    scales = rng.random(3 * nr).astype(np.float32)
    h_scale = rng.random(mr).astype(np.float32)
    out = np.full((mr, 3 * nr), 77, dtype=np.float32)
    lib["s32_f32_dequantize"](
        size(mr), size(nr), pointer(acc), size(nr), pointer(scales),
        pointer(h_scale), size(nr), pointers(list(out)),
    )  # fmt: skip
    middle = slice(nr, 2 * nr)
    expected = acc.astype(np.float32) * (h_scale[:, None] * scales[middle])
    np.testing.assert_array_equal(out[:, middle], expected)
    assert (np.delete(out, np.r_[middle], axis=1) == 77).all()


def test_exact_int8_instructions_are_in_the_code(lib):
    """Each tile multiplies by the instructions that make it exact and fast."""
    objdump = shutil.which("objdump")
    if objdump is None:
        pytest.skip("objdump is not installed (binutils)")
    done = subprocess.run(
        [objdump, "-d", "--no-show-raw-insn", str(lib.file)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    for rows in range(1, lib.path.mr + 1):
        pattern = rf"<moe_{lib.path.gemm(rows)}__\w+>:\n(.*?)\n\n"
        body = re.search(pattern, done.stdout, re.DOTALL)[1]
        assert lib.path.instructions & set(re.findall(r"\b[tv]d?p\w+", body))
        if lib.path.isa != "avx2":  # all accumulators stay in registers
            assert not re.findall(r"vmovdq\w+ .*,-?0x\w+\(%r[sb]p\)", body)
