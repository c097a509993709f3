"""A user's library behind guards: its inputs cannot be written, and writes beside them are found.

Its own workspace is its own business. Weights are copied between guards as long as that is cheap.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from moe_prof.kernels.guarded import ALIGNMENT, Guarded, frozen_copy
from moe_prof.kernels.info import ChosenExperts, PhaseTimes, PlanInfo
from moe_prof.kernels.plan import Backend
from moe_prof.kernels.weights import F32, Weights

MOST_GUARDED_BYTES = 1 << 28
"""Weights up to this size are copied; larger ones would cost memory that the layer needs."""


class GuardedBackend:
    """The plan of a library, called with guarded tokens and outputs only."""

    def __init__(self, name: str, backend: Backend) -> None:
        self._name, self._backend = name, backend
        self._x: Guarded | None = None
        self._y: Guarded | None = None
        self._source: F32 | None = None

    @property
    def info(self) -> PlanInfo:
        """What really runs."""
        return self._backend.info

    def run(self, x: F32, out: F32) -> None:
        """One forward; raises WorkloadError when it wrote beside its output."""
        tokens, result = self._buffers(x)
        result.array[...] = np.nan  # what it leaves out is no answer
        self._backend.run(tokens.array, result.array)
        result.check(self._name)
        out[...] = result.array

    def time_batches(
        self, x: F32, out: F32, iterations: int, batches: int
    ) -> npt.NDArray[np.float64]:
        """Seconds of each batch."""
        tokens, result = self._buffers(x)
        times_s = self._backend.time_batches(tokens.array, result.array, iterations, batches)
        result.check(self._name)
        out[...] = result.array
        return times_s

    def timers(self, *, reset: bool) -> PhaseTimes:
        """Phase times; raises UnavailableError where the library has none."""
        return self._backend.timers(reset=reset)

    def routing(self, num_tokens: int) -> ChosenExperts:
        """Experts and gates of the last forward; raises UnavailableError where not kept."""
        return self._backend.routing(num_tokens)

    def path(self, num_tokens: int) -> str:
        """Name of the way that a forward takes, "" where there is only one."""
        return self._backend.path(num_tokens)

    def close(self) -> None:
        """Release the plan."""
        self._backend.close()

    def _buffers(self, x: F32) -> tuple[Guarded, Guarded]:
        """Guarded memory of x's shape, holding x."""
        if self._x is None or self._y is None or self._source is None or not _same(x, self._source):
            self._source = x.copy()
            self._x = frozen_copy("x", x)
            self._y = Guarded("y", x.shape, np.float32, margin_bytes=ALIGNMENT)
        return self._x, self._y


def guarded_weights(w: Weights) -> Weights:
    """The weights with every array frozen between guards, or as they are when they are large."""
    if w.nbytes > MOST_GUARDED_BYTES:
        return w
    return replace(
        w,
        router=frozen_copy("router", w.router).array,
        bias=frozen_copy("bias", w.bias).array,
        gate=frozen_copy("gate", w.gate).array,
        up=frozen_copy("up", w.up).array,
        down=frozen_copy("down", w.down).array,
        gate_scale=frozen_copy("gate_scale", w.gate_scale_per_channel).array,
        up_scale=frozen_copy("up_scale", w.up_scale_per_channel).array,
        down_scale=frozen_copy("down_scale", w.down_scale_per_channel).array,
    )


def _same(x: F32, other: F32) -> bool:
    return x.shape == other.shape and bool(np.array_equal(x, other))
