"""The bound, on invented machines with round numbers."""

from __future__ import annotations

import pytest

from moe_prof.analysis.ceilings import Ceiling, Ceilings, missing
from moe_prof.analysis.roofline import LayerWork, floor, fraction, layer_work, weights_level
from moe_prof.scenario import SCENARIOS, Scenario


def machine(l2=100.0, l3=10.0, memory=1.0):
    """Levels of 10, 100 and 1000 bytes; 1000 int8 MAC/s with tiles, 100 without; 10 fp32 MAC/s."""
    rates = (("read_l1", 1000.0, 10), ("read_l2", l2, 100), ("read_l3", l3, 1000))
    entries = [
        Ceiling("int8_avx2", 1, 100.0, "MAC/s", "measured", ""),
        Ceiling("int8_amx_int8", 1, 1000.0, "MAC/s", "measured", ""),
        Ceiling("fp32_avx2", 1, 10.0, "MAC/s", "measured", ""),
    ]
    for name, value, capacity in (*rates, ("read_memory", memory, None)):
        if value is None:
            entries.append(missing(name, 1, "bytes/s", "not here", capacity))
        else:
            entries.append(Ceiling(name, 1, value, "bytes/s", "measured", "", capacity))
    return Ceilings(tuple(entries))


def test_compute_bound_floor_adds_router_and_experts():
    """1 s of router and 2 s of experts, in sequence; reading is faster."""
    bound = floor(LayerWork(10, 5, 2000, 5), machine(), 1)
    assert (bound.time_s, bound.limit, bound.level) == (3.0, "compute", "l1")


def test_memory_bound_floor_uses_the_level_that_holds_the_weights():
    """510 bytes live in the L3: 51 s of reading against no arithmetic to speak of."""
    bound = floor(LayerWork(1, 10, 1, 500), machine(), 1)
    assert (bound.time_s, bound.limit, bound.level) == (51.0, "memory", "l3")


def test_own_path_has_a_higher_floor():
    """Without tiles the same work takes ten times as long."""
    work = LayerWork(0, 0, 2000, 5)
    assert floor(work, machine(), 1).time_s == 2.0
    assert floor(work, machine(), 1, "avx2").time_s == 20.0


def test_missing_bandwidth_falls_back_to_a_faster_level():
    """Memory unknown: the L3's rate can only lower the floor."""
    bound = floor(LayerWork(1, 0, 1, 5000), machine(memory=None), 1)
    assert (bound.level, bound.experts_s) == ("memory", 500.0)


@pytest.mark.parametrize(
    ("work", "words"),
    [
        (LayerWork(10, 5, 2000, 5), "exact int8 rate, by amx_int8"),
        (LayerWork(10, 5, 20, 5), "fp32 rate, by avx2"),
        (LayerWork(1, 10, 1, 500), "read rate of the L3"),
        (LayerWork(1, 10, 1, 5000), "read rate of the memory"),
    ],
)
def test_the_ceiling_of_the_longer_part_is_named(work, words):
    """A share of 'the ceilings' would leave open of which."""
    assert floor(work, machine(), 1).ceiling == words


def test_no_rate_no_floor():
    """A team that was not measured has no bound, and says so."""
    bound = floor(LayerWork(1, 1, 1, 1), machine(), 4)
    assert (bound.time_s, bound.source) == (
        None,
        "no int8 ceiling of path any with 4 threads was measured",
    )


@pytest.mark.parametrize(
    ("size", "level"), [(10, "l1"), (11, "l2"), (100, "l2"), (101, "l3"), (1001, "memory")]
)
def test_level_that_holds_the_weights(size, level):
    """A level holds what is as large as itself."""
    assert weights_level(LayerWork(0, 0, 0, size), machine(), 1) == level


def test_fraction():
    """Floor over time; None without a floor."""
    bound = floor(LayerWork(10, 5, 2000, 5), machine(), 1)
    assert fraction(bound, 6.0) == 0.5
    assert fraction(floor(LayerWork(1, 1, 1, 1), machine(), 4), 6.0) is None


def test_work_of_s3():
    """640 token-experts of 3 x 2^15 products; 17 experts read once; 37.6 products a byte."""
    work = layer_work(SCENARIOS["S3"])
    assert work == LayerWork(
        router_macs=128 * 16 * 256,
        router_bytes=4 * 16 * 256,
        expert_macs=640 * 3 * 2**15,
        expert_bytes=17 * 3 * 2**15,
    )
    assert round(work.expert_macs / work.expert_bytes, 1) == 37.6


def test_one_token_touches_only_its_experts():
    """S1: four routed experts and the shared one, not sixteen."""
    assert layer_work(SCENARIOS["S1"]).expert_bytes == 5 * 3 * 2**15


def test_touched_experts_can_be_given():
    """A layer whose routing is known reads only what was chosen."""
    assert layer_work(SCENARIOS["S4"], 100).expert_bytes == 100 * 3 * 512 * 128


def test_no_token_no_work():
    """N = 0 touches nothing."""
    assert layer_work(Scenario(0, 8, 8, 4, 2)) == LayerWork(0, 0, 0, 0)
