"""Calls that a plan must refuse: one clear error, no crash of the interpreter, no hang."""

import os
import signal
import sys

import numpy as np
import pytest

from moe_prof import kernels
from moe_prof.errors import InputError, MoeProfError, UsageError
from tests.kernels.layers import layer, with_changes

NOT_WEIGHTS = (None, 1, {}, np.zeros(3))


@pytest.fixture(scope="module")
def plan():
    """A plan of the baseline for five tokens, after one forward."""
    w, x = layer()
    with kernels.variant("scalar").prepare(w, max_tokens=8) as prepared:
        prepared.forward(x)
        yield prepared


@pytest.mark.parametrize("w", NOT_WEIGHTS, ids=repr)
def test_only_weights_are_weights(w):
    """For a built-in variant, a user's library and the oracle alike."""
    x = np.zeros((1, 4), np.float32)
    for call in (
        lambda: kernels.variant("scalar").prepare(w),
        lambda: kernels.variant("./mine.so").prepare(w),
        lambda: kernels.reference(w, x),
    ):
        with pytest.raises(InputError, match=r"w: kernels\.Weights is needed, got "):
            call()


@pytest.mark.parametrize("scenario", [None, "S1", (1, 2, 3, 4, 1)])
def test_only_scenarios_are_scenarios(scenario):
    """A name or a tuple is no scenario yet."""
    for make in (kernels.random_weights, kernels.random_tokens):
        with pytest.raises(UsageError, match="a Scenario is needed"):
            make(scenario)


@pytest.mark.parametrize("name", [None, 3, b"packed", ["packed"], "PACKED", ""])
def test_only_names_are_variants(name):
    """Whatever is no known name is told the known ones."""
    with pytest.raises(UsageError, match=r"unknown variant .*; known: scalar"):
        kernels.variant(name)


@pytest.mark.parametrize("isa", ["", "mmx", 3, b"avx2", ["avx2"]])
def test_only_names_are_paths(isa):
    """An empty path is not the same as none."""
    w, _ = layer()
    with pytest.raises(UsageError, match=r"unknown ISA path .*; known paths: native"):
        kernels.variant("autovec").prepare(w, isa=isa)


@pytest.mark.parametrize("name", ["./a\0.so", "./" + "x" * 5000 + ".so", "./\udcff.so"])
def test_paths_that_cannot_be_opened(name):
    """Names that the system itself refuses."""
    w, _ = layer()
    with pytest.raises(InputError, match="cannot be loaded"):
        kernels.variant(name).prepare(w)


@pytest.mark.parametrize("value", [0, -1, 1 << 41, 10**30, 1.5, True, None, "3"])
def test_iterations_and_batches_are_counts(plan, value):
    """Neither a wrapped integer nor a wrong type reaches the native loop."""
    x = np.zeros((1, 33), np.float32)
    for arguments in ({"iterations": value}, {"iterations": 1, "batches": value}):
        with pytest.raises(InputError, match=r"time_forward: \w+ = .* (is not in|must be an int)"):
            plan.time_forward(x, **arguments)


@pytest.mark.parametrize("value", [-1, 9, 10**12, 10**30, 1.5, True, None, "3"])
def test_routing_of_a_count(plan, value):
    """Refused before room for the answer is taken."""
    with pytest.raises(InputError, match="routing"):
        plan.routing(value)


def test_out_must_be_aligned(plan):
    """As a kernel may use aligned stores."""
    x = np.zeros((1, 33), np.float32)
    out = np.zeros(x.nbytes + 1, np.uint8)[1:].view(np.float32).reshape(x.shape)
    with pytest.raises(InputError, match="aligned"):
        plan.forward(x, out=out)


@pytest.mark.parametrize("factor", [1e39, 1e-39, 10**400, 0, -1, np.nan, np.inf, True, "1"])
def test_scaling_factor_must_fit_into_f32(factor):
    """In f32 it would be infinite, zero or denormal, and the output no number."""
    w, _ = layer()
    with pytest.raises(InputError, match="routed_scaling_factor"):
        with_changes(w, routed_scaling_factor=factor)


@pytest.mark.parametrize("name", kernels.variants())
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38])
def test_weights_that_change_behind_a_plan_crash_nothing(name, value):
    """Chosen experts stay in range whatever the router has become."""
    w, x = layer()
    w = with_changes(w, router=w.router.copy())
    with kernels.variant(name).prepare(w) as plan:
        w.router[1:3] = value
        plan.forward(x)
        ids = plan.routing(len(x)).ids
    assert (ids.min() >= 0, ids.max() < w.num_experts) == (True, True)


@pytest.mark.parametrize("name", kernels.variants())
def test_tokens_near_the_largest_f32_crash_nothing(name):
    """Router outputs overflow; the choice is still one of the experts."""
    w, x = layer()
    with kernels.variant(name).prepare(w) as plan:
        plan.forward(np.copysign(np.float32(3e38), x))
        ids = plan.routing(len(x)).ids
    assert (ids.min() >= 0, ids.max() < w.num_experts) == (True, True)


@pytest.mark.skipif(sys.platform != "linux", reason="fork")
@pytest.mark.parametrize("name", [n for n in kernels.variants() if n not in ("scalar", "autovec")])
def test_a_plan_does_not_survive_a_fork(name):
    """In the child its threads are missing: an error at once, not a wait without end."""
    w, x = layer()
    with kernels.variant(name).prepare(w, 2) as plan:
        before = plan.forward(x)
        assert _in_a_fork(lambda: plan.forward(x)) == "InputError"
        assert _in_a_fork(plan.close) == "fine"
        assert plan.forward(x).tobytes() == before.tobytes()


@pytest.mark.skipif(sys.platform != "linux", reason="fork")
def test_one_thread_survives_a_fork():
    """A plan without a team works in the child as before."""
    w, x = layer()
    with kernels.variant("scalar").prepare(w, 1) as plan:
        assert _in_a_fork(lambda: plan.forward(x)) == "fine"


def _in_a_fork(call):
    """What the call does in a forked child: ``fine``, an error's class, or how the child died."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        try:
            call()
            os.write(write, b"fine")
        except MoeProfError as error:
            os.write(write, type(error).__name__.encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as said:
        text = said.read()
    _, status = os.waitpid(pid, 0)
    return text or f"ended with status {status}"
