"""The candidate router: its choice against the oracle's, its bounds against exact scores."""

import ctypes
import os
import subprocess
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moe_prof import kernels
from moe_prof.kernels import oracle
from moe_prof.kernels.build import SOURCE_DIR
from moe_prof.kernels.compiler import find_compiler
from moe_prof.kernels.features import read_cpu, supported
from tests.kernels.isa_kernels import PATHS
from tests.kernels.layers import layer, with_changes

CPP = SOURCE_DIR / "cpp"
HERE = os.path.dirname(__file__)
EMULATION = os.path.join(HERE, "..", "emulation")
FLAGS = ("-std=c++17", "-O2", "-ffp-contract=off", "-fPIC", "-shared")
CONTRACTS = "-DMOE_CHECK_MICROKERNELS"

pytestmark = pytest.mark.skipif(
    "avx2" not in supported(read_cpu()), reason="this CPU has no AVX2 path (x86-64-v3)"
)


class Routed(NamedTuple):
    """What the router says of n tokens; counts of 0: all experts were scored."""

    ids: np.ndarray
    gates: np.ndarray
    counts: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


@pytest.fixture(scope="module", params=PATHS, ids=lambda path: path.isa)
def route(request, tmp_path_factory):
    """A function (router, bias, top_k, x, block=1) to Routed, on each path that this CPU has.

    The AMX path's tiles are a model (tests/emulation/amx_shim.h) where the CPU has the rest of it.
    """
    path, here = request.param, supported(read_cpu())
    modelled = path.isa == "amx_int8" and path.isa not in here and "avx512_vnni" in here
    if path.isa not in here and not modelled:
        pytest.skip(f"this CPU lacks the path {path.isa}")
    model = ('-DMOE_AMX_SHIM="amx_shim.h"', f"-I{EMULATION}") if modelled else ()
    out = tmp_path_factory.mktemp("candidates") / "libcandidates.so"
    sources = [CPP / "packed" / "route.cpp", CPP / "packed" / "router_candidates.cpp"]
    sources += [*path.sources(), *path.tables()]
    includes = (f"-I{CPP}", f"-I{SOURCE_DIR / 'include'}")
    argv = [
        *find_compiler().argv,
        *FLAGS,
        *path.flags,
        CONTRACTS,
        *model,
        *includes,
        "-o",
        str(out),
    ]
    argv += [os.path.join(HERE, "router_candidates.cpp"), *map(str, sources)]
    subprocess.run(argv, check=True, capture_output=True)
    function = ctypes.CDLL(str(out)).route_by_candidates

    def call(router, bias, top_k, x, block=1):
        router, bias, x = (np.ascontiguousarray(v, dtype=np.float32) for v in (router, bias, x))
        n, (e, d) = len(x), router.shape
        routed = Routed(
            np.full((n, top_k), -1, np.int32), np.zeros((n, top_k), np.float32),
            np.zeros(n, np.int32), np.zeros((n, e), np.float32), np.zeros((n, e), np.float32),
        )  # fmt: skip
        address = [ctypes.c_void_p(v.ctypes.data) for v in (router, bias, x, *routed)]
        status = function(*address[:2], d, e, top_k, address[2], n, block, *address[3:])
        return None if status else routed

    return call


def oracle_routing(router, bias, top_k, x):
    """The oracle's routing of the same."""
    e, d = router.shape
    w, _ = layer(1, d, 1, e, top_k)
    w = with_changes(w, router=np.asarray(router, np.float32), bias=np.asarray(bias, np.float32))
    return oracle.routing(w, np.ascontiguousarray(x, dtype=np.float32))


def seeded(n=24, d=96, e=128, k=4, seed=0):
    """Router, bias, top_k and tokens of one shape."""
    w, x = layer(n, d, 1, e, k, seed=seed)
    return w.router, w.bias, k, x


def heavy(shape, seed):
    """Values of Student's t with two degrees of freedom: outliers of any size."""
    return np.random.default_rng(seed).standard_t(2, shape).astype(np.float32)


def assert_oracles_choice(route, router, bias, top_k, x):
    """The ids are the oracle's, the gates its within fp32; returns what was routed."""
    routed = route(router, bias, top_k, x)
    expected = oracle_routing(router, bias, top_k, x)
    np.testing.assert_array_equal(routed.ids, expected.ids)
    np.testing.assert_allclose(routed.gates, expected.gates, rtol=2e-4)
    return routed


@pytest.mark.parametrize(
    ("e", "d", "k"),
    [(512, 512, 2), (257, 33, 3), (256, 100, 8), (1024, 31, 32), (64, 1, 2), (40, 2050, 1)],
)
def test_random_tokens(route, e, d, k):
    """Seeded tokens over shapes around the edges of tiles, and most of them by candidates."""
    routed = assert_oracles_choice(route, *seeded(24, d, e, k))
    assert (routed.counts > 0).mean() > 0.5
    assert (routed.counts[routed.counts > 0] >= k).all()


def test_candidates_are_few(route):
    """For S4's shape the bound leaves fewer than three experts per token."""
    routed = route(*seeded(64, 512, 512, 2))
    assert routed.counts.min() > 0
    assert routed.counts.mean() < 3


@pytest.mark.parametrize("seed", range(3))
def test_heavy_tails(route, seed):
    """Tokens and router rows with outliers of any size."""
    _, bias, k, _ = seeded(e=256)
    assert_oracles_choice(route, heavy((256, 96), seed) / 30, bias, k, heavy((24, 96), seed + 9))


def test_rows_of_all_sizes(route):
    """Router rows whose norms differ by a factor of 10^8."""
    router, bias, k, x = seeded(e=256)
    sizes = np.logspace(-6, 2, 256)[:, None].astype(np.float32)
    assert_oracles_choice(route, router * sizes, bias, k, x)


def test_duplicated_rows_choose_the_lower_index(route):
    """Exact ties, every row three times at distant places."""
    router, _, k, x = seeded(e=64)
    assert_oracles_choice(route, np.tile(router, (3, 1)), np.zeros(192, np.float32), k, x)


@pytest.mark.parametrize("size", [1e-7, 1e-6, 1e-5, 1e-4, 1e-3])
@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_near_ties(route, size, scale):
    """Rows in fours that differ by one part in 10^7..10^3, also with saturated scores."""
    router, _, k, x = seeded(e=64)
    router = np.repeat(router, 4, axis=0) * np.float32(scale)
    noise = np.random.default_rng(1).standard_normal(router.shape)
    router = (router * (1 + size * noise)).astype(np.float32)
    assert_oracles_choice(route, router, np.zeros(256, np.float32), k, x)


def test_all_rows_equal(route):
    """All experts tie: the first K are chosen, after all have been scored."""
    router, _, k, x = seeded()
    router = np.repeat(router[:1], 128, axis=0)
    routed = assert_oracles_choice(route, router, np.zeros(128, np.float32), k, x)
    np.testing.assert_array_equal(routed.counts, 0)


@pytest.mark.parametrize("ulps", [0, 1, 3])
def test_biases_decide(route, ulps):
    """Equal rows whose biases differ in the last place of fp32, or are equal."""
    router, _, k, x = seeded()
    router = np.repeat(router[:8], 16, axis=0)
    bias = np.float32(0.5) + (np.arange(128) * 7 % 16 * ulps).astype(np.float32) * 2.0**-24
    assert_oracles_choice(route, router, bias, k, x)


def test_large_biases(route):
    """Biases far larger than any affinity order the experts."""
    router, _, k, x = seeded()
    bias = (np.arange(128) * 37 % 128).astype(np.float32) * 10
    assert_oracles_choice(route, router, bias, k, x)


@pytest.mark.parametrize("size", [1e-42, 1e-30, 1e-12, 1e-3, 1e3, 1e6, 1e15])
def test_huge_and_tiny_tokens(route, size):
    """Tokens of any size: ties of saturated scores, ties of vanishing ones."""
    router, bias, k, x = seeded()
    assert_oracles_choice(route, router, bias, k, x * np.float32(size))


def test_zero_tokens_and_rows(route):
    """Tokens of zeros beside others, and a few rows of zeros."""
    router, bias, k, x = seeded()
    router, x = router.copy(), x.copy()
    router[5::16], x[::3] = 0, 0
    assert_oracles_choice(route, router, bias, k, x)


@pytest.mark.parametrize("size", [1e-20, 1e-38, 1e-44])
def test_tiny_rows(route, size):
    """Rows too small to be quantized are candidates by their norm alone."""
    router, bias, k, x = seeded()
    router = router.copy()
    router[::2] *= np.float32(size)
    assert_oracles_choice(route, router, bias, k, x)


def test_one_large_value(route):
    """A token of one non-zero value and rows of one: the largest int16 values."""
    router = np.zeros((128, 96), np.float32)
    router[np.arange(128), np.arange(128) % 96] = np.linspace(0.5, 2, 128)
    x = np.zeros((8, 96), np.float32)
    x[np.arange(8), np.arange(8)] = np.linspace(-3, 3, 8)
    assert_oracles_choice(route, router, np.linspace(0, 0.1, 128), 2, x)


@pytest.mark.parametrize("k", [32, 16])
def test_all_experts_chosen(route, k):
    """K = E and K = E / 2: the candidates are too many, all experts are scored."""
    routed = assert_oracles_choice(route, *seeded(8, 33, 32, k))
    np.testing.assert_array_equal(routed.counts, 0)


@pytest.mark.parametrize("value", [np.inf, np.nan, 1e19])
def test_rows_without_a_bound(route, value):
    """A router row whose norm is no usable number leaves the router not ready."""
    router, bias, k, x = seeded()
    router = router.copy()
    router[77, 3] = value
    assert route(router, bias, k, x) is None


@pytest.mark.parametrize("block", [5, 6, 7, 24])
def test_blocks_do_not_change_the_result(route, block):
    """A token's ids and gates are the same bits in any block of tokens."""
    arguments = seeded()
    one, several = route(*arguments), route(*arguments, block=block)
    np.testing.assert_array_equal(one.ids, several.ids)
    np.testing.assert_array_equal(one.gates, several.gates)


def exact_scores(router, bias, x):
    """(N, E) f64 scores; the products are exact, the sums within 10^-12 of a bound's slack."""
    z = x.astype(np.longdouble) @ router.T.astype(np.longdouble)
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-z)) + bias.astype(np.longdouble)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    d=st.integers(1, 130),
    e=st.integers(9, 70),
    tails=st.sampled_from(["normal", "heavy", "one"]),
    x_size=st.floats(-8, 8),
    row_sizes=st.floats(0, 6),
)
def test_bounds_hold(route, *, seed, d, e, tails, x_size, row_sizes):
    """lower <= exact score <= upper for every expert, whatever the sizes and tails."""
    rng = np.random.default_rng(seed)
    draw = {
        "normal": rng.standard_normal,
        "heavy": lambda shape: rng.standard_t(1, shape),
        "one": lambda shape: rng.standard_normal(shape) * (rng.random(shape) < 1.5 / shape[1]),
    }[tails]
    x = (draw((6, d)) * 10.0**x_size).astype(np.float32)
    sizes = 10.0 ** rng.uniform(-row_sizes, 0, (e, 1))
    router = (draw((e, d)) * sizes / np.sqrt(d)).astype(np.float32)
    bias = rng.uniform(-1, 1, e).astype(np.float32)
    routed = route(router, bias, 1, x)
    bounded = routed.counts > 0
    score = exact_scores(router, bias, x)[bounded]
    assert (routed.lower[bounded] <= score).all()
    assert (score <= routed.upper[bounded]).all()


def test_bounds_are_near(route):
    """The bound of a score is within 0.01 for S4's shape: the router is worth something."""
    routed = route(*seeded(32, 512, 512, 2))
    assert (routed.upper - routed.lower).max() < 0.02


@pytest.mark.parametrize("isa", [path.isa for path in PATHS])
def test_packed_routes_by_candidates(isa):
    """packed takes this way for a large router, and its ids are the oracle's."""
    if isa not in supported(read_cpu()):
        pytest.skip(f"this CPU lacks the path {isa}")
    w, x = layer(40, 256, 8, 512, 2)
    small, _ = layer(40, 256, 8, 511, 2)
    sizes = []
    for weights in (w, small):
        with kernels.variant("packed").prepare(weights, threads=2, isa=isa) as plan:
            plan.forward(x)
            ids = plan.routing(40).ids
            sizes.append(plan.info.weight_bytes)
        np.testing.assert_array_equal(ids, oracle.routing(weights, x).ids)
    assert sizes[0] - sizes[1] > 512 * 256 * 2
