"""Floors for a contest: the least time this machine allows, by ceilings of the same run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from moe_prof.analysis.ceilings import Ceilings, best_of
from moe_prof.analysis.roofline import Floor, floor, layer_work
from moe_prof.machine import Machine
from moe_prof.measure.ceilings import measure
from moe_prof.progress import Progress
from moe_prof.scenario import Scenario


@dataclass(slots=True)
class Roof:
    """The machine's ceilings, measured again now and then: the best of each counts.

    Attributes:
        ceilings: those so far; None before the first measurement.
    """

    machine: Machine
    teams: Sequence[int]
    progress: Progress
    ceilings: Ceilings | None = None

    def look(self) -> Ceilings:
        """Measure once more."""
        found = measure(self.machine, self.teams, progress=self.progress)
        self.ceilings = found if self.ceilings is None else best_of(self.ceilings, found)
        return self.ceilings


def floor_of(
    scenario: Scenario, experts: int, ceilings: Ceilings, threads: int, path: str | None = None
) -> Floor:
    """The floor of a scenario whose tokens touch that many experts; see ``analysis.roofline``."""
    return floor(layer_work(scenario, experts), ceilings, threads, path)
