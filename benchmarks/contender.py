"""A contender: anything that computes the whole layer, ours or a peer's, behind one small class.

Every contender runs in a process of its own (``benchmarks.worker``), so that thread pools, BLAS
settings and crashes stay apart. It computes the whole layer: the router, the choice of experts, the
routed and the shared experts, the residual; its own library does as much of that as it can.
"""

from __future__ import annotations

import importlib
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from moe_prof.errors import UsageError
from moe_prof.kernels import Weights

F32 = npt.NDArray[np.float32]


class Contender(ABC):
    """One implementation of the layer.

    Attributes:
        path: after ``prepare``: what runs, for the table (library's version, kernel, type).
    """

    path: str = ""

    @abstractmethod
    def availability(self) -> str:
        """Why it cannot run here, "" when it can; without loading more than it must."""

    @abstractmethod
    def prepare(self, weights: Weights, threads: int, max_tokens: int) -> None:
        """Bring the weights into its own form; raises UnavailableError when the shape is refused.

        Args:
            weights: of one layer, int8 with one scale a matrix or an output channel.
            threads: of its team.
            max_tokens: N of every forward.
        """

    @abstractmethod
    def forward(self, x: F32) -> F32:
        """The layer's output: x (N, D) f32, C-order, to y (N, D) f32."""

    def time_forward(self, x: F32, loops: int) -> float:
        """Seconds of ``loops`` forwards together; override where a call from Python costs much."""
        start_s = time.perf_counter()
        for _ in range(loops):
            self.forward(x)
        return time.perf_counter() - start_s

    def close(self) -> None:  # noqa: B027  # most have nothing to release
        """Release threads and memory."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A contender in a contest.

    Attributes:
        name: for the table; unique together with ``threads``.
        adapter: ``module:Class`` of a :class:`Contender`.
        threads: of its team.
        options: keyword arguments of the class.
    """

    name: str
    adapter: str
    threads: int
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, int]:
        """What tells it from the others."""
        return (self.name, self.threads)

    def as_dict(self) -> dict[str, Any]:
        """As JSON types."""
        return asdict(self)


def load(adapter: str, options: Mapping[str, Any]) -> Contender:
    """Make the contender that ``module:Class`` names.

    Raises:
        UsageError: there is no such class.
    """
    module, _, name = adapter.partition(":")
    try:
        made: Contender = getattr(importlib.import_module(module), name)(**options)
    except AttributeError as error:
        raise UsageError(f"{adapter}: {error}; name an adapter as module:Class") from error
    return made
