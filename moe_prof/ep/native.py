"""The compute core of ``moe_ep.h`` through ctypes: engines of packed weights, calls, stages.

Arrays are NumPy arrays that the caller has checked; every function here passes addresses on and turns
a status into the error that fits. Functions release the interpreter lock while they run, so that ranks
may be threads of one process.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from ctypes import POINTER, Structure, byref, c_char, c_double, c_int32, c_int64, c_uint32, c_uint64
from ctypes import c_void_p as Handle
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from moe_prof.ep.windows import ABORT_OFFSET, WindowLayout
from moe_prof.errors import InputError, PeerError, UnavailableError, UsageError, WorkloadError

Array = npt.NDArray[Any]

ABI_VERSION = 1
STAGES = (
    "dispatch", "wait_dispatch", "gather", "gmm1", "swiglu", "gmm2", "send", "wait_combine",
    "combine", "shared",
)  # fmt: skip
TRAFFICS = ("memory_read", "memory_written", "cache_read", "cache_written")
OVERLAP, CACHE_FUSED = 1, 2
BF16 = np.dtype(ml_dtypes.bfloat16)
FP16 = np.dtype(np.float16)
_DTYPES = {BF16: 0, FP16: 1, np.dtype(np.float32): 2}
_OK, _BAD_ARGUMENT, _NO_MEMORY, _UNSUPPORTED = 0, 1, 2, 3
_TIMEOUT, _ABORTED, _MISMATCH, _BUSY = 16, 17, 18, 19


class _Expert(Structure):
    _fields_ = (("gmm1", Handle), ("gmm1_scale", Handle), ("gmm2", Handle), ("gmm2_scale", Handle))


class _Setup(Structure):
    _fields_ = (
        ("h", c_int32), ("n", c_int32), ("local_experts", c_int32), ("experts", POINTER(_Expert)),
        ("n_shared", c_int32), ("shared", POINTER(_Expert)), ("threads", c_int32), ("pin", c_int32),
    )  # fmt: skip


class _Info(Structure):
    _fields_ = (
        ("isa", c_char * 32), ("microkernel", c_char * 64), ("note", c_char * 160),
        ("threads", c_int32), ("mr", c_int32), ("nr", c_int32), ("block_rows", c_int32),
        ("weight_bytes", c_int64), ("scratch_bytes", c_int64),
    )  # fmt: skip


class _Call(Structure):
    _fields_ = (
        ("bs", c_int32), ("active", c_int32), ("h", c_int32), ("k", c_int32), ("experts", c_int32),
        ("dtype", c_int32), ("x", Handle), ("expert_ids", Handle), ("expert_scales", Handle),
        ("smooth", Handle), ("share_smooth", Handle), ("output", Handle), ("share_output", Handle),
        ("expert_token_nums", Handle),
    )  # fmt: skip


class _Window(Structure):
    _fields_ = (
        ("bytes", c_int64), ("abort", c_int64), ("cells", c_int64), ("cells_stride", c_int64),
        ("done", c_int64), ("done_stride", c_int64), ("dispatch", c_int64), ("slot_bytes", c_int64),
        ("combine", c_int64), ("row_bytes", c_int64), ("max_bs", c_int32),
    )  # fmt: skip


class _Group(Structure):
    _fields_ = (
        ("rank", c_int32), ("ranks", c_int32), ("bases", POINTER(Handle)), ("layout", _Window),
        ("epoch", c_uint64), ("setup", c_uint32), ("crowded", c_int32), ("timeout_s", c_double),
    )  # fmt: skip


class _Workspace(Structure):
    _fields_ = (
        ("base", Handle), ("bytes", c_int64), ("rows", c_int64), ("shared_rows", c_int64),
        ("x1", c_int64), ("x1_scale", c_int64), ("swap", c_int64), ("x2", c_int64), ("x2_scale", c_int64), ("y2", c_int64),
        ("group_list", c_int64), ("expand_idx", c_int64), ("ep_send_count", c_int64),
    )  # fmt: skip


class _Span(Structure):
    _fields_ = (
        ("stage", c_int32), ("expert", c_int32), ("thread", c_int32), ("peer", c_int32),
        ("begin_ns", c_int64), ("end_ns", c_int64),
    )  # fmt: skip


class _Record(Structure):
    _fields_ = (
        ("stage_ns", c_int64 * len(STAGES)), ("bytes", (c_int64 * len(TRAFFICS)) * len(STAGES)),
        ("total_ns", c_int64), ("peer", c_int32), ("stage", c_int32), ("wait_ns", Handle),
        ("spans", POINTER(_Span)), ("span_capacity", c_int64), ("span_count", c_int64),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class ExpertArrays:
    """One expert's weights: int8 (h, n) and (n / 2, h), f32 scales (n) and (h), C-order."""

    gmm1: Array
    gmm1_scale: Array
    gmm2: Array
    gmm2_scale: Array


@dataclass(frozen=True, slots=True)
class CallArrays:
    """Checked operands of one call and its outputs; see ``moe_ep_call`` in ``moe_ep.h``."""

    x: Array
    expert_ids: Array
    expert_scales: Array
    active: int
    experts: int
    smooth: Array | None
    share_smooth: Array | None
    output: Array
    share_output: Array
    expert_token_nums: Array


@dataclass(frozen=True, slots=True)
class Span:
    """One stage of one expert on one thread, in seconds of the monotonic clock."""

    stage: str
    expert: int
    thread: int
    peer: int
    begin_s: float
    end_s: float


@dataclass(slots=True)
class Record:
    """What calls did: times and bytes by stage, waits by rank, spans of the last call.

    Attributes:
        ranks: P.
        span_capacity: how many spans to keep, 0: none.
    """

    ranks: int
    span_capacity: int = 0
    _raw: _Record = field(default_factory=_Record)
    _waits: Array = field(init=False)
    _spans: Any = field(init=False)

    def __post_init__(self) -> None:
        self._waits = np.zeros((2, self.ranks), np.int64)
        self._spans = (_Span * self.span_capacity)() if self.span_capacity else None
        self.reset()

    def reset(self) -> None:
        """Begin anew."""
        ctypes.memset(byref(self._raw), 0, ctypes.sizeof(self._raw))
        self._waits[:] = 0
        self._raw.wait_ns = self._waits.ctypes.data
        if self._spans is not None:
            self._raw.spans = self._spans
        self._raw.span_capacity = self.span_capacity
        self._raw.peer = self._raw.stage = -1

    @property
    def total_s(self) -> float:
        """Wall time of the calls."""
        return float(self._raw.total_ns) * 1e-9

    @property
    def stage_s(self) -> dict[str, float]:
        """Seconds by stage, summed over the threads of this rank."""
        return {name: self._raw.stage_ns[i] * 1e-9 for i, name in enumerate(STAGES)}

    @property
    def bytes(self) -> dict[str, dict[str, int]]:
        """Bytes by stage and kind of traffic, as counted by the code that moved them."""
        return {
            name: {kind: int(self._raw.bytes[i][j]) for j, kind in enumerate(TRAFFICS)}
            for i, name in enumerate(STAGES)
        }

    @property
    def wait_s(self) -> npt.NDArray[np.float64]:
        """(2, P): seconds waited for dispatch and for combine, by rank waited for."""
        return self._waits * 1e-9

    @property
    def spans(self) -> tuple[Span, ...]:
        """The spans that were kept, in the order in which they ended on their thread."""
        kept = min(self._raw.span_count, self.span_capacity)
        return tuple(
            Span(STAGES[s.stage], s.expert, s.thread, s.peer, s.begin_ns * 1e-9, s.end_ns * 1e-9)
            for s in (self._spans[i] for i in range(kept))
        )

    @property
    def spans_lost(self) -> int:
        """Spans beyond the capacity."""
        return max(0, int(self._raw.span_count) - self.span_capacity)

    @property
    def raw(self) -> _Record:
        """The C structure."""
        return self._raw


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """What an engine really runs."""

    isa: str
    microkernel: str
    note: str
    threads: int
    mr: int
    nr: int
    block_rows: int
    weight_bytes: int
    scratch_bytes: int


@dataclass(frozen=True, slots=True)
class GroupView:
    """A group as the core sees it: this rank's number and the mapped windows of all ranks.

    Attributes:
        rank: this rank.
        layout: of every window.
        bases: address of each rank's window in this process, in rank order.
        crowded: ranks outnumber CPUs, so waits yield at once.
        timeout_s: of each wait; not above 0: never.
    """

    rank: int
    layout: WindowLayout
    bases: tuple[int, ...]
    crowded: bool = False
    timeout_s: float = 60.0

    def raw(self, epoch: int, setup: int) -> tuple[_Group, Any]:
        """The C structure, and what must stay alive beside it."""
        pointers = (Handle * len(self.bases))(*self.bases)
        at = self.layout
        window = _Window(
            bytes=at.size_bytes, abort=ABORT_OFFSET, cells=at.cells, cells_stride=at.cells_stride,
            done=at.done, done_stride=at.done_stride, dispatch=at.dispatch,
            slot_bytes=at.slot_bytes, combine=at.combine, row_bytes=at.row_bytes, max_bs=at.max_bs,
        )  # fmt: skip
        group = _Group(
            rank=self.rank, ranks=len(self.bases), bases=pointers, layout=window, epoch=epoch,
            setup=setup & 0xFFFFFFFF, crowded=int(self.crowded), timeout_s=self.timeout_s,
        )  # fmt: skip
        return group, pointers
