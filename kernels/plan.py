"""A prepared kernel: the object on which everything is run, timed and asked for proof.

``Plan`` checks what goes in and out; behind it stands a backend, native (``native.py``) or numba.
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from moe_prof.errors import InputError
from moe_prof.kernels.info import ChosenExperts, PhaseTimes, PlanInfo
from moe_prof.kernels.weights import F32, check_tokens
from moe_prof.scenario import MAX_TOKENS

F64 = npt.NDArray[np.float64]

MAX_ITERATIONS = 1 << 40
MAX_BATCHES = 1 << 24


class Backend(Protocol):
    """What runs behind a Plan; x and out have been checked, x is never empty of columns."""

    @property
    def info(self) -> PlanInfo:
        """What really runs."""

    def run(self, x: F32, out: F32) -> None:
        """One forward: x (N, D) f32 into out (N, D) f32, both C-order."""

    def time_batches(self, x: F32, out: F32, iterations: int, batches: int) -> F64:
        """(batches,) f64, seconds of each batch of ``iterations`` forwards."""

    def timers(self, *, reset: bool) -> PhaseTimes:
        """Phase times; raises UnavailableError where the backend has none."""

    def routing(self, num_tokens: int) -> ChosenExperts:
        """Experts and gates of the last forward; raises UnavailableError where not kept."""

    def path(self, num_tokens: int) -> str:
        """Name of the way that a forward takes, "" where there is only one."""

    def close(self) -> None:
        """Release what the backend holds."""


class Plan:
    """A kernel prepared for one layer's weights; a context manager.

    One forward at a time: concurrent calls wait for each other.
    """

    def __init__(self, backend: Backend, d_model: int) -> None:
        self._backend: Backend | None = backend
        self._d_model = d_model
        self._lock = threading.Lock()
        self._info = backend.info

    @property
    def info(self) -> PlanInfo:
        """What really runs: variant, path, threads, tile, bytes."""
        return self._info

    def forward(self, x: F32, *, out: F32 | None = None) -> F32:
        """The layer's output for the tokens.

        Args:
            x: (N, D) f32, finite; made C-order when it is not. N may be 0.
            out: (N, D) f32, C-order, aligned, not overlapping x; a new array by default.

        Returns:
            (N, D) f32: ``out``.

        Raises:
            InputError: an array breaks the above, or the plan is closed.
        """
        tokens = check_tokens(x, self._d_model)
        result = self._output_for(tokens, out)
        with self._lock:
            self._open_backend().run(tokens, result)
        return result

    def time_forward(self, x: F32, iterations: int, batches: int = 1) -> F64:
        """Wall time of repeated forwards, taken inside native code where the plan is native.

        Args:
            x: (N, D) f32, finite.
            iterations: forwards per batch, 1..2^40.
            batches: number of batches, 1..2^24.

        Returns:
            (batches,) f64: seconds of each whole batch.

        Raises:
            InputError: an argument breaks the above, or the plan is closed.
        """
        _check_count("time_forward: iterations", iterations, 1, MAX_ITERATIONS)
        _check_count("time_forward: batches", batches, 1, MAX_BATCHES)
        tokens = check_tokens(x, self._d_model)
        out = np.zeros_like(tokens)
        with self._lock:
            return self._open_backend().time_batches(tokens, out, iterations, batches)

    def timers(self, *, reset: bool = False) -> PhaseTimes:
        """Busy and waiting time per thread and step, since the plan began or the last reset.

        Raises:
            UnavailableError: the plan is not of the ``phases`` build.
            InputError: the plan is closed.
        """
        with self._lock:
            return self._open_backend().timers(reset=reset)

    def routing(self, num_tokens: int) -> ChosenExperts:
        """Experts and gates that the last forward chose for its first ``num_tokens`` tokens.

        Raises:
            InputError: the last forward had fewer tokens, or more than ``max_tokens``.
            UnavailableError: the kernel keeps no such record.
        """
        _check_count("routing: num_tokens", num_tokens, 0, MAX_TOKENS)
        if num_tokens > self._info.max_tokens:  # and no room is taken for the answer
            raise InputError(
                f"routing of {num_tokens} tokens: the plan keeps no more than "
                f"max_tokens = {self._info.max_tokens}"
            )
        with self._lock:
            return self._open_backend().routing(num_tokens)

    def path(self, num_tokens: int) -> str:
        """Name of the way that a forward of so many tokens takes, "" where there is only one.

        Raises:
            InputError: the number is not in 1..max_tokens, or the plan is closed.
        """
        _check_count("path: num_tokens", num_tokens, 1, self._info.max_tokens)
        with self._lock:
            return self._open_backend().path(num_tokens)

    def close(self) -> None:
        """Release workspace and threads; the plan cannot be used afterwards."""
        with self._lock:
            backend, self._backend = self._backend, None
        if backend is not None:
            backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _open_backend(self) -> Backend:
        if self._backend is None:
            raise InputError(f"plan {self._info.variant}: it is closed; prepare a new one")
        return self._backend

    def _output_for(self, x: F32, out: F32 | None) -> F32:
        if out is None:
            return np.empty_like(x)
        if not isinstance(out, np.ndarray) or out.dtype != np.float32 or out.shape != x.shape:
            shape = getattr(out, "shape", None)
            raise InputError(
                f"out: {getattr(out, 'dtype', type(out).__name__)} of shape {shape}, "
                f"float32 of shape {x.shape} is needed"
            )
        if not (out.flags.c_contiguous and out.flags.aligned and out.flags.writeable):
            raise InputError("out: it must be C-contiguous, aligned and writable")
        if np.may_share_memory(x, out):
            raise InputError("out: it may not overlap x")
        return out


def _check_count(label: str, value: int, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InputError(f"{label} = {value!r} must be an int")
    if not low <= value <= high:
        raise InputError(f"{label} = {value} is not in {low}..{high}")
