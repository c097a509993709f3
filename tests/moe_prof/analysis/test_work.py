"""Counts of work and traffic against figures computed by hand and against real routing."""

import numpy as np
import pytest

from moe_prof.analysis.work import count_work, expected_experts, headroom, headrooms
from moe_prof.kernels.inputs import random_tokens, random_weights
from moe_prof.kernels.oracle import routing
from moe_prof.scenario import SCENARIOS, Scenario


def test_s3_token_by_token():
    """S3 reads an expert's weights 640 times, 15 * 2^22 bytes, 1 MAC a byte."""
    work = count_work(SCENARIOS["S3"])
    assert work.weight_reads == 640
    assert work.weight_bytes_by_token == 15 * 2**22
    assert work.intensity_by_token_macs_per_byte == 1.0


def test_s3_grouped():
    """Grouped, S3 reads 17 experts of 3 * 2^15 bytes, 37.6 MAC a byte; the MACs stay."""
    work = count_work(SCENARIOS["S3"])
    assert work.experts_most == 17
    assert work.expert_bytes == 3 * 2**15
    assert work.weight_bytes_grouped == 17 * 3 * 2**15
    assert work.intensity_grouped_macs_per_byte == pytest.approx(37.6, abs=0.05)
    assert work.expert_macs == work.weight_bytes_by_token


def test_s4_router_share():
    """In S4 the router does 268 M of 872 M MACs and 524 k sigmoids."""
    work = count_work(SCENARIOS["S4"])
    assert round(work.router_macs / 1e6) == 268
    assert round(work.macs / 1e6) == 872
    assert work.router_exps == 524_288
    assert work.router_share == pytest.approx(0.308, abs=0.001)


def test_exponentials():
    """Exponentials of the router's scores and of every expert's SiLU."""
    work = count_work(Scenario(5, 7, 11, 13, 3))
    assert work.exps == 5 * 13 + 5 * 4 * 11


def test_single_token_gains_nothing_by_grouping():
    """One token needs each of its experts once, grouped or not."""
    work = count_work(SCENARIOS["S1"])
    assert work.weight_bytes_grouped == work.weight_bytes_by_token
    assert work.intensity_grouped_macs_per_byte == 1.0


def test_expected_experts_of_one_token():
    """One token needs K routed experts and the shared one."""
    assert expected_experts(SCENARIOS["S1"]) == pytest.approx(5.0)


def test_expected_experts_agree_with_a_simulation():
    """The mean of drawn uniform routings is the formula's."""
    rng = np.random.default_rng(0)
    counts = [
        len({int(e) for _ in range(24) for e in rng.permutation(64)[:4]}) + 1 for _ in range(200)
    ]
    assert expected_experts(Scenario(24, 1, 1, 64, 4)) == pytest.approx(np.mean(counts), rel=0.02)


def test_seeded_routing_stays_within_the_bound():
    """Real routing needs at most experts_most, and fewer than uniform: biases draw tokens."""
    scenario = SCENARIOS["S4"]
    ids = routing(random_weights(scenario), random_tokens(scenario)).ids
    work = count_work(scenario)
    assert len(np.unique(ids)) + 1 < work.experts_expected < work.experts_most


def test_without_tokens():
    """No tokens: no work, no experts, and no intensity instead of a division by zero."""
    work = count_work(Scenario(0, 7, 11, 13, 3))
    assert (work.macs, work.exps, work.experts_most, work.experts_expected) == (0, 0, 0, 0.0)
    assert work.intensity_grouped_macs_per_byte is None
    assert work.router_share is None


def test_activation_bytes():
    """Bytes of tokens, and of the rows between the steps, by hand."""
    work = count_work(Scenario(2, 3, 5, 4, 1))
    assert work.token_bytes == 2 * 3 * 4 * 2
    assert work.row_bytes == 2 * 2 * (3 * 1 + 3 * 4 + 5 * 4 + 5 * 1)


def test_int32_margin_at_1024():
    """At D = 1024 the int32 sum is at most 2^24: a margin of 128."""
    room = headroom(1024, 32)
    assert room.margin == 128.0
    assert room.is_safe


def test_int16_overflows_at_the_second_term():
    """An int16 accumulator holds one product of the largest size, not two."""
    assert headroom(1, 16).is_safe
    assert not headroom(2, 16).is_safe


def test_int32_limit():
    """The int32 accumulator is safe up to its last term."""
    assert headroom(131_071, 32).is_safe
    assert not headroom(131_072, 32).is_safe


def test_headrooms_of_a_scenario():
    """Both reductions in both widths."""
    rooms = headrooms(SCENARIOS["S2"])
    assert {key: room.terms for key, room in rooms.items()} == {
        ("d_model", 16): 1024,
        ("d_model", 32): 1024,
        ("d_ff", 16): 512,
        ("d_ff", 32): 512,
    }
