"""Experts that share memory: the same values at other addresses, and every kernel right on them."""

import numpy as np
import pytest

from moe_prof import kernels
from moe_prof.errors import UsageError
from moe_prof.kernels.inputs import random_tokens, random_weights
from moe_prof.kernels.memory import weight_bytes
from moe_prof.kernels.oracle import errors, reference
from moe_prof.kernels.repeated import repeated
from moe_prof.presets import LayerOptions
from moe_prof.scenario import Scenario

SHARED = Scenario(5, 128, 64, 20, 3, options=LayerOptions(has_residual=False), distinct_experts=8)


def test_experts_repeat():
    """Expert e has the values of expert e modulo the number of distinct ones."""
    block = np.arange(2 * 64 * 64, dtype=np.int64).astype(np.int8).reshape(2, 64, 64)
    many = repeated(block, 5)
    assert many.shape == (5, 64, 64)
    assert all(np.array_equal(many[e], block[e % 2]) for e in range(5))


def test_experts_that_repeat_cannot_be_written():
    """A write to one would change the others."""
    with pytest.raises(ValueError, match="read-only"):
        repeated(np.ones((1, 64, 64), np.int8), 3)[2, 0, 0] = 7


def test_memory_is_shared_by_whole_pages_only():
    """Matrices that are no whole pages together cannot be mapped again."""
    with pytest.raises(UsageError, match="no whole pages"):
        repeated(np.ones((3, 5, 7), np.int8), 9)


def test_address_space_is_given_back():
    """An array that has gone leaves no mapping behind."""

    def mappings():
        with open("/proc/self/maps", encoding="ascii") as lines:
            return sum("memfd:experts" in line for line in lines)

    before = mappings()
    many = repeated(np.ones((1, 64, 64), np.int8), 9)
    assert mappings() > before
    del many
    assert mappings() == before


def test_shared_weights_count_once():
    """The memory check knows what shares."""
    own = Scenario(5, 128, 64, 20, 3)
    assert weight_bytes(own) - weight_bytes(SHARED) == 3 * (21 - 8) * 128 * 64


@pytest.mark.parametrize("name", kernels.variants())
def test_every_variant_is_right_on_shared_experts(name):
    """No kernel depends on where the weights lie; router rows and scales stay each expert's own."""
    w, x = random_weights(SHARED), random_tokens(SHARED)
    with kernels.variant(name).prepare(w, 2) as plan:
        found = errors(plan.forward(x), reference(w, x))
    assert found.rel_rmse < 1e-3


def test_packed_weights_store_equal_experts_once():
    """Copies of experts that share memory share theirs; layouts may add to the int8 values."""
    own = Scenario(*SHARED.shape, options=SHARED.options)
    sizes = []
    for scenario in (SHARED, own):
        with kernels.variant("packed").prepare(random_weights(scenario)) as plan:
            sizes.append(plan.info.weight_bytes)
    assert sizes[1] - sizes[0] >= 3 * (21 - 8) * 128 * 64
