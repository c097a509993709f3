"""Users' libraries before a tool runs them: which are measured, and which are then refused."""

import pytest

from moe_prof.measure import checked
from moe_prof.measure.results import Measurement, VariantTiming
from moe_prof.progress import SILENT
from moe_prof.scenario import Scenario

SCENARIO = Scenario(4, 32, 32, 4, 2)
OK = {"status": "ok", "samples_s": {(0, 0): 1.0}}


@pytest.fixture
def refused(monkeypatch):
    """Check variants whose measurement is played: states by name; gives reasons and requests."""
    requests = []

    def go(names, states, *, interrupted=False):
        def measured(request, progress):
            del progress
            requests.append(request)
            timings = tuple(
                VariantTiming(variant=job.variant, **states[job.variant]) for job in request.jobs
            )
            return Measurement(
                timings=timings, processes=1, interrupted=interrupted, checked_tokens=4, notes=(),
                elapsed_s=1.0,
            )  # fmt: skip

        monkeypatch.setattr(checked, "measure", measured)
        found = checked.refused_libraries(
            names, SCENARIO, threads=2, seed=3, max_time_s=None, progress=SILENT
        )
        return {name: timing.reason for name, timing in found.items()}, requests

    return go


def test_libraries_that_are_not_right_are_refused(refused):
    """With what the measurement says of them; one round of each is enough."""
    wrong = {"status": "wrong", "reason": "wrong result"}
    found, (request,) = refused(
        ("scalar", "./good.so", "./bad.so"), {"./good.so": OK, "./bad.so": wrong}
    )
    assert found == {"./bad.so": "wrong result"}
    assert [job.variant for job in request.jobs] == ["./good.so", "./bad.so"]
    assert (request.repeat, request.processes, request.seed) == (1, 1, 3)


def test_built_in_variants_cost_nothing(refused):
    """Their tests have checked them."""
    assert refused(("scalar", "packed"), {}) == ({}, [])


def test_an_interrupted_check_ends_the_run(refused):
    """Ctrl-C is not taken for a failure of the library."""
    with pytest.raises(KeyboardInterrupt):
        refused(("./good.so",), {"./good.so": OK}, interrupted=True)
