"""What is particular to the numba variants: threads, slices, timing, cache, import."""

import dataclasses
import subprocess
import sys

import numba
import numpy as np
import pytest

from moe_prof import kernels
from moe_prof.errors import InputError, UnavailableError, UsageError
from moe_prof.kernels import numba_variants
from moe_prof.kernels.jit import compile as jit_compile
from moe_prof.kernels.jit.buckets import repeat_buckets
from moe_prof.kernels.jit.tokens import repeat_tokens
from moe_prof.kernels.oracle import errors, reference, routing
from tests.kernels.layers import layer

NAMES = ("numba-parallel", "numba-matricized")


@pytest.fixture(params=NAMES)
def name(request):
    """Each numba variant in turn."""
    return request.param


def prepare(name, w, threads=1, max_tokens=8):
    """A backend with a small workspace."""
    return numba_variants.prepare(name, w, threads=threads, max_tokens=max_tokens)


def test_more_tokens_than_workspace_are_computed_in_slices(name):
    """The result does not depend on how many tokens fit the workspace."""
    w, x = layer(7)
    whole, sliced = np.empty_like(x), np.empty_like(x)
    prepare(name, w, max_tokens=7).run(x, whole)
    prepare(name, w, max_tokens=3).run(x, sliced)
    assert sliced.tolist() == whole.tolist()


def test_the_number_of_threads_does_not_change_the_result(name):
    """Two threads compute the bits that one computes."""
    if jit_compile.max_threads() < 2:
        pytest.skip("numba has one thread on this machine")
    w, x = layer(7)
    one, two = np.empty_like(x), np.empty_like(x)
    prepare(name, w, threads=1).run(x, one)
    prepare(name, w, threads=2).run(x, two)
    assert two.tolist() == one.tolist()


def test_more_threads_than_numba_has(name):
    """Too many threads are refused with the way out."""
    w, _ = layer()
    threads = jit_compile.max_threads() + 1
    with pytest.raises(UsageError, match=f"use at most .*, or set NUMBA_NUM_THREADS={threads}"):
        prepare(name, w, threads=threads)


def test_the_callers_thread_count_is_restored(name):
    """Numba's own setting is as before after a forward."""
    before = numba.get_num_threads()
    w, x = layer()
    prepare(name, w, threads=1).run(x, np.empty_like(x))
    assert numba.get_num_threads() == before


def test_routing_of_the_last_forward(name):
    """The experts chosen and their gates can be asked for."""
    w, x = layer(6)
    backend = prepare(name, w)
    backend.run(x, np.empty_like(x))
    chosen = backend.routing(6)
    expected = routing(w, x)
    assert chosen.ids.tolist() == expected.ids.tolist()
    np.testing.assert_allclose(chosen.gates, expected.gates, rtol=1e-5)


@pytest.mark.parametrize(("forward", "asked"), [(3, 4), (9, 1), (3, -1)])
def test_routing_that_was_not_kept(name, forward, asked):
    """More tokens than the last forward had, or than are kept, can't be asked for."""
    w, x = layer(forward)
    backend = prepare(name, w)
    backend.run(x, np.empty_like(x))
    with pytest.raises(InputError, match=f"routing of {asked} tokens: the last forward had"):
        backend.routing(asked)


def test_timing_computes_the_result(name):
    """The timed loop runs the same forward, once a batch at least."""
    w, x = layer()
    out = np.empty_like(x)
    times_s = prepare(name, w).time_batches(x, out, 2, 3)
    assert times_s.shape == (3,)
    assert (times_s > 0).all()
    assert errors(out, reference(w, x)).rel_rmse < 1e-6


def test_read_only_arrays_are_not_compiled_for_again(name):
    """Read-only weights and tokens run through what is compiled already, with the same result."""
    w, x = layer()
    expected, actual = np.empty_like(x), np.empty_like(x)
    prepare(name, w).run(x, expected)
    compiled = len(repeat_tokens.signatures), len(repeat_buckets.signatures)
    read_only = {"gate": w.gate.copy(), "bias": w.bias.copy(), "up_scale": w.up_scale.copy()}
    for array in (x, *read_only.values()):
        array.setflags(write=False)
    prepare(name, dataclasses.replace(w, **read_only)).run(x, actual)
    assert actual.tolist() == expected.tolist()
    assert (len(repeat_tokens.signatures), len(repeat_buckets.signatures)) == compiled


def test_phase_timers_are_unavailable(name):
    """There are no phase timers, and the error says where they are."""
    w, _ = layer()
    with pytest.raises(UnavailableError, match=f"{name}: phase timers exist in C"):
        prepare(name, w).timers(reset=False)


def test_info_proves_what_runs(name):
    """The plan names variant, path, threads and the numba behind it."""
    w, _ = layer()
    with kernels.variant(name).prepare(w, threads=1, max_tokens=8) as plan:
        info = plan.info
    assert (info.variant, info.isa, info.threads, info.max_tokens) == (name, "native", 1, 8)
    assert info.note.startswith(f"numba {numba.__version__}, threading layer ")
    scales = 4 * 10 * (31 + 31 + 33)
    assert info.weight_bytes == 3 * 10 * 33 * 31 + 4 * 9 * (33 + 1) + scales


def test_a_workspace_beyond_memory_is_refused(name):
    """A workspace that memory can't hold is refused before it is touched."""
    w, _ = layer(1, d=2048, h=1, e=1, k=1)
    with pytest.raises(UsageError, match=f"workspace of {name} .* GiB of memory"):
        prepare(name, w, max_tokens=1 << 40)


def test_without_a_cache_folder_functions_still_compile(monkeypatch):
    """Where no cache folder can be had, a function is compiled in this process."""

    def no_folder():
        raise RuntimeError("no home")

    monkeypatch.setattr(jit_compile, "cache_folder", no_folder)

    @jit_compile.entry
    def double(values):
        for i in numba.prange(values.shape[0]):
            values[i] *= 2

    values = np.array([1, 21])
    double(values)
    assert values.tolist() == [2, 42]


def test_listing_variants_does_not_import_numba():
    """Numba is imported when a numba variant is prepared, not before."""
    code = "import sys, moe_prof.kernels as k; k.variants(); print('numba' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
