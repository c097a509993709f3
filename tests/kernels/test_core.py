"""The C++ kernels through the Python contract: equal bits, exact routing, checked calls."""

import dataclasses
import os

import numpy as np
import pytest

from moe_prof import kernels
from moe_prof.errors import InputError, UnavailableError, UsageError
from moe_prof.kernels import build as kernel_build
from moe_prof.kernels import features
from moe_prof.kernels.info import PHASES
from moe_prof.kernels.oracle import routing
from moe_prof.kernels.table import BY_NAME, VARIANTS
from tests.kernels.layers import layer

SAME_ORDER = [
    spec.name for spec in VARIANTS if spec.language == "c++" and spec.order == "reference"
]
PATHS = [(name, isa) for name in SAME_ORDER for isa in BY_NAME[name].isas]
TOKENS = (0, 1, 9, 31, 33, 96, 100)
SHAPES = ((33, 31, 5, 2), (96, 100, 16, 4), (31, 1, 3, 3), (1, 9, 1, 1))


def prepare(name, isa, w, **options):
    """A plan of one path, or a visible skip where this machine lacks it."""
    if isa not in kernels.isas(name):
        pytest.skip(f"path {isa}: {features.missing(features.isa_path(isa), features.read_cpu())}")
    return kernels.variant(name).prepare(w, isa=isa, **options)


def scalar_output(w, x):
    """The baseline's result, whose bits the others must equal."""
    with kernels.variant("scalar").prepare(w) as plan:
        return plan.forward(x)


@pytest.mark.parametrize(("name", "isa"), PATHS)
@pytest.mark.parametrize("shape", SHAPES)
def test_bits_equal_scalar_for_every_number_of_tokens(name, isa, shape):
    """Variants that keep the reference's order give the baseline's bits on every path."""
    w, x = layer(max(TOKENS), *shape)
    with prepare(name, isa, w, threads=2) as plan:
        for n in TOKENS:
            assert plan.forward(x[:n]).tobytes() == scalar_output(w, x[:n]).tobytes()


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("name", SAME_ORDER)
def test_bits_do_not_depend_on_threads(name, threads):
    """Any team size gives the same bits."""
    w, x = layer(31, 33, 31, 9, 3)
    with kernels.variant(name).prepare(w, threads=threads) as plan:
        assert plan.forward(x).tobytes() == scalar_output(w, x).tobytes()


@pytest.mark.parametrize("name", SAME_ORDER)
@pytest.mark.parametrize(("e", "k"), [(257, 2), (257, 257), (16, 16)])
def test_bits_equal_for_many_experts_and_for_all_chosen(name, e, k):
    """E = 257 and K = E give the baseline's bits, empty experts included."""
    w, x = layer(9, 33, 31, e, k)
    with kernels.variant(name).prepare(w) as plan:
        assert plan.forward(x).tobytes() == scalar_output(w, x).tobytes()


@pytest.mark.parametrize("name", SAME_ORDER)
@pytest.mark.parametrize("max_tokens", [1, 7, 32])
def test_more_tokens_than_the_workspace_are_computed_in_slices(name, max_tokens):
    """A workspace smaller than the batch changes no bit."""
    w, x = layer(100, 33, 31, 9, 3)
    with kernels.variant(name).prepare(w, max_tokens=max_tokens) as plan:
        assert plan.forward(x).tobytes() == scalar_output(w, x).tobytes()


@pytest.mark.parametrize("name", SAME_ORDER)
@pytest.mark.parametrize(
    "changes",
    [
        {"score": "softmax"},
        {"n_group": 4, "topk_group": 2},
        {"score": "softmax", "n_group": 4, "topk_group": 2, "routed_scaling_factor": 2.5},
        {"has_shared": False},
        {"has_residual": False},
        {"normalize_gates": False, "routed_scaling_factor": 2.5},
        {"score": "softmax", "normalize_gates": False, "has_residual": False},
        {"has_shared": False, "has_residual": False},
    ],
    ids=str,
)
def test_model_options_agree_with_the_oracle(name, changes):
    """Every option of real models gives the oracle's output."""
    w, x = layer(33, 40, 24, 16, 4, **changes)
    expected = kernels.reference(w, x)
    with kernels.variant(name).prepare(w) as plan:
        error = np.linalg.norm(plan.forward(x) - expected) / np.linalg.norm(expected)
    assert error < 1e-4


@pytest.mark.parametrize("name", SAME_ORDER)
@pytest.mark.parametrize(
    "changes", [{}, {"score": "softmax"}, {"n_group": 8, "topk_group": 3}], ids=str
)
def test_routing_equals_the_oracle(name, changes):
    """The experts chosen, their order and their gates are the oracle's, wide shapes included."""
    w, x = layer(200, 128, 8, 64, 6, **changes)
    expected = routing(w, x)
    with kernels.variant(name).prepare(w) as plan:
        plan.forward(x)
        chosen = plan.routing(len(x))
    assert np.array_equal(chosen.ids, expected.ids)
    np.testing.assert_allclose(chosen.gates, expected.gates, rtol=1e-4)


@pytest.mark.parametrize("name", SAME_ORDER)
def test_near_ties_are_chosen_as_in_double(name):
    """Experts whose scores differ by less than an fp32 rounding are ranked exactly."""
    w, x = layer(20, 200, 8, 8, 2)
    router = np.repeat(w.router[:1], 8, axis=0)
    router[1:, 0] += np.arange(1, 8, dtype=np.float32) * np.float32(2.0**-22)
    w = dataclasses.replace(w, router=router, bias=np.zeros(8, np.float32))
    with kernels.variant(name).prepare(w) as plan:
        plan.forward(x)
        assert np.array_equal(plan.routing(20).ids, routing(w, x).ids)


@pytest.mark.parametrize("name", SAME_ORDER)
def test_equal_scores_choose_the_lower_index(name):
    """Identical experts are taken in the order of their indexes."""
    w, x = layer(5, 33, 31, 6, 3)
    w = dataclasses.replace(
        w, router=np.repeat(w.router[:1], 6, axis=0), bias=np.zeros(6, np.float32)
    )
    with kernels.variant(name).prepare(w) as plan:
        plan.forward(x)
        assert plan.routing(5).ids.tolist() == [[0, 1, 2]] * 5


@pytest.mark.parametrize(("name", "isa"), PATHS)
def test_info_proves_variant_and_path(name, isa):
    """The plan says which variant ran, on which path, with how many threads."""
    w, _ = layer()
    with prepare(name, isa, w, threads=2, max_tokens=16) as plan:
        info = plan.info
    threads = 2 if BY_NAME[name].threads and kernel_build.build().openmp else 1
    assert (info.variant, info.isa, info.threads, info.max_tokens) == (name, isa, threads, 16)


def test_serial_variant_notes_that_threads_were_ignored():
    """Asking a serial variant for threads leaves a note, not an error."""
    w, _ = layer()
    with kernels.variant("scalar").prepare(w, threads=4) as plan:
        assert plan.info.note == "runs on one thread by design; 4 were asked for"


def test_weight_bytes_count_router_experts_and_scales():
    """The plan's weight bytes are the arrays' own for an unpacked variant."""
    w, _ = layer(1, 33, 31, 5, 2)
    arrays = w.router.nbytes + w.bias.nbytes + w.gate.nbytes + w.up.nbytes + w.down.nbytes
    scales = 6 * (31 + 31 + 33) * 4
    with kernels.variant("scalar").prepare(w) as plan:
        assert plan.info.weight_bytes == arrays + scales


def test_out_receives_the_result():
    """An output array given is filled and returned."""
    w, x = layer()
    out = np.zeros_like(x)
    with kernels.variant("openmp").prepare(w) as plan:
        result = plan.forward(x, out=out)
    assert result is out
    assert out.tobytes() == scalar_output(w, x).tobytes()


def test_rows_that_are_not_contiguous_are_accepted():
    """A strided view gives the result of its copy."""
    w, x = layer(10)
    with kernels.variant("scalar").prepare(w) as plan:
        assert plan.forward(x[::2]).tobytes() == plan.forward(x[::2].copy()).tobytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: x.astype(np.float64), "dtype"),
        (lambda x: x[:, :-1], "shape"),
        (lambda x: x[0], "shape"),
        (lambda x: x.tolist(), "NumPy array"),
        (lambda x: np.where(np.arange(x.size).reshape(x.shape) == 7, np.nan, x), "not finite"),
        (lambda x: np.where(np.arange(x.size).reshape(x.shape) == 7, np.inf, x), "not finite"),
    ],
)
def test_wrong_tokens_are_refused(change, message):
    """A wrong dtype, shape or value of x is an InputError that names it."""
    w, x = layer()
    with kernels.variant("scalar").prepare(w) as plan, pytest.raises(InputError, match=message):
        plan.forward(change(x))


@pytest.mark.parametrize(
    "out",
    [
        lambda x: np.zeros(x.shape, np.float64),
        lambda x: np.zeros((len(x) + 1, x.shape[1]), np.float32),
        lambda x: np.zeros((x.shape[1], len(x)), np.float32).T,
        lambda x: x,
    ],
    ids=["dtype", "shape", "order", "overlap"],
)
def test_wrong_out_is_refused(out):
    """An output array that cannot be filled is an InputError."""
    w, x = layer()
    with kernels.variant("scalar").prepare(w) as plan, pytest.raises(InputError, match="out"):
        plan.forward(x, out=out(x))


def test_a_closed_plan_is_refused():
    """Using a plan after close is an error that says so."""
    w, x = layer()
    plan = kernels.variant("scalar").prepare(w)
    plan.close()
    plan.close()
    with pytest.raises(InputError, match="closed"):
        plan.forward(x)


def test_unknown_variant_is_refused():
    """An unknown name lists the known ones."""
    with pytest.raises(UsageError, match="unknown variant 'sclar'; known: scalar"):
        kernels.variant("sclar")


@pytest.mark.parametrize("options", [{"threads": 0}, {"threads": 2000}, {"max_tokens": 0}])
def test_impossible_counts_are_refused(options):
    """Threads and max_tokens must be in range."""
    w, _ = layer()
    with pytest.raises(UsageError, match=r"is not an integer in 1\.\."):
        kernels.variant("scalar").prepare(w, **options)


def test_a_workspace_beyond_memory_is_refused_with_its_size():
    """Buffers that memory cannot hold are refused before anything is allocated."""
    w, _ = layer(1, 4096, 64, 64, 64)
    with pytest.raises(UsageError, match=r"needs [\d.]+ GiB"):
        kernels.variant("matricized").prepare(w, max_tokens=1 << 24)


def test_a_path_this_cpu_lacks_names_the_missing_features(monkeypatch):
    """Forcing a path without its CPU features says which are missing and what runs."""
    cpu = features.CpuFeatures("x86_64", "old", frozenset({"sse2", "fma"}))
    monkeypatch.setattr("moe_prof.kernels.selection.read_cpu", lambda: cpu)
    w, _ = layer()
    with pytest.raises(
        UsageError, match=r"lacks avx2, f16c.*paths that run here: native, portable"
    ):
        kernels.variant("openmp").prepare(w, isa="avx2")


def test_a_path_the_variant_lacks_is_refused():
    """The baseline exists for the portable path only."""
    w, _ = layer()
    with pytest.raises(UsageError, match=r"'scalar' has no ISA path 'native'.*it has: portable"):
        kernels.variant("scalar").prepare(w, isa="native")


def test_unknown_path_is_refused():
    """An unknown path lists the known ones."""
    w, _ = layer()
    with pytest.raises(UsageError, match="unknown ISA path 'mmx'"):
        kernels.variant("openmp").prepare(w, isa="mmx")


def test_environment_forces_the_path(monkeypatch):
    """MOE_PROF_ISA decides the path where no argument does."""
    monkeypatch.setenv("MOE_PROF_ISA", "portable")
    w, _ = layer()
    with kernels.variant("matricized").prepare(w) as plan:
        assert plan.info.isa == "portable"


def test_argument_wins_over_the_environment(monkeypatch):
    """``isa=`` is stronger than MOE_PROF_ISA."""
    monkeypatch.setenv("MOE_PROF_ISA", "mmx")
    w, _ = layer()
    with kernels.variant("matricized").prepare(w, isa="portable") as plan:
        assert plan.info.isa == "portable"


def test_environment_does_not_take_the_baseline_away(monkeypatch):
    """The baseline runs under any forced path, since every path includes it."""
    monkeypatch.setenv("MOE_PROF_ISA", "native")
    w, _ = layer()
    with kernels.variant("scalar").prepare(w) as plan:
        assert plan.info.isa == "portable"


def test_routing_needs_a_forward_of_that_many_tokens():
    """Asking for more tokens than the last forward had is an error."""
    w, x = layer(5)
    with kernels.variant("scalar").prepare(w) as plan:
        plan.forward(x)
        with pytest.raises(InputError, match="routing of 6 tokens"):
            plan.routing(6)


def test_routing_is_not_kept_beyond_the_workspace():
    """A forward in slices keeps no complete record, and says so."""
    w, x = layer(5)
    with kernels.variant("scalar").prepare(w, max_tokens=4) as plan:
        plan.forward(x)
        with pytest.raises(InputError, match="max_tokens = 4"):
            plan.routing(5)


def test_release_build_has_no_timers():
    """Phase timers are unavailable outside the phases build, with the remedy."""
    w, _ = layer()
    with (
        kernels.variant("scalar").prepare(w) as plan,
        pytest.raises(UnavailableError, match="build='phases'"),
    ):
        plan.timers()


@pytest.mark.parametrize("name", SAME_ORDER)
def test_busy_and_wait_add_up_to_wall_time(name):
    """In the phases build every thread's busy and waiting time sum to the forwards' wall time."""
    w, x = layer(33, 96, 100, 9, 3)
    with kernels.variant(name).prepare(w, threads=2, build="phases") as plan:
        plan.forward(x)
        times = plan.timers(reset=True)
        assert plan.timers().wall_s == 0.0
    assert times.wall_s > 0.0
    np.testing.assert_allclose(times.busy_s + times.wait_s, times.wall_s, rtol=1e-9)
    np.testing.assert_allclose(times.phase_s.sum(axis=1), times.busy_s, rtol=1e-6)


@pytest.mark.parametrize("name", SAME_ORDER)
def test_steps_of_the_last_forward(name):
    """In order on each thread, inside the forward, and as long as its busy time."""
    w, x = layer(33, 96, 100, 9, 3)
    with kernels.variant(name).prepare(w, threads=2, build="phases") as plan:
        plan.forward(x)
        plan.timers(reset=True)
        plan.forward(x)
        times = plan.timers()
        again = plan.timers(reset=True).last
    last = times.last
    assert again == last
    assert last.left_out == 0
    assert last.wall_s == pytest.approx(times.wall_s)
    for lane, busy_s in zip(last.threads, times.busy_s, strict=True):
        ends = [0.0, *(end_s for _, _, end_s in lane)]
        begins = [begin_s for _, begin_s, _ in lane]
        assert all(begin_s >= end_s for begin_s, end_s in zip(begins, ends[:-1], strict=True))
        assert sum(end_s - begin_s for _, begin_s, end_s in lane) == pytest.approx(busy_s)
        assert {phase for phase, _, _ in lane} <= set(range(len(PHASES)))


def test_phases_build_gives_the_release_bits():
    """Timers change no result."""
    w, x = layer(33, 96, 100, 9, 3)
    with kernels.variant("matricized").prepare(w, build="phases") as plan:
        assert plan.forward(x).tobytes() == scalar_output(w, x).tobytes()


def test_time_forward_gives_seconds_per_batch():
    """Timing answers one positive value per batch, and longer batches take longer."""
    w, x = layer(64, 96, 100, 9, 3)
    with kernels.variant("scalar").prepare(w) as plan:
        short = plan.time_forward(x, 1, batches=5)
        long = plan.time_forward(x, 10, batches=2)
    assert short.shape == (5,)
    assert 0.0 < short.min() < long.min()


def test_pinning_is_undone_with_the_plan():
    """A pinned plan binds the caller's thread and gives its CPUs back when it closes."""
    before = os.sched_getaffinity(0)
    w, x = layer()
    with kernels.variant("openmp").prepare(w, threads=2, pin=True) as plan:
        plan.forward(x)
        during = os.sched_getaffinity(0)
    assert (during, os.sched_getaffinity(0)) == ({min(before)}, before)


def test_outliers_zeros_and_denormals_agree_with_the_oracle():
    """Rows of zeros, denormals and 1000x outliers give the oracle's output on the baseline."""
    w, x = layer(6, 64, 48, 9, 3)
    x[0] = 0.0
    x[1] = np.float32(1e-42)
    x[2, 5] *= 1000
    x[3] = np.float32(3e38)
    expected = kernels.reference(w, x)
    actual = scalar_output(w, x)
    for t in (0, 1, 2, 4, 5):
        error = np.linalg.norm(actual[t] - expected[t])
        assert error <= 1e-4 * np.linalg.norm(expected[t])
