"""The contest: who is in, who is out and why, and what is compared."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.contender import F32, Contender, Entry
from benchmarks.contest import Contest, Sampling, Standing, hold
from benchmarks.peers import PEERS, entries
from benchmarks.program import team_sizes
from benchmarks.truth import unquantized
from moe_prof.errors import UnavailableError, UsageError
from moe_prof.kernels import Weights, random_tokens, random_weights, reference
from moe_prof.kernels.oracle import errors
from moe_prof.progress import SILENT
from moe_prof.scenario import Scenario

LAYER = Scenario(2, 16, 8, 4, 2)
SAMPLING = Sampling(rounds=1, processes=1, min_sample_s=0.0005, max_time_s=20.0, seed=0)
HERE = "test_benchmark_contest"


class Oracle(Contender):
    """Right; optionally scaled, absent, refusing the shape, or crashing."""

    def __init__(self, factor: float = 1.0, absent: str = "", refuses: str = "") -> None:
        self._factor, self._absent, self._refuses = factor, absent, refuses

    def availability(self) -> str:
        """As told."""
        return self._absent

    def prepare(self, weights: Weights, threads: int, max_tokens: int) -> None:
        """Keep the weights."""
        if self._refuses:
            raise UnavailableError(self._refuses)
        self._weights = weights
        self.path = "oracle"

    def forward(self, x: F32) -> F32:
        """The oracle's answer."""
        if self._factor < 0:
            raise SystemExit(7)
        return (self._factor * reference(self._weights, x)).astype(np.float32)


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the workers import this file."""
    monkeypatch.setenv("PYTHONPATH", __file__.rpartition("/")[0])


def _one(**options: object) -> Standing:
    contest = hold(LAYER, [Entry("it", f"{HERE}:Oracle", 1, options)], SAMPLING, SILENT)
    return contest.standings[0]


def test_right_contender_is_timed() -> None:
    """A right result gets a time and both errors."""
    standing = _one()
    assert (standing.status, standing.path, len(standing.samples_s)) == ("ok", "oracle", 1)
    assert standing.facts["oracle_rel_rmse"] < 1e-6


def test_wrong_contender_gets_no_time() -> None:
    """A result that is far from both truths is called wrong and not timed."""
    standing = _one(factor=2.0)
    assert (standing.status, standing.time) == ("wrong", None)
    assert standing.reason == "its result is 100 % off"


@pytest.mark.parametrize("option", ["absent", "refuses"])
def test_absent_contender_is_skipped_with_its_reason(option: str) -> None:
    """A missing library or a refused shape is skipped, in its own words."""
    standing = _one(**{option: "no such luck"})
    assert (standing.status, standing.reason) == ("skipped", "no such luck")


def test_crash_costs_only_the_contender() -> None:
    """A contender whose process ends is out; the others are measured."""
    adapter = f"{HERE}:Oracle"
    contest = hold(
        LAYER,
        [Entry("crash", adapter, 1, {"factor": -1.0}), Entry("fine", adapter, 1)],
        SAMPLING,
        SILENT,
    )
    crash, fine = contest.standings
    assert (crash.status, crash.reason) == ("failed", "its process ended: exit status 7")
    assert fine.status == "ok"


def test_names_are_unique() -> None:
    """Two contenders of the same name and team are refused."""
    entry = Entry("it", f"{HERE}:Oracle", 1)
    with pytest.raises(UsageError, match="same name and threads"):
        hold(LAYER, [entry, entry], SAMPLING, SILENT)


def test_find_tells_teams_apart() -> None:
    """A contender is found by name and threads."""
    one, two = (Standing(Entry("it", "m:C", threads)) for threads in (1, 2))
    contest = Contest(LAYER, (one, two), 3)
    assert (contest.find("it", 2), contest.find("it", 4)) == (two, None)


def test_unquantized_layer_is_near_the_oracle() -> None:
    """Activations in 8 bits cost more than rounding errors and less than a tenth."""
    weights, x = random_weights(LAYER), random_tokens(LAYER)
    found = errors(unquantized(weights, x), reference(weights, x)).rel_rmse
    assert 1e-4 < found < 0.1


def test_unquantized_layer_without_experts_that_answer_is_the_residual() -> None:
    """With down matrices of zeros only the residual is left."""
    weights, x = random_weights(LAYER), random_tokens(LAYER)
    weights.down[:] = 0
    np.testing.assert_array_equal(unquantized(weights, x), x.astype(np.float64))


@pytest.mark.parametrize(("most", "sizes"), [(1, (1,)), (2, (1, 2)), (6, (1, 2, 4, 6))])
def test_team_sizes_double_up_to_the_most(most: int, sizes: tuple[int, ...]) -> None:
    """One thread, doubled up to and with the largest team."""
    assert team_sizes(most) == sizes


def test_peers_have_unique_names() -> None:
    """Each peer is named once, in every team once."""
    keys = [entry.key for entry in entries(PEERS, (1, 2))]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("peer", [peer for peer in PEERS if peer.adapter], ids=lambda p: p.name)
def test_peer_computes_the_layer(peer: object) -> None:
    """A peer that is installed is within its quantization of the layer; else skipped with why."""
    (entry,) = entries([peer], (1,))  # type: ignore[list-item]
    standing = hold(Scenario(5, 256, 256, 8, 2), [entry], SAMPLING, SILENT).standings[0]
    if standing.status == "skipped":
        pytest.skip(standing.reason)
    assert (standing.status, standing.reason) == ("ok", "")
    assert standing.facts["unquantized_rel_rmse"] < 0.04
