"""Requests for the fake plans, which worker processes import by name."""

from pathlib import Path

import pytest

from moe_prof.measure import Job, Request
from moe_prof.scenario import Scenario

SMALL = Scenario(3, 16, 8, 4, 2)


@pytest.fixture
def request_for(monkeypatch):
    """A request for fake plans by name; their module is importable in the workers."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))

    def make(*names, **changes):
        values = {"processes": 2, "repeat": 4, "plan_factory": "fake_plans:factory", "hang_s": 30}
        jobs = tuple(Job(name) for name in names)
        return Request(scenario=SMALL, jobs=jobs, **({"threads": 2} | values | changes))

    return make
