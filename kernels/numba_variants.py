"""The numba variants behind a plan: workspace, compilation at prepare, timing.

Imported only when such a variant is prepared, because importing numba takes long.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numba
import numpy as np
import numpy.typing as npt

from moe_prof.errors import InputError, UnavailableError, UsageError
from moe_prof.kernels.info import ChosenExperts, PhaseTimes, PlanInfo
from moe_prof.kernels.jit.buckets import Buckets, repeat_buckets
from moe_prof.kernels.jit.compile import is_kept, max_threads, threading_layer
from moe_prof.kernels.jit.routing import Layer, Scratch
from moe_prof.kernels.jit.tokens import repeat_tokens
from moe_prof.kernels.memory import check_memory
from moe_prof.kernels.weights import F32, Weights
from moe_prof.progress import SILENT, Progress

Scalar = TypeVar("Scalar", bound=np.generic)
Shapes = dict[str, tuple[tuple[int, ...], type[np.generic]]]
"""Shape and dtype of each array of a named tuple."""
Repeat = Callable[[int, F32, F32], None]
"""Runs the layer (iterations, x, y) times."""


class _Team:
    """Numba's threads: entered by one thread at a time, in the process that started them.

    Its simplest threading layer cannot be entered by two threads; of the others, one ends a forked
    process and one waits forever for threads that a fork does not copy.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: int | None = None

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Raises InputError in a process that was forked from the threads' own."""
        if self._process not in (None, os.getpid()):
            raise InputError(
                "numba's threads were started before this process was forked, and stayed behind; "
                "start processes with 'spawn'"
            )
        with self._lock:
            self._process = os.getpid()
            yield


_TEAM = _Team()


class NumbaBackend:
    """A numba variant prepared for one layer's weights.

    Raises:
        UsageError: more threads than numba has, or more workspace than memory.
    """

    def __init__(self, name: str, w: Weights, *, threads: int, max_tokens: int) -> None:
        _check_threads(threads)
        self._threads = threads
        self._last_tokens = 0
        grouped = name == "numba-matricized"
        shapes = _scratch_shapes(w, threads, max_tokens)
        bucket_shapes = _bucket_shapes(w, max_tokens) if grouped else {}
        workspace_bytes = _size_bytes(shapes) + _size_bytes(bucket_shapes)
        check_memory(f"the workspace of {name} for {max_tokens} tokens", workspace_bytes)
        layer = _layer(w)
        scratch = self._scratch = Scratch(**_arrays(shapes))
        if grouped:
            buckets = Buckets(**_arrays(bucket_shapes))
            self._repeat: Repeat = lambda count, x, y: repeat_buckets(
                count, x, y, layer, scratch, buckets
            )
        else:
            self._repeat = lambda count, x, y: repeat_tokens(count, x, y, layer, scratch)
        self._warm_up(w.d_model)
        self._info = PlanInfo(
            variant=name,
            isa="native",
            threads=threads,
            max_tokens=max_tokens,
            note=f"numba {numba.__version__}, threading layer {threading_layer()}",
            weight_bytes=sum(a.nbytes for a in layer if isinstance(a, np.ndarray)),
            workspace_bytes=workspace_bytes,
        )

    @property
    def info(self) -> PlanInfo:
        """What really runs."""
        return self._info

    def run(self, x: F32, out: F32) -> None:
        """One forward: x (N, D) f32 into out (N, D) f32."""
        with _running_on(self._threads):
            self._repeat(1, _writable(x), out)
        self._last_tokens = x.shape[0]

    def time_batches(
        self, x: F32, out: F32, iterations: int, batches: int
    ) -> npt.NDArray[np.float64]:
        """Seconds of each batch; the iterations are counted inside compiled code."""
        times_s, tokens = np.empty(batches), _writable(x)
        with _running_on(self._threads):
            for batch in range(batches):
                start_ns = time.perf_counter_ns()
                self._repeat(iterations, tokens, out)
                times_s[batch] = (time.perf_counter_ns() - start_ns) * 1e-9
        self._last_tokens = x.shape[0]
        return times_s

    def path(self, num_tokens: int) -> str:
        """Always the same way."""
        del num_tokens
        return ""

    def timers(self, *, reset: bool) -> PhaseTimes:
        """Always unavailable."""
        del reset
        raise UnavailableError(
            f"{self._info.variant}: phase timers exist in C++ variants only (build='phases')"
        )

    def routing(self, num_tokens: int) -> ChosenExperts:
        """Experts and gates of the last forward."""
        limit = self._info.max_tokens
        if not 0 <= num_tokens <= self._last_tokens or self._last_tokens > limit:
            raise InputError(
                f"routing of {num_tokens} tokens: the last forward had {self._last_tokens}, "
                f"max_tokens = {limit}"
            )
        ids = self._scratch.ids[:num_tokens].astype(np.int32)
        return ChosenExperts(ids, self._scratch.gates[:num_tokens].copy())

    def close(self) -> None:
        """Nothing to release but memory; numba's threads belong to the process."""

    def _warm_up(self, d_model: int) -> None:
        """Compile, or load what is kept on disk, and start numba's threads."""
        x = np.zeros((1, d_model), np.float32)
        with _running_on(self._threads):
            self._repeat(1, x, np.zeros_like(x))


def prepare(
    name: str, w: Weights, *, threads: int, max_tokens: int, progress: Progress = SILENT
) -> NumbaBackend:
    """The variant ``numba-parallel`` or ``numba-matricized``, compiled and ready.

    Raises:
        UsageError: more threads than numba has, or more workspace than memory.
    """
    function = "repeat_buckets" if name == "numba-matricized" else "repeat_tokens"
    with progress.task(f"compiling {name} by numba (kept for later)", slow=not is_kept(function)):
        return NumbaBackend(name, w, threads=threads, max_tokens=max_tokens)


@contextmanager
def _running_on(threads: int) -> Iterator[None]:
    """Numba's parallel loops use that many threads inside, and as many as before afterwards."""
    with _TEAM.entered():
        before = numba.get_num_threads()
        numba.set_num_threads(threads)
        try:
            yield
        finally:
            numba.set_num_threads(before)


def _check_threads(threads: int) -> None:
    most = max_threads()
    if threads > most:
        raise UsageError(
            f"threads = {threads}: numba started with {most}; use at most {most}, or set "
            f"NUMBA_NUM_THREADS={threads} in the environment"
        )


def _layer(w: Weights) -> Layer:
    """The weights as the compiled functions take them; large arrays are shared, not copied.

    Source of the error bound: the rounding errors of a dot product in any order (Higham, Accuracy
    and Stability of Numerical Algorithms, section 3.1), times the sigmoid's largest slope 1/4; the
    constant part covers exp, the division and the addition of the bias.
    """
    largest_norm = float(np.linalg.norm(w.router.astype(np.float64), axis=1).max()) * (1 + 1e-9)
    largest_bias = float(np.abs(w.bias).max())
    return Layer(
        columns=np.ascontiguousarray(w.router.T),
        bias=_writable(w.bias),
        gate=_writable(w.gate),
        up=_writable(w.up),
        down=_writable(w.down),
        gate_scale=_writable(w.gate_scale_per_channel),
        up_scale=_writable(w.up_scale_per_channel),
        down_scale=_writable(w.down_scale_per_channel),
        top_k=w.top_k,
        softmax=w.score == "softmax",
        n_group=w.n_group,
        topk_group=w.topk_group,
        factor=np.float32(w.routed_scaling_factor),
        has_residual=w.has_residual,
        normalize=w.normalize_gates,
        error_per_norm=0.25 * (w.d_model + 8) * 2.0**-24 * largest_norm,
        error_floor=2.0**-21 * (1 + largest_bias),
    )


class _Memory:
    """The memory of an array, offered as writable."""

    def __init__(self, array: npt.NDArray[Scalar]) -> None:
        address = array.__array_interface__["data"][0]
        self.__array_interface__ = array.__array_interface__ | {"data": (address, False)}
        self._owner = array


def _writable(array: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    """The array itself, or a view that passes for writable.

    Numba would compile everything once more for every combination of read-only arrays. Nothing
    writes to x or to the weights.
    """
    return array if array.flags.writeable else np.asarray(_Memory(array))


def _scratch_shapes(w: Weights, slots: int, tokens: int) -> Shapes:
    experts, best = w.num_experts, w.top_k + 1
    return {
        "z": ((slots, experts), np.float32),
        "affinity": ((slots, experts), np.float32),
        "score": ((slots, experts), np.float64),
        "ranked": ((slots, best), np.float64),
        "ranked_id": ((slots, best), np.int64),
        "group_rank": ((slots, w.n_group), np.float64),
        "group_kept": ((slots, w.n_group), np.int64),
        "x_q": ((slots, w.d_model), np.int16),
        "h": ((slots, w.d_ff), np.float32),
        "h_q": ((slots, w.d_ff), np.int16),
        "out": ((slots, w.d_model), np.float32),
        "ids": ((tokens, w.top_k), np.int64),
        "gates": ((tokens, w.top_k), np.float32),
    }


def _bucket_shapes(w: Weights, tokens: int) -> Shapes:
    per_token = w.top_k + int(w.has_shared)
    rows = tokens * per_token
    return {
        "first": ((w.num_stored + 1,), np.int64),
        "cursor": ((w.num_stored,), np.int64),
        "position": ((tokens, per_token), np.int64),
        "x_q": ((rows, w.d_model), np.int16),
        "x_scale": ((rows,), np.float32),
        "h": ((rows, w.d_ff), np.float32),
        "h_q": ((rows, w.d_ff), np.int16),
        "h_scale": ((rows,), np.float32),
        "out": ((rows, w.d_model), np.float32),
    }


def _size_bytes(shapes: Shapes) -> int:
    return sum(math.prod(shape) * np.dtype(dtype).itemsize for shape, dtype in shapes.values())


def _arrays(shapes: Shapes) -> dict[str, Any]:
    return {name: np.zeros(shape, dtype) for name, (shape, dtype) in shapes.items()}
