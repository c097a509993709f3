"""Plans of one variant under several names: equal twins, and one that is slower by a known part.

``packed@a`` is ``packed``; ``packed@+3%`` is ``packed`` whose every sample is followed by a busy
loop of 3 % of its time, inside the time that is told.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from dataclasses import replace
from types import TracebackType

import numpy as np
import numpy.typing as npt

from moe_prof.kernels.build import Kind
from moe_prof.kernels.info import PhaseTimes, PlanInfo
from moe_prof.kernels.weights import Weights
from moe_prof.measure.plans import MeasuredPlan, kernel_plan

F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]
FACTORY = "benchmarks.planted:planted_plan"
MARK = "@"


def twin(variant: str, mark: str) -> str:
    """The name of a twin."""
    return f"{variant}{MARK}{mark}"


def planted_plan(
    name: str, w: Weights, *, threads: int, isa: str | None, max_tokens: int, build: Kind
) -> AbstractContextManager[MeasuredPlan]:
    """The plan of the variant before the mark, slowed by what the mark says."""
    variant, _, mark = name.partition(MARK)
    inner = kernel_plan(variant, w, threads=threads, isa=isa, max_tokens=max_tokens, build=build)
    share = float(mark[1:-1]) / 100 if mark.startswith("+") else 0.0
    return PlantedPlan(name, inner, share)


class PlantedPlan:
    """A plan of another name whose forwards take ``share`` longer."""

    def __init__(
        self, name: str, inner: AbstractContextManager[MeasuredPlan], share: float
    ) -> None:
        self._name, self._inner, self._share = name, inner, share
        self._plan: MeasuredPlan

    def __enter__(self) -> PlantedPlan:
        self._plan = self._inner.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._inner.__exit__(kind, error, trace)

    @property
    def info(self) -> PlanInfo:
        """That of the variant, under the twin's name."""
        return replace(self._plan.info, variant=self._name)

    def forward(self, x: F32) -> F32:
        """As the variant does."""
        return self._plan.forward(x)

    def time_forward(self, x: F32, iterations: int) -> F64:
        """(1,) f64: seconds of the forwards and of the busy loop after them."""
        taken_s = float(np.sum(self._plan.time_forward(x, iterations)))
        start_s = time.perf_counter()
        end_s = start_s + self._share * taken_s
        while self._share and time.perf_counter() < end_s:
            pass
        return np.array([taken_s + (time.perf_counter() - start_s if self._share else 0.0)])

    def timers(self, *, reset: bool = False) -> PhaseTimes:
        """Those of the variant."""
        return self._plan.timers(reset=reset)
