"""The oracle's answer for the workers, and which tokens it covers."""

import numpy as np

from moe_prof.kernels.inputs import random_tokens, random_weights
from moe_prof.kernels.oracle import reference
from moe_prof.measure.expected import (
    LONGEST_ORACLE_S,
    ORACLE_MACS_PER_S,
    chosen_rows,
    save_expected,
)
from moe_prof.scenario import Scenario

LONGEST_MACS = int(LONGEST_ORACLE_S * ORACLE_MACS_PER_S)


def test_all_tokens_when_there_is_time():
    """A small layer is compared in full."""
    assert chosen_rows(5, 1000, None).tolist() == [0, 1, 2, 3, 4]


def test_spread_tokens_when_there_is_not():
    """Ten times too much work: a tenth of the tokens, from the first to the last."""
    rows = chosen_rows(1000, 10 * LONGEST_MACS, None)
    assert len(rows) == 100
    assert (rows[0], rows[-1]) == (0, 999)


def test_time_limit_shortens_the_oracle():
    """A tenth of the limit is its own."""
    assert len(chosen_rows(1000, LONGEST_MACS, 20.0)) == 100


def test_at_least_one_token():
    """However large the layer, something is compared."""
    assert chosen_rows(7, 10**15, 1.0).tolist() == [0]


def test_no_tokens():
    """An empty batch has nothing to compare."""
    assert chosen_rows(0, 0, None).tolist() == []


def test_answer_is_the_oracles_for_those_rows(tmp_path):
    """Rows of a part are equal to the rows of the whole."""
    scenario = Scenario(6, 16, 8, 4, 2)
    path = tmp_path / "expected.npz"
    count = save_expected(scenario, 3, path, macs=6 * LONGEST_MACS // 2, max_time_s=None)
    with np.load(path) as saved:
        rows, y = saved["rows"], saved["y"]
    whole = reference(random_weights(scenario, 3), random_tokens(scenario, 3))
    assert count == 2
    assert rows.tolist() == [0, 5]
    np.testing.assert_array_equal(y, whole[rows])
