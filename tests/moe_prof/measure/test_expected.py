"""The oracle's answer for the workers, and which tokens it covers."""

import numpy as np

from moe_prof.kernels.inputs import random_tokens, random_weights
from moe_prof.kernels.oracle import reference
from moe_prof.measure import expected
from moe_prof.measure.expected import (
    LONGEST_ORACLE_S,
    ORACLE_MACS_PER_S,
    chosen_rows,
    save_expected,
)
from moe_prof.scenario import Scenario
from tests.kernels.test_checkpoint import DEEPSEEK, model, scenario, write

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
    plain = Scenario(6, 16, 8, 4, 2)
    path = tmp_path / "expected.npz"
    count = save_expected(plain, 3, path, macs=6 * LONGEST_MACS // 2, max_time_s=None)
    with np.load(path) as saved:
        rows, y = saved["rows"], saved["y"]
    whole = reference(random_weights(plain, 3), random_tokens(plain, 3))
    assert count == 2
    assert rows.tolist() == [0, 5]
    np.testing.assert_array_equal(y, whole[rows])


def test_answer_is_computed_once_in_a_run(tmp_path, monkeypatch):
    """Times, phases and each path ask for the same; another seed or number of tokens is another."""
    asked = []

    def counted(w, x):
        asked.append(len(x))
        return reference(w, x)

    monkeypatch.setattr(expected, "reference", counted)
    plain = Scenario(6, 16, 8, 4, 3)
    for seed, macs in ((5, 1000), (5, 1000), (6, 1000), (6, 3 * LONGEST_MACS)):
        save_expected(plain, seed, tmp_path / "expected.npz", macs=macs, max_time_s=None)
    assert asked == [6, 6, 2]


def test_changed_checkpoint_has_another_answer(tmp_path):
    """A file that was written again within the run is read again."""
    tensors, _ = model()
    answers = []
    for _ in range(2):
        layer = scenario(write(tmp_path / "layer.safetensors", tensors))
        save_expected(layer, 5, tmp_path / "expected.npz", macs=1000, max_time_s=None)
        with np.load(tmp_path / "expected.npz") as saved:
            answers.append(saved["y"])
        name = f"{DEEPSEEK}.shared_experts.down_proj.weight_scale"
        tensors = {**tensors, name: ("F32", 2 * tensors[name][1]), "more": tensors[name]}
    assert not np.array_equal(*answers)
