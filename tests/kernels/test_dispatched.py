"""The dispatched variant: every path of its table runs where it should and computes the same."""

import numpy as np
import pytest

from moe_prof import kernels
from moe_prof.errors import InputError
from moe_prof.kernels.build import SOURCE_DIR
from moe_prof.kernels.features import read_cpu, supported
from moe_prof.kernels.oracle import errors
from moe_prof.kernels.table import BY_NAME
from tests.kernels.layers import filled, layer, with_changes

SPEC = BY_NAME["dispatched"]
TABLE = SOURCE_DIR / "cpp" / "packed" / "dispatch_table.h"

pytestmark = pytest.mark.skipif(
    not set(SPEC.isas) & set(supported(read_cpu())),
    reason=f"this CPU has none of the paths of dispatched: {', '.join(SPEC.isas)}",
)

SHAPES = {
    ("one_token", 1): (1, 256, 128, 16, 4),
    ("one_token", 2): (1, 33, 31, 9, 3),
    ("one_token_team", 2): (1, 256, 128, 16, 4),
    ("one_token_team", 3): (1, 257, 129, 17, 5),
    ("one_token_team", 4): (1, 512, 96, 33, 2),
    ("block", 1): (40, 100, 33, 9, 3),
    ("block", 2): (3, 33, 31, 9, 3),
    ("few_tokens", 2): (2, 1031, 173, 5, 2),
    ("few_tokens", 3): (31, 600, 300, 3, 1),
    ("few_tokens", 4): (3, 257, 129, 17, 5),
    ("by_token", 2): (70, 256, 128, 4, 2),
    ("by_token", 3): (141, 131, 65, 5, 2),
    ("by_token", 4): (200, 99, 100, 6, 3),
    ("by_expert", 2): (32, 1031, 173, 4, 2),
    ("by_expert", 3): (33, 433, 409, 7, 4),
    ("by_expert", 4): (100, 4100, 43, 3, 1),
}
"""A shape for every row of the table: (path, threads) -> (N, D, H, E, K)."""

HERE = [isa for isa in SPEC.isas if isa in supported(read_cpu())]

each_isa = pytest.mark.parametrize("isa", HERE)
each_row = pytest.mark.parametrize(
    ("path", "threads"), SHAPES, ids=[f"{path}-{threads}" for path, threads in SHAPES]
)


def prepare(w, threads, max_tokens, isa=None):
    """A plan of dispatched."""
    options = {"threads": threads, "max_tokens": max_tokens, "isa": isa}
    return kernels.variant("dispatched").prepare(w, **options)


def assert_within_table(y, w, x):
    """Equal to the oracle within the tolerance that the table states."""
    found = errors(y, kernels.reference(w, x))
    assert found.rel_rmse <= SPEC.rel_rmse, found
    assert found.worst_error <= SPEC.worst_token, found


def test_every_path_has_a_shape():
    """The shapes above meet each path that the header names."""
    text = TABLE.read_text()
    names = text.split("kDispatchPathNames[] = {")[1].split("}")[0]
    assert {path for path, _ in SHAPES} == {name.strip().strip('"') for name in names.split(",")}


@each_isa
@each_row
def test_path_of_the_shape_runs(path, threads, isa):
    """The plan names the path, for max_tokens and for that number of tokens in a larger plan."""
    w, x = layer(*SHAPES[path, threads])
    with prepare(w, threads, len(x), isa) as plan, prepare(w, threads, 200, isa) as larger:
        assert plan.info.path == path
        assert larger.path(len(x)) == path
        assert plan.info.threads == threads
        assert (plan.info.mr == 1) == (len(x) == 1)


@each_isa
@each_row
def test_output_is_the_oracles(path, threads, isa):
    """The path computes the layer, in a plan of just so many tokens and in a larger one."""
    w, x = layer(*SHAPES[path, threads])
    for max_tokens in (len(x), 200):
        with prepare(w, threads, max_tokens, isa) as plan:
            assert plan.info.isa == isa
            assert_within_table(plan.forward(x), w, x)


@each_isa
@each_row
def test_bits_are_those_of_packed(path, threads, isa):
    """Whoever does the work, and in which order: the values are the same."""
    w, x = layer(*SHAPES[path, threads])
    options = {"threads": 1, "max_tokens": len(x), "isa": isa}
    with kernels.variant("packed").prepare(w, **options) as plan:
        expected = plan.forward(x)
    with prepare(w, threads, len(x), isa) as plan:
        assert plan.forward(x).tobytes() == expected.tobytes()


@each_isa
@each_row
def test_nothing_is_left_over_from_an_overflowed_forward(path, threads, isa):
    """A forward after ones that filled the workspace with infinities and NaN repeats the first."""
    w, x = layer(*SHAPES[path, threads])
    huge = np.full_like(x, 3e38)
    huge[:, ::2] = -3e38
    with prepare(w, threads, len(x), isa) as plan:
        first = plan.forward(x)
        plan.forward(huge)
        assert [plan.forward(x).tobytes() for _ in range(3)] == [first.tobytes()] * 3


@each_row
@pytest.mark.parametrize("value", [-128, 127])
def test_extreme_weights(path, threads, value):
    """All weights at one end of the int8 range."""
    w, x = layer(*SHAPES[path, threads])
    w = filled(w, value)
    with prepare(w, threads, len(x)) as plan:
        assert_within_table(plan.forward(x), w, x)


@each_row
def test_without_shared_expert_and_residual(path, threads):
    """The routed experts alone."""
    w, x = layer(*SHAPES[path, threads], has_shared=False, has_residual=False)
    with prepare(w, threads, len(x)) as plan:
        assert_within_table(plan.forward(x), w, x)


@pytest.mark.parametrize("threads", [1, 2, 3, 4])
@pytest.mark.parametrize("top", [(3,), (0, 15), (3, 4)])
def test_skewed_routing(threads, top):
    """All tokens on the same experts: one owner has all the routed work."""
    w, x = layer(50, 100, 96, 64, len(top))
    bias = np.zeros(64, dtype=np.float32)
    bias[list(top)] = 10
    w = with_changes(w, bias=bias)
    with prepare(w, threads, 50) as plan:
        assert_within_table(plan.forward(x), w, x)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_plan_serves_every_number_of_tokens(threads):
    """One plan, from one token to more than its workspace, in turns: as in a plan of its own."""
    w, x = layer(47, 100, 96, 16, 3)
    with prepare(w, threads, 40) as plan:
        for n in (47, 1, 40, 2, 15, 16, 17, 1, 33, 3):
            with prepare(w, 1, 40) as alone:
                assert plan.forward(x[:n]).tobytes() == alone.forward(x[:n]).tobytes()


def test_path_of_wrong_numbers_is_refused():
    """Only what a forward takes at once has a path."""
    w, _ = layer()
    with prepare(w, 1, 8) as plan:
        for n in (0, 9):
            with pytest.raises(InputError, match=r"path: num_tokens = \d is not in 1\.\.8"):
                plan.path(n)


def test_variants_of_one_path_name_none():
    """Packed has nothing to choose."""
    w, _ = layer()
    with kernels.variant("packed").prepare(w, threads=1) as plan:
        assert (plan.info.path, plan.path(1)) == ("", "")
