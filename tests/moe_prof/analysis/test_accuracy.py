"""Errors of activation scales, and how full accumulators get."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from moe_prof.analysis import accuracy
from moe_prof.analysis.accuracy import CASES, SCHEMES
from moe_prof.kernels.inputs import random_tokens, random_weights
from moe_prof.kernels.oracle import reference
from moe_prof.scenario import SCENARIOS, Scenario

TINY = Scenario(16, 32, 16, 4, 2)


@pytest.fixture(scope="module")
def layer():
    """Weights and tokens of a tiny layer."""
    return random_weights(TINY, 0), random_tokens(TINY, 0)


@pytest.fixture(scope="module")
def errors(layer):
    """Errors by case and scheme."""
    return {(error.case, error.scheme): error for error in accuracy.scale_errors(*layer)}


def test_every_case_has_both_schemes(errors):
    """And every error is a positive number, the worst token's the largest."""
    assert set(errors) == {(case, scheme) for case in CASES for scheme in SCHEMES}
    assert all(0 < e.median_token <= e.worst_token for e in errors.values())


def test_a_shared_scale_costs_more(errors):
    """In every case, and the more the larger one token is."""
    shared = [errors[case, "shared"].median_token for case in CASES]
    own = [errors[case, "per_token"].median_token for case in CASES]
    assert all(ours < theirs for ours, theirs in zip(own, shared, strict=True))
    assert shared == sorted(shared)


def test_tokens_of_their_own_scale_do_not_see_an_outlier(errors):
    """The other tokens' errors stay as they are; the median moves by one token's at most."""
    drawn, outlier = (errors[c, "per_token"].median_token for c in ("as drawn", "one token 10x"))
    assert drawn == pytest.approx(outlier, rel=0.1)


def test_per_token_scheme_is_the_oracles(layer):
    """The quantized layer of the study is the one that all kernels are judged by."""
    w, x = layer
    expected = reference(replace(w, has_residual=False), x)
    actual = accuracy.quantized_layer(w, x, "per_token")
    assert np.linalg.norm(actual - expected) < 1e-3 * np.linalg.norm(expected)


def test_zero_tokens_have_no_error(layer):
    """Rows of zeros quantize to zeros, without a warning."""
    w, x = layer
    found = accuracy.scale_errors(w, np.zeros_like(x))
    assert {(e.rel_rmse, e.worst_token) for e in found} == {(0.0, 0.0)}


def test_running_sums_stay_below_the_worst_case(layer):
    """Met sums are whole numbers within the bound, for both lengths and widths."""
    found = accuracy.accumulations(*layer)
    assert {(a.length, a.bound.accumulator_bits) for a in found} == {
        ("d_model", 16), ("d_model", 32), ("d_ff", 16), ("d_ff", 32),
    }  # fmt: skip
    assert all(0 < a.largest <= a.bound.terms * 2**14 for a in found)


def test_largest_running_sum_is_found_along_the_way(layer):
    """A sum that cancels in the end was large before: int16 overflows there."""
    w, x = layer
    gate = np.zeros_like(w.gate)
    gate[-1, :, :4], gate[-1, :, 4:8] = 127, -127
    tokens = np.ones_like(x)
    changed = replace(w, gate=gate, up=gate)
    largest = {a.length: a.largest for a in accuracy.accumulations(changed, tokens)}
    assert largest["d_model"] == 4 * 127 * 127


def test_rows_give_the_errors_back():
    """With provenance: worst cases are modelled, all else is measured."""
    rows = accuracy.study(TINY)
    found = accuracy.errors_from(rows)
    assert {(e.case, e.scheme) for e in found} == {(c, s) for c in CASES for s in SCHEMES}
    assert {row.metric for row in rows if row.provenance == "modelled"} == {accuracy.MARGIN}
    assert {row.scenario for row in rows} == {TINY.label}


def test_batches_keep_the_lengths():
    """128 tokens and a bounded number of experts, so that every scenario is studied in seconds."""
    batch = accuracy.study_scenario(SCENARIOS["S4"])
    assert batch.shape == (128, 512, 128, 16, 2)
