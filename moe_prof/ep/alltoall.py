"""Dispatch and combine of the small ops by ``MPI_Alltoallv``, as a user of MPI would write them.

Rows are quantized into one send buffer ordered by expert, hence by owner; owners learn the counts
by ``MPI_Alltoall`` and rows by ``MPI_Alltoallv``, then gather them by local expert, source, slot.
The way back is the same with the ranks' parts exchanged. The calls are the nonblocking ones, waited
for with the group's deadline and yielding where ranks outnumber CPUs.

Nothing here overlaps: while rows travel, the rank's whole team waits. Its time is told as stage
``wait_dispatch`` or ``wait_combine``; for whom a collective waits is not known.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from moe_prof.ep.abi import STAGES, TRAFFICS, CSpan
from moe_prof.ep.blocks import Blocks
from moe_prof.ep.board import Board
from moe_prof.ep.group import Array, Received
from moe_prof.ep.native import CallArrays, Engine, gather, route
from moe_prof.ep.record import Record
from moe_prof.ep.windows import ELEMENT_BYTES, SCALE_BYTES

I64 = npt.NDArray[np.int64]

TIMED_OUT = "gave up waiting"
ROLL_CALL_S = 2.0
"""After the deadline, for all who waited to say so; who does not is the one that is missing."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """Who sends how many rows: by own (global) expert, and received (source, local expert)."""

    sent: I64
    received: I64


class Exchange:
    """One rank's end of the two small ops that communicate."""

    def __init__(self, mpi: Any, comm: Any, board: Board) -> None:  # noqa: ANN401
        self._mpi, self._comm, self._board = mpi, comm, board
        self._blocks = Blocks()
        self._calls = 0
        self._plan: tuple[int, _Plan] | None = None

    def dispatch(self, engine: Engine, call: CallArrays, setup: int, record: Record) -> Received:
        """Quantize this rank's rows, bring them to their owners, gather what came here."""
        self._calls += 1
        ranks, h = self._board.size, engine.h
        slot = h + SCALE_BYTES
        expand_idx, counts = route(call.expert_ids, call.active, call.experts, core=engine.core)
        send = self._blocks.empty((max(1, int(counts.sum()) * slot),), np.uint8)
        engine.send_rows(call, expand_idx, _addresses(send, _starts(counts) * slot), slot, record)
        begin_ns = time.monotonic_ns()
        plan = _Plan(counts.astype(np.int64), self._counts(counts, ranks))
        self._plan = (self._calls, plan)
        taken = self._blocks.empty((max(1, int(plan.received.sum()) * slot),), np.uint8)
        to = plan.sent.reshape(ranks, -1).sum(axis=1) * slot
        come = plan.received.sum(axis=1) * slot
        self._alltoallv(send, to, taken, come)
        _tell(record, engine, "wait_dispatch", begin_ns, (int(to.sum()), int(come.sum())))
        by_run = np.ascontiguousarray(plan.received.T)  # (L, P): the receive order
        offsets = _starts(plan.received.reshape(-1)).reshape(plan.received.shape).T * slot
        x1, x1_scale = gather(
            h, _addresses(taken, offsets.reshape(-1)), by_run.reshape(-1).astype(np.int32), slot,
            record, core=engine.core, blocks=self._blocks,
        )  # fmt: skip
        nums = by_run.sum(axis=1)
        call.expert_token_nums[:] = nums
        ends = np.cumsum(by_run.reshape(-1)).reshape(by_run.shape)
        return Received(
            x1=x1, x1_scale=x1_scale, expand_idx=expand_idx, ep_send_count=ends.astype(np.int32),
            group_list=np.cumsum(nums), expert_token_nums=nums, epoch=self._calls, setup=setup,
        )  # fmt: skip

    def combine(
        self, engine: Engine, call: CallArrays, y2: Array, received: Received, record: Record
    ) -> None:
        """Bring rows back to their sources and sum them."""
        assert self._plan is not None
        assert self._plan[0] == received.epoch
        plan, ranks = self._plan[1], self._board.size
        size = engine.h * ELEMENT_BYTES
        begin_ns = time.monotonic_ns()
        rows = y2.view(np.uint8).reshape(len(y2), size)
        send = self._blocks.empty(rows.shape, np.uint8)
        np.take(rows, _send_order(plan.received), axis=0, out=send)
        send = send.reshape(-1)
        _tell(record, engine, "send", begin_ns, (send.nbytes, send.nbytes))
        back = self._blocks.empty((max(1, int(plan.sent.sum()) * size),), np.uint8)
        to = plan.received.sum(axis=1) * size
        come = plan.sent.reshape(ranks, -1).sum(axis=1) * size
        begin_ns = time.monotonic_ns()
        self._alltoallv(send, to, back, come)
        _tell(record, engine, "wait_combine", begin_ns, (int(to.sum()), int(come.sum())))
        bases = _addresses(back, _starts(plan.sent) * size)
        engine.weighted_sum(call, received.expand_idx, bases, size, record)

    def _counts(self, counts: Array, ranks: int) -> I64:
        """(P, L): rows that each source sends for each local expert."""
        mine = counts.astype(np.int64)
        theirs = np.empty_like(mine)
        self._wait(self._comm.Ialltoall(mine, theirs))
        return theirs.reshape(ranks, -1)

    def _alltoallv(self, send: Array, to: I64, taken: Array, come: I64) -> None:
        byte = self._mpi.BYTE
        self._wait(
            self._comm.Ialltoallv(
                [send, (to, _starts(to)), byte], [taken, (come, _starts(come)), byte]
            )
        )

    def _wait(self, request: Any) -> None:  # noqa: ANN401
        self._board.wait_until(request.Test, self._missing)

    def _missing(self) -> list[int]:
        """Who does not answer a roll call, after the time is over."""
        board = self._board
        board.stage(TIMED_OUT)
        end_s = time.monotonic() + ROLL_CALL_S
        while time.monotonic() < end_s:
            board.refresh()
            missing = [r for r in range(board.size) if board.stage_of(r) != TIMED_OUT]
            if not missing:
                return []
            time.sleep(0.01)
        return missing


def _starts(counts: Array) -> I64:
    """Exclusive prefix sums."""
    return np.cumsum(counts, dtype=np.int64) - counts


def _send_order(received: I64) -> I64:
    """Positions in receive order (local expert, source, slot), sorted by source, then expert."""
    by_run = received.T
    starts = _starts(by_run.reshape(-1)).reshape(by_run.shape)
    parts = [
        np.arange(starts[local, source], starts[local, source] + by_run[local, source])
        for source in range(received.shape[0])
        for local in range(received.shape[1])
    ]
    return np.concatenate(parts).astype(np.int64)


def _addresses(memory: Array, offsets: Array) -> list[int]:
    start = memory.ctypes.data
    return [start + int(offset) for offset in offsets]


def _tell(
    record: Record, engine: Engine, stage: str, begin_ns: int, moved: tuple[int, int]
) -> None:
    """Add an exchange to the record: the whole team waits while it lasts.

    Args:
        moved: bytes read and written.
    """
    end_ns = time.monotonic_ns()
    at, raw = STAGES.index(stage), record.raw
    raw.stage_ns[at] += (end_ns - begin_ns) * engine.info.threads
    raw.total_ns += end_ns - begin_ns
    for traffic, size in zip(("memory_read", "memory_written"), moved, strict=True):
        raw.bytes[at][TRAFFICS.index(traffic)] += size
    add_span(record, stage, (begin_ns, end_ns))


def add_span(record: Record, stage: str, times_ns: tuple[int, int], peer: int = -1) -> None:
    """Note a stretch of this thread, if spans are wanted and there is room."""
    raw = record.raw
    if raw.span_count < raw.span_capacity:
        raw.spans[raw.span_count] = CSpan(
            stage=STAGES.index(stage), expert=-1, thread=0, peer=peer, begin_ns=times_ns[0],
            end_ns=times_ns[1],
        )  # fmt: skip
    if raw.span_capacity:
        raw.span_count += 1
