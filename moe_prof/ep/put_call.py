"""The fused call between machines: rows travel by ``MPI_Put``, expert by expert.

The windows have the layout of the call within a machine (``windows.py``), and the same words say
when rows are there: for each local expert in turn a rank puts its rows, flushes, and then writes
the cell of (source, expert); the owner computes an expert once all sources' cells are there, while
the next ones' rows are on their way, puts the results back, and in the end writes its completion
flag.

MPI is called by this thread alone, and an expert is computed by one thread: between machines ranks
are best started one a core, or a few.
"""

from __future__ import annotations

import ctypes
import time
from typing import TYPE_CHECKING

import numpy as np

from moe_prof.ep.abi import STAGES
from moe_prof.ep.alltoall import add_span
from moe_prof.ep.group import Array, Options
from moe_prof.ep.native import CallArrays, Engine, route
from moe_prof.ep.record import Record
from moe_prof.ep.results import WAITS
from moe_prof.ep.windows import ABORT_OFFSET, CELL_BYTES
from moe_prof.ep.workspace import WorkspaceMemory
from moe_prof.errors import PeerError, UnavailableError

if TYPE_CHECKING:
    from moe_prof.ep.mpi_group import EpGroup

_DISPATCH, _COMBINE = 0, 1


class PutCall:
    """One rank's end of the fused call over windows that can only be put to."""

    def __init__(self, group: EpGroup) -> None:
        self._group = group
        self._epoch = 0
        layout = group.layout
        self._rows_out = np.zeros(layout.experts * layout.max_bs * layout.slot_bytes, np.uint8)
        self._rows_back = np.zeros(
            layout.ranks * layout.local_experts * layout.max_bs * layout.row_bytes, np.uint8
        )

    def fused(
        self,
        engine: Engine,
        call: CallArrays,
        workspace: WorkspaceMemory,
        options: Options,
        setup: int,
        record: Record,
    ) -> None:
        """One whole call; intermediates always stay in caches, so ``workspace`` is not used.

        Raises:
            UnavailableError: intermediates in the workspace were asked for.
            PeerError: a rank did not come, stopped, or called with another setup.
        """
        del workspace
        if not options.cache_fused:
            raise UnavailableError(
                "transport put keeps intermediates in caches; it has no other way"
            )
        started_s, before_ns = time.monotonic(), int(record.raw.total_ns)
        self._epoch += 1
        layout = self._group.layout
        expand_idx, counts = route(call.expert_ids, call.active, call.experts, core=engine.core)
        bases = _runs(self._rows_out, layout.experts, layout.max_bs * layout.slot_bytes)
        engine.send_rows(call, expand_idx, bases, layout.slot_bytes, record)
        self._send(counts, setup)
        engine.shared(call, record)
        locals_ = range(layout.local_experts)
        if not options.overlap:
            for local in locals_:
                self._wait_for_rows(local, setup, record)
        for local in locals_:
            taken = self._wait_for_rows(local, setup, record)
            call.expert_token_nums[local] = taken.sum()
            self._compute(engine, call, local, taken, record)
        self._finish(record)
        own = self._group.segments.own.ctypes.data
        rows = [own + layout.rows(expert) for expert in range(layout.experts)]
        engine.weighted_sum(call, expand_idx, rows, layout.row_bytes, record)
        record.raw.total_ns = before_ns + int((time.monotonic() - started_s) * 1e9)

    def _send(self, counts: Array, setup: int) -> None:
        """Rows to their owners, local expert by local expert, then the cell that announces them."""
        layout, segments, rank = self._group.layout, self._group.segments, self._group.rank
        for local in range(layout.local_experts):
            for owner in self._others_first():
                expert = owner * layout.local_experts + local
                start = expert * layout.max_bs * layout.slot_bytes
                size = int(counts[expert]) * layout.slot_bytes
                if size:
                    data = self._rows_out[start : start + size]
                    segments.put(data, owner, layout.slots(rank, local))
            for owner in self._others_first():
                expert = owner * layout.local_experts + local
                word = int(counts[expert]) | (setup & 0xFFFFFFFF) << 32
                cell = layout.cell(rank, local)
                segments.put_word(_signed(word), owner, cell + 8)
                segments.put_word(self._epoch, owner, cell)

    def _wait_for_rows(self, local: int, setup: int, record: Record) -> Array:
        """Rows that each source sent for a local expert, once all are there."""
        layout, own = self._group.layout, self._group.segments.own
        counts = np.zeros(layout.ranks, np.int32)
        for source in range(layout.ranks):
            place = layout.cell(source, local)
            cell = own[place : place + CELL_BYTES].view(np.uint64)
            self._wait(cell, source, _DISPATCH, record)
            word = int(cell[1])
            if word >> 32 != setup & 0xFFFFFFFF:
                raise PeerError(
                    f"rank {source} called with another setup (sizes, dtype or options)", source
                )
            counts[source] = word & 0xFFFFFFFF
        return counts

    def _compute(
        self, engine: Engine, call: CallArrays, local: int, taken: Array, record: Record
    ) -> None:
        """One expert over the rows of all sources; results are put back at once."""
        layout, segments = self._group.layout, self._group.segments
        run_bytes = layout.max_bs * layout.row_bytes
        rows = self._rows_back[local * layout.ranks * run_bytes :]
        own = segments.own.ctypes.data
        inputs = [own + layout.slots(source, local) for source in range(layout.ranks)]
        engine.expert_rows(
            local, call.x.dtype, taken, inputs, layout.slot_bytes,
            _runs(rows, layout.ranks, run_bytes), layout.row_bytes, record,
        )  # fmt: skip
        expert = self._group.rank * layout.local_experts + local
        for source in self._others_first():
            size = int(taken[source]) * layout.row_bytes
            if size:
                start = source * run_bytes
                segments.put(rows[start : start + size], source, layout.rows(expert))

    def _finish(self, record: Record) -> None:
        """Tell all that this owner is done, and wait for all owners."""
        layout, segments = self._group.layout, self._group.segments
        for source in self._others_first():
            segments.put_word(self._epoch, source, layout.done_flag(self._group.rank))
        for owner in range(layout.ranks):
            place = layout.done_flag(owner)
            self._wait(segments.own[place : place + 8].view(np.uint64), owner, _COMBINE, record)

    def _wait(self, words: Array, peer: int, phase: int, record: Record) -> None:
        """Until the first word is this call's epoch."""
        group = self._group
        if words[0] >= self._epoch:
            return
        begin_ns = time.monotonic_ns()
        abort = group.segments.own[ABORT_OFFSET : ABORT_OFFSET + 8].view(np.uint64)

        def done() -> bool:
            if abort[0]:
                raise PeerError(f"rank {int(abort[0]) - 1} stopped the call", int(abort[0]) - 1)
            return bool(words[0] >= self._epoch)

        group.segments.refresh()
        group.board.wait_until(done, lambda: [peer])
        end_ns = time.monotonic_ns()
        took_ns, stage = end_ns - begin_ns, WAITS[phase]
        record.raw.stage_ns[STAGES.index(stage)] += took_ns
        add_span(record, stage, (begin_ns, end_ns), peer)
        waits = ctypes.cast(record.raw.wait_ns, ctypes.POINTER(ctypes.c_int64))
        waits[phase * group.size + peer] += took_ns

    def _others_first(self) -> list[int]:
        """All ranks, this one last: the others can go on in the meantime."""
        size, rank = self._group.size, self._group.rank
        return [(rank + 1 + i) % size for i in range(size)]


def _runs(memory: Array, count: int, size_bytes: int) -> list[int]:
    """Addresses of equal runs."""
    start = memory.ctypes.data
    return [start + run * size_bytes for run in range(count)]


def _signed(word: int) -> int:
    """The int64 with the bits of a uint64."""
    return word - (1 << 64) if word >= 1 << 63 else word
