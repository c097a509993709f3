"""The plan API of moe_prof.h through ctypes: the built-in kernels and a user's own library."""

from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, Structure, byref, c_char, c_char_p, c_float, c_int32, c_int64, c_uint64
from ctypes import c_void_p as Handle
from pathlib import Path

import numpy as np
import numpy.typing as npt

from moe_prof.errors import InputError, MoeProfError, UnavailableError, UsageError, WorkloadError
from moe_prof.kernels.elf import foreign_reason
from moe_prof.kernels.info import PHASES, ChosenExperts, PhaseTimes, PlanInfo, Spans
from moe_prof.kernels.weights import F32, Weights

ABI_VERSION = 2
_OK, _BAD_ARGUMENT, _NO_MEMORY, _UNSUPPORTED, _UNKNOWN_VARIANT = range(5)
_SCORES = {"sigmoid": 0, "softmax": 1}


class _Weights(Structure):
    _fields_ = (
        ("d_model", c_int32), ("d_ff", c_int32), ("num_experts", c_int32), ("top_k", c_int32),
        ("router", Handle), ("bias", Handle), ("gate", Handle), ("up", Handle), ("down", Handle),
        ("gate_scale", Handle), ("up_scale", Handle), ("down_scale", Handle),
        ("score", c_int32), ("n_group", c_int32), ("topk_group", c_int32),
        ("routed_scaling_factor", c_float), ("has_shared", c_int32), ("has_residual", c_int32),
        ("raw_gates", c_int32),
    )  # fmt: skip


class _Options(Structure):
    _fields_ = (
        ("variant", c_char_p), ("max_tokens", c_int32), ("threads", c_int32), ("pin", c_int32),
    )  # fmt: skip


class _Info(Structure):
    _fields_ = (
        ("variant", c_char * 32), ("isa", c_char * 32), ("microkernel", c_char * 64),
        ("note", c_char * 160), ("threads", c_int32), ("max_tokens", c_int32), ("mr", c_int32),
        ("nr", c_int32), ("kr", c_int32), ("weight_bytes", c_int64), ("workspace_bytes", c_int64),
    )  # fmt: skip


class _Spans(Structure):
    _fields_ = (
        ("capacity", c_int64), ("phase", Handle), ("begin_ns", Handle), ("end_ns", Handle),
        ("count", c_int64), ("kept", c_int64), ("wall_ns", c_uint64),
    )  # fmt: skip


MOST_SPANS = 4096
"""As many steps of a thread as the libraries keep (``kMostSpans`` of phase_timer.h)."""

_SIGNATURES: dict[str, tuple[type | None, tuple[type, ...]]] = {
    "moe_abi_version": (c_int32, ()),
    "moe_variant_count": (c_int32, ()),
    "moe_variant_name": (c_char_p, (c_int32,)),
    "moe_status_text": (c_char_p, (c_int32,)),
    "moe_plan_create": (c_int32, (POINTER(_Weights), POINTER(_Options), POINTER(Handle))),
    "moe_plan_forward": (c_int32, (Handle, Handle, Handle, c_int64)),
    "moe_plan_info": (c_int32, (Handle, POINTER(_Info))),
    "moe_plan_destroy": (None, (Handle,)),
    "moe_plan_routing": (c_int32, (Handle, Handle, Handle, c_int64)),
    "moe_plan_timers": (c_int32, (Handle, c_int32, c_int32, Handle, Handle, Handle, Handle)),
}


class NativeLibrary:
    """A loaded shared library with the plan API.

    Raises:
        InputError: it cannot be loaded, is for another architecture, or lacks the API.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lib = _load(path)
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(self._lib, name, None)
            if function is None:
                raise InputError(
                    f"{path}: it does not export {name}; see kernels/include/moe_prof.h"
                )
            function.restype = result
            function.argtypes = arguments
        version = self._lib.moe_abi_version()
        if version != ABI_VERSION:
            raise InputError(
                f"{path}: plan API version {version}, this moe_prof speaks {ABI_VERSION}; "
                "rebuild it with the current moe_prof.h"
            )
        self.path_function = getattr(self._lib, "moe_plan_path", None)  # newer than version 1
        if self.path_function is not None:
            self.path_function.restype = c_char_p
            self.path_function.argtypes = (Handle, c_int64)
        self.spans_function = getattr(self._lib, "moe_plan_spans", None)  # newer than version 1
        if self.spans_function is not None:
            self.spans_function.restype = c_int32
            self.spans_function.argtypes = (Handle, c_int32, POINTER(_Spans))

    @property
    def functions(self) -> ctypes.CDLL:
        """The C functions, typed."""
        return self._lib

    def variants(self) -> tuple[str, ...]:
        """Names of the library's variants, in its order."""
        names = (self._lib.moe_variant_name(i) for i in range(self._lib.moe_variant_count()))
        return tuple(_text(name) for name in names if name is not None)

    def check(self, status: int, what: str) -> None:
        """Turn a status into the error that fits.

        Raises:
            MoeProfError: the status is not MOE_OK.
        """
        if status == _OK:
            return
        text = _text(self._lib.moe_status_text(status) or b"unknown status")
        kinds: dict[int, type[MoeProfError]] = {
            _BAD_ARGUMENT: InputError,
            _NO_MEMORY: UsageError,
            _UNSUPPORTED: UnavailableError,
            _UNKNOWN_VARIANT: UsageError,
        }
        raise kinds.get(status, WorkloadError)(f"{what}: {text} (status {status}, {self.path})")


class NativeBackend:
    """One plan of a native library.

    Raises:
        MoeProfError: the library refuses; the message names the cause.
    """

    def __init__(
        self,
        library: NativeLibrary,
        support: Path,
        variant: str | None,
        weights: Weights,
        *,
        threads: int,
        max_tokens: int,
        pin: bool,
    ) -> None:
        self._library = library
        self._process = os.getpid()
        self._label = variant or library.path.name
        self._top_k = weights.top_k
        self._timing = _load(support).moe_time_forward
        self._timing.restype = c_int32
        self._timing.argtypes = (
            Handle, Handle, Handle, Handle, c_int64, c_int64, c_int64, Handle,
        )  # fmt: skip
        self._arrays = _arrays_of(weights)  # the plan points into them
        self._plan = Handle()
        options = _Options(
            variant=os.fsencode(variant) if variant else None,
            max_tokens=max_tokens, threads=threads, pin=int(pin),
        )  # fmt: skip
        status = library.functions.moe_plan_create(
            byref(_c_weights(weights, self._arrays)), byref(options), byref(self._plan)
        )
        library.check(status, f"prepare {self._label}")
        self._info = self._read_info()

    @property
    def info(self) -> PlanInfo:
        """What really runs."""
        return self._info

    def run(self, x: F32, out: F32) -> None:
        """One forward."""
        self._refuse_after_fork()
        status = self._library.functions.moe_plan_forward(
            self._plan, x.ctypes.data, out.ctypes.data, x.shape[0]
        )
        self._library.check(status, f"forward {self._label}")

    def time_batches(
        self, x: F32, out: F32, iterations: int, batches: int
    ) -> npt.NDArray[np.float64]:
        """Seconds of each batch, by the native timing loop."""
        self._refuse_after_fork()
        times_ns = np.zeros(batches, np.uint64)
        forward = ctypes.cast(self._library.functions.moe_plan_forward, Handle)
        status = self._timing(
            forward, self._plan, x.ctypes.data, out.ctypes.data, x.shape[0], iterations, batches,
            times_ns.ctypes.data,
        )  # fmt: skip
        self._library.check(status, f"forward {self._label}")
        return _seconds(times_ns)

    def timers(self, *, reset: bool) -> PhaseTimes:
        """Phase times of the ``phases`` build."""
        threads = self._info.threads
        phase_ns = np.zeros((threads, len(PHASES)), np.uint64)
        busy_ns = np.zeros(threads, np.uint64)
        wait_ns = np.zeros(threads, np.uint64)
        wall_ns = c_uint64()
        last = self._last_spans()  # before a reset forgets them
        status = self._library.functions.moe_plan_timers(
            self._plan, int(reset), threads, phase_ns.ctypes.data, busy_ns.ctypes.data,
            wait_ns.ctypes.data, ctypes.addressof(wall_ns),
        )  # fmt: skip
        if status == _UNSUPPORTED:
            raise UnavailableError(
                f"{self._label}: it has no phase timers; prepare it with build='phases'"
            )
        self._library.check(status, f"timers {self._label}")
        return PhaseTimes(
            _seconds(phase_ns), _seconds(busy_ns), _seconds(wait_ns), wall_ns.value * 1e-9,
            last=last,
        )  # fmt: skip

    def _last_spans(self) -> Spans | None:
        """The steps of the last forward."""
        function = self._library.spans_function
        if function is None:
            return None
        phase = np.zeros(MOST_SPANS, np.int32)
        begin_ns, end_ns = np.zeros(MOST_SPANS, np.uint64), np.zeros(MOST_SPANS, np.uint64)
        spans = _Spans(MOST_SPANS, *(array.ctypes.data for array in (phase, begin_ns, end_ns)))
        threads, left_out = [], 0
        for thread in range(self._info.threads):
            if function(self._plan, thread, byref(spans)) != _OK:
                return None
            kept = slice(0, spans.kept)
            left_out += spans.count - spans.kept
            times = zip(
                phase[kept].tolist(), _seconds(begin_ns[kept]).tolist(),
                _seconds(end_ns[kept]).tolist(), strict=True,
            )  # fmt: skip
            threads.append(tuple(times))
        return Spans(spans.wall_ns * 1e-9, tuple(threads), left_out)

    def routing(self, num_tokens: int) -> ChosenExperts:
        """Experts and gates of the last forward."""
        ids = np.zeros((num_tokens, self._top_k), np.int32)
        gates = np.zeros((num_tokens, self._top_k), np.float32)
        status = self._library.functions.moe_plan_routing(
            self._plan, ids.ctypes.data, gates.ctypes.data, num_tokens
        )
        if status == _BAD_ARGUMENT:
            raise InputError(
                f"routing of {num_tokens} tokens: the last forward had fewer, or more than "
                f"max_tokens = {self._info.max_tokens}"
            )
        self._library.check(status, f"routing {self._label}")
        return ChosenExperts(ids, gates)

    def path(self, num_tokens: int) -> str:
        """Name of the way that a forward takes, "" where the library knows only one."""
        function = self._library.path_function
        return "" if function is None else _text(function(self._plan, num_tokens) or b"")

    def close(self) -> None:
        """Destroy the plan; a forked process leaves it alone, whose threads it has not."""
        if self._plan and self._process == os.getpid():
            self._library.functions.moe_plan_destroy(self._plan)
        self._plan = Handle()

    def __del__(self) -> None:
        if getattr(self, "_plan", None):
            self.close()

    def _refuse_after_fork(self) -> None:
        if self._info.threads > 1 and self._process != os.getpid():
            raise InputError(
                f"plan {self._label}: it was prepared before this process was forked, and its "
                "threads stayed behind; prepare it here, or start processes with 'spawn'"
            )

    def _read_info(self) -> PlanInfo:
        info = _Info()
        status = self._library.functions.moe_plan_info(self._plan, byref(info))
        self._library.check(status, f"info {self._label}")
        if info.threads < 1:
            raise WorkloadError(
                f"{self._label}: it says that it runs on {info.threads} threads; "
                "moe_plan_info must fill all of moe_info"
            )
        return PlanInfo(
            variant=_text(info.variant), isa=_text(info.isa), threads=info.threads,
            max_tokens=info.max_tokens, microkernel=_text(info.microkernel),
            note=_text(info.note), mr=info.mr, nr=info.nr, kr=info.kr,
            weight_bytes=info.weight_bytes, workspace_bytes=info.workspace_bytes,
            path=self.path(info.max_tokens),
        )  # fmt: skip


def _text(words: bytes) -> str:
    """A library's own words, whatever its encoding, in one line."""
    return " ".join(words.decode("utf-8", "replace").split())


def _load(path: Path) -> ctypes.CDLL:
    try:
        reason = foreign_reason(path)
        if reason is not None:
            raise InputError(f"{reason}; a shared library of this machine is needed")
        return ctypes.CDLL(str(path))
    except (OSError, ValueError) as error:  # ValueError: a path with a zero byte
        words = getattr(error, "strerror", None) or str(error)
        raise InputError(f"the library {path} cannot be loaded: {words}") from error


def _seconds(times_ns: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    return times_ns.astype(np.float64) * 1e-9


def _arrays_of(w: Weights) -> dict[str, npt.NDArray[np.float32] | npt.NDArray[np.int8]]:
    return {
        "router": w.router, "bias": w.bias, "gate": w.gate, "up": w.up, "down": w.down,
        "gate_scale": w.gate_scale_per_channel, "up_scale": w.up_scale_per_channel,
        "down_scale": w.down_scale_per_channel,
    }  # fmt: skip


def _c_weights(
    w: Weights, arrays: dict[str, npt.NDArray[np.float32] | npt.NDArray[np.int8]]
) -> _Weights:
    return _Weights(
        d_model=w.d_model, d_ff=w.d_ff, num_experts=w.num_experts, top_k=w.top_k,
        score=_SCORES[w.score], n_group=w.n_group, topk_group=w.topk_group,
        routed_scaling_factor=w.routed_scaling_factor, has_shared=int(w.has_shared),
        has_residual=int(w.has_residual), raw_gates=int(not w.normalize_gates),
        **{name: array.ctypes.data for name, array in arrays.items()},
    )  # fmt: skip
