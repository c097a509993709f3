"""Counting variants of one command by perf: what runs, what is counted, and until when."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from moe_prof.deadline import Deadline
from moe_prof.errors import MoeProfError, WorkloadError
from moe_prof.kernels.selection import folder_name
from moe_prof.kernels.table import BY_NAME
from moe_prof.rows import Row
from moe_prof.scenario import Scenario
from moe_prof.topdown import counted
from moe_prof.topdown.counted import Counters

TIMEOUT_S = 240.0
"""Of one run of a tool, where no time limit is nearer."""
SIMULATIONS_S = 120.0
"""Of all simulations of a run together that has no time limit: nobody waits longer unasked."""


def simulations_end_s(deadline: Deadline) -> float:
    """When they must have ended, by ``time.monotonic``."""
    return time.monotonic() + SIMULATIONS_S if deadline.end_s is None else deadline.end_s


@dataclass(frozen=True, slots=True)
class Counting:
    """How the variants are run.

    Attributes:
        threads: of variants that have several.
        folder: where each variant's raw output gets a folder of its own.
    """

    scenario: Scenario
    threads: int
    seed: int
    counters: Counters
    deadline: Deadline
    folder: Path

    def counts(self, variant: str, isa: str | None) -> list[Row]:
        """Events of one forward, or why there are none.

        Raises:
            WorkloadError: it crashed or hung, and the time limit is not to blame.
        """
        label = self.scenario.label
        if self.deadline.passed:
            return counted.missing_counts(label, variant, self.deadline.reason)
        try:
            return counted.count(
                self._target(variant, isa), self.counters, folder=self._place(variant),
                timeout_s=self.deadline.left_s(TIMEOUT_S),
            )  # fmt: skip
        except WorkloadError:
            if not self.deadline.passed:
                raise
            return counted.missing_counts(label, variant, self.deadline.reason)
        except MoeProfError as error:
            return counted.missing_counts(label, variant, str(error))

    def nodes(self, variant: str, isa: str | None) -> list[Row]:
        """Top-down nodes, or that the time did not suffice.

        Raises:
            UnavailableError, ToolError: perf refuses them.
            WorkloadError: it crashed or hung.
        """
        if self.deadline.passed:
            return counted.missing_nodes(self.scenario.label, variant, self.deadline.reason)
        return counted.topdown(
            self._target(variant, isa), self.counters, folder=self._place(variant),
            timeout_s=self.deadline.left_s(TIMEOUT_S),
        )  # fmt: skip

    def _place(self, variant: str) -> Path:
        return self.folder / folder_name(variant)

    def _target(self, variant: str, isa: str | None) -> counted.Target:
        spec = BY_NAME.get(variant)
        threads = self.threads if spec is None or spec.threads else 1
        return counted.Target(self.scenario, variant, isa, threads, self.seed)
