"""The compute core of ``moe_ep.h`` through ctypes: engines of packed weights, and the stages.

Arrays are NumPy arrays that the caller has checked; every function here passes addresses on and
turns a status into the error that fits. Functions release the interpreter lock while they run, so
that ranks may be threads of one process. What another transport needs is here as well: ``route``,
``Engine.send_rows``, ``gather``, ``Engine.expert_rows`` and ``Engine.weighted_sum`` read and
write at the addresses they are given.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import byref, c_int64
from ctypes import c_void_p as Handle
from dataclasses import dataclass
from typing import Any

import numpy as np

from moe_prof.ep import abi
from moe_prof.ep.arrays import CallArrays, ExpertArrays, GroupView
from moe_prof.ep.blocks import Blocks
from moe_prof.ep.core import (
    BF16,
    FP16,
    Array,
    at,
    check,
    dtype_code,
    library,
    load,
    pointers,
    usable_isas,
)
from moe_prof.ep.record import Record, Span
from moe_prof.ep.workspace import WorkspaceMemory

__all__ = [
    "BF16", "FP16", "Array", "CallArrays", "Engine", "ExpertArrays", "GroupView", "Record", "Span",
    "abort", "check", "dtype_code", "gather", "library", "load", "quantize", "route",
    "usable_isas",
]  # fmt: skip

OVERLAP, CACHE_FUSED = abi.OVERLAP, abi.CACHE_FUSED


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


class Engine:
    """Packed weights of this rank's experts, threads and their scratch, on one path.

    Attributes:
        core: the path's library.
        info: what it really runs.
        h, n, n_shared, local_experts: sizes; n_shared 0 without a shared expert.

    Raises:
        UsageError: the path is not usable, or memory does not suffice.
        InputError: the sizes are impossible.
    """

    def __init__(
        self,
        experts: Sequence[ExpertArrays],
        shared: ExpertArrays | None = None,
        *,
        threads: int = 1,
        pin: bool = False,
        core: ctypes.CDLL | None = None,
    ) -> None:
        self.core = library() if core is None else core
        self._engine = Handle()
        self._blocks = Blocks()
        self.h, self.n = experts[0].gmm1.shape
        self.n_shared = 0 if shared is None else shared.gmm1.shape[1]
        self.local_experts = len(experts)
        raw = (abi.CExpert * len(experts))(*(_c_expert(e) for e in experts))
        raw_shared = None if shared is None else ctypes.pointer(_c_expert(shared))
        setup = abi.CSetup(
            h=self.h, n=self.n, local_experts=len(experts), experts=raw, n_shared=self.n_shared,
            shared=raw_shared, threads=threads, pin=int(pin),
        )  # fmt: skip
        check(self.core.moe_ep_create(byref(setup), byref(self._engine)), "prepare the experts")
        self.info = self._read_info()

    def _read_info(self) -> EngineInfo:
        raw = abi.CInfo()
        check(self.core.moe_ep_info(self._engine, byref(raw)), "engine info")
        return EngineInfo(
            isa=raw.isa.decode(), microkernel=raw.microkernel.decode(), note=raw.note.decode(),
            threads=raw.threads, mr=raw.mr, nr=raw.nr, block_rows=raw.block_rows,
            weight_bytes=raw.weight_bytes, scratch_bytes=raw.scratch_bytes,
        )  # fmt: skip

    def accepts(self, call: CallArrays) -> bool:
        """Whether values are finite and ids in range, none twice in a row: a quick look."""
        return bool(self.core.moe_ep_valid(byref(call.raw())))

    def close(self) -> None:
        """Free weights and threads."""
        if self._engine:
            self.core.moe_ep_destroy(self._engine)
        self._engine = Handle()

    def __del__(self) -> None:
        if getattr(self, "_engine", None):
            self.close()

    def fused(
        self, call: CallArrays, view: GroupView, epoch: int, setup: int,
        workspace: WorkspaceMemory, flags: int, record: Record,
    ) -> None:  # fmt: skip
        """``moe_ep_fused``: one whole call over windows.

        Raises:
            PeerError, UsageError, InputError: see ``check``.
        """
        status = self.core.moe_ep_fused(
            self._engine, byref(call.raw()), byref(view.raw(epoch, setup)),
            byref(workspace.raw()), flags, byref(record.raw),
        )  # fmt: skip
        check(status, "fused", record, view)

    def dispatch(
        self, call: CallArrays, view: GroupView, epoch: int, setup: int, capacity: int,
        record: Record,
    ) -> tuple[Array, Array, Array, Array, Array]:  # fmt: skip
        """``moe_ep_dispatch``: x1, x1_scale, expand_idx, ep_send_count, group_list.

        Raises:
            PeerError, UsageError, InputError: see ``check``.
        """
        x1 = self._blocks.empty((capacity, self.h), np.int8)
        x1_scale = self._blocks.empty((capacity,), np.float32)
        expand_idx = self._blocks.empty(call.expert_ids.shape, np.int32)
        ep_send_count = self._blocks.empty((self.local_experts, len(view.bases)), np.int32)
        group_list = self._blocks.empty((self.local_experts,), np.int64)
        rows = c_int64()
        status = self.core.moe_ep_dispatch(
            self._engine, byref(call.raw()), byref(view.raw(epoch, setup)), capacity, at(x1),
            at(x1_scale), at(expand_idx), at(ep_send_count), at(group_list), byref(rows),
            byref(record.raw),
        )  # fmt: skip
        check(status, "dispatch", record, view)
        return x1[: rows.value], x1_scale[: rows.value], expand_idx, ep_send_count, group_list

    def combine(
        self, call: CallArrays, view: GroupView, epoch: int, setup: int, y2: Array,
        expand_idx: Array, ep_send_count: Array, record: Record,
    ) -> None:  # fmt: skip
        """``moe_ep_combine``: y2 (R, h) back to the sources, weighted sums to ``call.output``.

        Raises:
            PeerError, UsageError, InputError: see ``check``.
        """
        status = self.core.moe_ep_combine(
            self._engine, byref(call.raw()), byref(view.raw(epoch, setup)), at(y2),
            at(expand_idx), at(ep_send_count), byref(record.raw),
        )  # fmt: skip
        check(status, "combine", record, view)

    def send_rows(
        self, call: CallArrays, expand_idx: Array, bases: Sequence[int], slot_bytes: int,
        record: Record,
    ) -> None:  # fmt: skip
        """Quantize this rank's rows; that of (t, j) to ``bases[e] + expand_idx * slot_bytes``.

        Args:
            bases: addresses, one per (global) expert.
        """
        status = self.core.moe_ep_send_rows(
            self._engine, byref(call.raw()), at(expand_idx), pointers(bases), slot_bytes,
            byref(record.raw),
        )  # fmt: skip
        check(status, "send_rows", record)

    def gmm1(self, x1: Array, group_list: Array | None, record: Record) -> Array:
        """x1 (R, h) int8 to C (R, n) int32; ``group_list`` None: all rows of the shared expert."""
        n = self.n if group_list is not None else self.n_shared
        c1 = self._blocks.empty((len(x1), n), np.int32)
        status = self.core.moe_ep_gmm1(
            self._engine,
            len(x1),
            at(group_list),
            at(x1),
            at(c1),
            byref(record.raw),
        )
        check(status, "gmm1", record)
        return c1

    def swiglu(
        self, c1: Array, x1_scale: Array, group_list: Array | None, record: Record
    ) -> tuple[Array, Array]:
        """C (R, n) to x2 (R, m) int8 and x2_scale (R)."""
        x2 = self._blocks.empty((len(c1), c1.shape[1] // 2), np.int8)
        x2_scale = self._blocks.empty((len(c1),), np.float32)
        status = self.core.moe_ep_swiglu(
            self._engine, len(c1), at(group_list), at(c1), at(x1_scale), at(x2),
            at(x2_scale), byref(record.raw),
        )  # fmt: skip
        check(status, "swiglu", record)
        return x2, x2_scale

    def gmm2(
        self, x2: Array, x2_scale: Array, group_list: Array | None, dtype: np.dtype[Any],
        record: Record,
    ) -> Array:  # fmt: skip
        """x2 (R, m) to rows (R, h) of ``dtype``."""
        y2 = self._blocks.empty((len(x2), self.h), dtype)
        status = self.core.moe_ep_gmm2(
            self._engine, len(x2), at(group_list), at(x2), at(x2_scale), dtype_code(dtype),
            at(y2), byref(record.raw),
        )  # fmt: skip
        check(status, "gmm2", record)
        return y2

    def expert_rows(
        self, expert: int, dtype: np.dtype[Any], counts: Array, inputs: Sequence[int],
        slot_bytes: int, outputs: Sequence[int], row_bytes: int, record: Record,
    ) -> None:  # fmt: skip
        """One local expert, fused, over runs of slots; run r: ``counts[r]`` from ``inputs[r]`` on.

        Args:
            counts: (runs) int32.
            inputs, outputs: addresses, one per run.
        """
        status = self.core.moe_ep_expert_rows(
            self._engine, expert, dtype_code(dtype), len(counts), at(counts), pointers(inputs),
            slot_bytes, pointers(outputs), row_bytes, byref(record.raw),
        )  # fmt: skip
        check(status, "expert_rows", record)

    def shared(self, call: CallArrays, record: Record) -> None:
        """The shared expert over all B rows into ``call.share_output``; zeros without one."""
        status = self.core.moe_ep_shared(self._engine, byref(call.raw()), byref(record.raw))
        check(status, "shared", record)

    def weighted_sum(
        self, call: CallArrays, expand_idx: Array, bases: Sequence[int], row_bytes: int,
        record: Record,
    ) -> None:  # fmt: skip
        """``call.output`` from rows at ``bases[e] + expand_idx * row_bytes``, a base per expert."""
        status = self.core.moe_ep_weighted_sum(
            self._engine, byref(call.raw()), at(expand_idx), pointers(bases), row_bytes,
            byref(record.raw),
        )  # fmt: skip
        check(status, "weighted_sum", record)


def route(
    expert_ids: Array, active: int, experts: int, method: int = 0, core: ctypes.CDLL | None = None
) -> tuple[Array, Array]:
    """expandIdx (B, k) int32 and counts (E) int32.

    Args:
        expert_ids: (B, k) int32.
        active: rows that count.
        experts: E.
        method: 0 the fastest, 1 choice by choice, 2 the table for small batches.
        core: None: the best path's.

    Raises:
        UnavailableError: the table does not serve these sizes.
    """
    core = library() if core is None else core
    expand_idx = np.empty(expert_ids.shape, np.int32)
    counts = np.empty(experts, np.int32)
    bs, k = expert_ids.shape
    status = core.moe_ep_route(
        active,
        bs,
        k,
        experts,
        at(expert_ids),
        method,
        at(expand_idx),
        at(counts),
    )
    check(status, f"route by method {method}")
    return expand_idx, counts


def quantize(
    x: Array, smooth: Array | None = None, core: ctypes.CDLL | None = None
) -> tuple[Array, Array]:
    """Step 1 of rows as they lie: q (rows, h) int8 and scales (rows)."""
    core = library() if core is None else core
    q = np.empty(x.shape, np.int8)
    scale = np.empty(len(x), np.float32)
    status = core.moe_ep_quantize(
        len(x),
        x.shape[1],
        dtype_code(x.dtype),
        at(x),
        at(smooth),
        at(q),
        at(scale),
    )
    check(status, "quantize")
    return q, scale


def gather(
    h: int, bases: Sequence[int], counts: Array, slot_bytes: int, record: Record, *,
    core: ctypes.CDLL | None = None, blocks: Blocks | None = None,
) -> tuple[Array, Array]:  # fmt: skip
    """Runs of slots one after another: x1 (R, h) int8 and x1_scale (R).

    Args:
        h: hidden size.
        bases: addresses, one per run, in receive order.
        counts: (runs) int32.
        slot_bytes: distance of slots.
        record: takes time and bytes.
        core: None: the best path's.
        blocks: memory for the results.
    """
    core = library() if core is None else core
    blocks = Blocks() if blocks is None else blocks
    rows = int(counts.sum())
    x1, x1_scale = blocks.empty((rows, h), np.int8), blocks.empty((rows,), np.float32)
    status = core.moe_ep_gather(
        h, len(counts), pointers(bases), at(counts), slot_bytes, at(x1), at(x1_scale),
        byref(record.raw),
    )  # fmt: skip
    check(status, "gather", record)
    return x1, x1_scale


def abort(view: GroupView, core: ctypes.CDLL | None = None) -> None:
    """Ask all ranks of the windows to stop waiting."""
    core = library() if core is None else core
    core.moe_ep_abort(byref(view.raw(1, 0)))


def _c_expert(e: ExpertArrays) -> abi.CExpert:
    return abi.CExpert(
        gmm1=at(e.gmm1), gmm1_scale=at(e.gmm1_scale), gmm2=at(e.gmm2),
        gmm2_scale=at(e.gmm2_scale),
    )  # fmt: skip
