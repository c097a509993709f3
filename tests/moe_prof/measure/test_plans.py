"""Which build a worker's plans are of."""

import pytest

from moe_prof import kernels
from moe_prof.errors import BuildError
from moe_prof.kernels import build as kernel_build
from moe_prof.measure import plans
from moe_prof.measure.results import DEFAULT_FACTORY
from moe_prof.scenario import Scenario

SCENARIO = Scenario(2, 16, 8, 4, 2)


def test_a_worker_takes_its_parents_build(monkeypatch, tmp_path):
    """Sources that were changed since are not compiled behind the back of the run."""
    built, asked = kernel_build.build(), []

    def opened(folder):
        asked.append(folder)
        return built

    def compiled(kind, progress):
        raise AssertionError("it looked at the sources")

    monkeypatch.setattr(plans, "opened", opened)
    monkeypatch.setattr(plans, "find_build", compiled)
    factory = plans.load_factory(DEFAULT_FACTORY, str(tmp_path))
    w = kernels.random_weights(SCENARIO)
    for _ in range(2):
        with factory("scalar", w, threads=1, isa=None, max_tokens=2, build="release") as plan:
            assert plan.info.variant == "scalar"
    assert asked == [tmp_path]


def test_a_build_that_is_gone_is_an_error(tmp_path):
    """It was removed from the cache, or damaged, while the run went on."""
    with pytest.raises(BuildError, match="vanished while it was in use"):
        kernel_build.opened(tmp_path / "release-0123456789abcdef")
