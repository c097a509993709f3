"""How a worker gets a plan: a factory named ``module:function``.

The default makes the built-in variants and users' libraries; another factory can bring kernels of
any origin, as long as its plans do what :class:`MeasuredPlan` says.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from moe_prof.errors import UsageError
from moe_prof.kernels.build import Build, Kind, opened
from moe_prof.kernels.build import build as find_build
from moe_prof.kernels.info import PhaseTimes, PlanInfo
from moe_prof.kernels.selection import variant
from moe_prof.kernels.weights import Weights
from moe_prof.progress import Progress

F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]


class MeasuredPlan(Protocol):
    """A prepared kernel as the worker uses it."""

    @property
    def info(self) -> PlanInfo:
        """What really runs."""

    def forward(self, x: F32) -> F32:
        """x (N, D) f32 to y (N, D) f32."""

    def time_forward(self, x: F32, iterations: int) -> F64:
        """(1,) f64: seconds of ``iterations`` forwards together."""

    def timers(self, *, reset: bool = False) -> PhaseTimes:
        """Phase timers since the last reset; raises UnavailableError where there are none."""


class PlanFactory(Protocol):
    """Makes a plan, as a context manager."""

    def __call__(
        self, name: str, w: Weights, *, threads: int, isa: str | None, max_tokens: int, build: Kind
    ) -> AbstractContextManager[MeasuredPlan]:
        """Prepare variant ``name``; raises MoeProfError."""


def kernel_plan(
    name: str,
    w: Weights,
    *,
    threads: int,
    isa: str | None,
    max_tokens: int,
    build: Kind,
    folder: Path | None = None,
) -> AbstractContextManager[MeasuredPlan]:
    """A plan of the built-in variants, or of the library of which ``name`` is the path.

    Args:
        folder: of the build to take; None for that of the sources.
    """
    find = _build_once if folder is None else functools.partial(_opened_once, folder)
    return variant(name).prepare(w, threads, isa=isa, max_tokens=max_tokens, build=build, find=find)


@functools.cache
def _build_once(kind: Kind, progress: Progress) -> Build:
    """What was built when this process began: plans are prepared often, sources hashed once."""
    return find_build(kind, progress)


@functools.cache
def _opened_once(folder: Path, kind: Kind, progress: Progress) -> Build:
    """The parent's build, though the sources may have changed since."""
    del kind, progress
    return opened(folder)


def load_factory(dotted: str, build_folder: str | None = None) -> PlanFactory:
    """The factory that ``module:function`` names; that of kernels takes the build in the folder.

    Raises:
        UsageError: there is no such module or function.
    """
    module, _, name = dotted.partition(":")
    try:
        found: Callable[..., AbstractContextManager[MeasuredPlan]] = getattr(
            importlib.import_module(module), name
        )
    except (ImportError, AttributeError) as error:
        raise UsageError(
            f"plan factory {dotted!r} cannot be loaded: {error}; name it as module:function"
        ) from error
    if found is kernel_plan and build_folder is not None:
        return functools.partial(kernel_plan, folder=Path(build_folder))
    return found
