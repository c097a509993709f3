"""Memory that ranks share: a segment of every rank, between guards, by store or by Put.

*shared*: all ranks run on one machine, ``MPI_Win_allocate_shared`` maps every segment into every
process, and kernels store into the other ranks' segments themselves. *put*: ``MPI_Win_allocate``,
and ``MPI_Put`` with a flush carries bytes from the sender's memory to a segment elsewhere.
(``MPI_Win_create`` is not used: its target must call MPI for data to arrive, so nothing overlaps.)

Each segment lies between guards of ``GUARD_BYTES`` with a known pattern, and begins on a page, at
the same offset in every process. Under MPI's separate memory model a reader must call ``refresh``.

Source: the MPI standard 4.1, chapter 12 (one-sided communication), for what a flush and a window
sync promise.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from moe_prof.ep.board import NOTICE_BYTES, U8
from moe_prof.errors import UnavailableError, WorkloadError

PAGE_BYTES = 4096
GUARD_BYTES = PAGE_BYTES
GUARD_BYTE = 0xA5


class Segments(Protocol):
    """One segment per rank; ``kind`` is ``shared`` or ``put``."""

    kind: str
    own: U8

    def segment(self, rank: int) -> U8 | None:
        """The segment of a rank as memory of this process; None where it can only be put to."""

    def put(self, data: U8, rank: int, offset: int) -> None:
        """Send bytes to a place in a rank's segment; complete after :meth:`flush`."""

    def put_word(self, word: int, rank: int, offset: int) -> None:
        """Write an aligned 64-bit word that nobody sees half, after all that was put before."""

    def flush(self, rank: int) -> None:
        """Wait until what was put to a rank has arrived there."""

    def refresh(self) -> None:
        """Let what others wrote become visible here, and messages advance."""

    def check_guards(self) -> None:
        """Raises WorkloadError where bytes around this rank's segment were written."""

    def free(self) -> None:
        """Give the memory back; collective."""


class _Guarded:
    """A segment of ``size`` bytes between guards, inside memory that MPI allocated."""

    def __init__(self, memory: U8, size: int, rank: int) -> None:
        start = (-memory.ctypes.data) % PAGE_BYTES + GUARD_BYTES
        self.start, self.rank = start, rank
        self.before = memory[start - GUARD_BYTES : start]
        self.own = memory[start : start + size]
        self.after = memory[start + size : start + size + GUARD_BYTES]
        self.before[:] = GUARD_BYTE
        self.after[:] = GUARD_BYTE
        self.own[:] = 0

    def check(self) -> None:
        """Raises WorkloadError where a guard's byte has changed."""
        for name, guard in (("before", self.before), ("behind", self.after)):
            (places,) = np.nonzero(guard != GUARD_BYTE)
            if len(places):
                raise WorkloadError(
                    f"rank {self.rank}: {len(places)} bytes {name} the window were written, first "
                    f"at {'-' if name == 'before' else '+'}{self._distance(name, places)}"
                )

    def _distance(self, name: str, places: Any) -> int:  # noqa: ANN401  (an array of positions)
        return GUARD_BYTES - int(places[-1]) if name == "before" else int(places[0])


def whole_bytes(size: int) -> int:
    """What must be allocated for a segment with its guards and alignment."""
    return size + 2 * GUARD_BYTES + PAGE_BYTES


class SharedSegments:
    """Segments mapped into every process of one machine."""

    kind = "shared"

    def __init__(self, mpi: Any, comm: Any, size: int) -> None:  # noqa: ANN401
        info = mpi.Info.Create()
        info.Set("alloc_shared_noncontig", "true")  # each rank's part on its own pages
        self._window = mpi.Win.Allocate_shared(whole_bytes(size), 1, info, comm)
        info.Free()
        self._window.Lock_all()
        rank = comm.Get_rank()
        whole = [self._mapped(other) for other in range(comm.Get_size())]
        self._guarded = _Guarded(whole[rank], size, rank)
        self.own = self._guarded.own
        starts = comm.allgather(self._guarded.start)
        self._segments = [
            memory[start : start + size] for memory, start in zip(whole, starts, strict=True)
        ]
        self._window.Sync()
        comm.Barrier()  # nobody writes before all have cleared theirs

    def _mapped(self, rank: int) -> U8:
        buffer, _ = self._window.Shared_query(rank)
        return np.frombuffer(buffer, np.uint8)

    def segment(self, rank: int) -> U8 | None:
        """The segment of any rank."""
        return self._segments[rank]

    def put(self, data: U8, rank: int, offset: int) -> None:
        """A plain store."""
        self._segments[rank][offset : offset + data.nbytes] = data.reshape(-1)

    def put_word(self, word: int, rank: int, offset: int) -> None:
        """One store of eight bytes, with a barrier before and behind."""
        self._window.Sync()
        self._segments[rank][offset : offset + 8].view(np.int64)[0] = word
        self._window.Sync()

    def flush(self, rank: int) -> None:
        """Order stores: what comes later is seen later."""
        del rank
        self._window.Sync()

    def refresh(self) -> None:
        """A memory barrier."""
        self._window.Sync()

    def check_guards(self) -> None:
        """Raises WorkloadError where bytes around this rank's segment were written."""
        self._guarded.check()

    def free(self) -> None:
        """Collective."""
        self._window.Unlock_all()
        self._window.Free()


class PutSegments:
    """Segments on any machine, reached by ``MPI_Put``."""

    kind = "put"

    def __init__(self, mpi: Any, comm: Any, size: int) -> None:  # noqa: ANN401
        self._mpi, self._comm = mpi, comm
        self._window = mpi.Win.Allocate(whole_bytes(size), 1, mpi.INFO_NULL, comm)
        self._window.Lock_all()
        self._rank = comm.Get_rank()
        memory = np.frombuffer(self._window.tomemory(), np.uint8)
        self._guarded = _Guarded(memory, size, self._rank)
        self.own = self._guarded.own
        self._starts = comm.allgather(self._guarded.start)
        self._window.Sync()
        comm.Barrier()

    def segment(self, rank: int) -> U8 | None:
        """Only this rank's own."""
        return self.own if rank == self._rank else None

    def put(self, data: U8, rank: int, offset: int) -> None:
        """Put; the bytes must stay until the flush."""
        if rank == self._rank:
            self.own[offset : offset + data.nbytes] = data.reshape(-1)
            return
        self._window.Put(data, rank, self._starts[rank] + offset)

    def put_word(self, word: int, rank: int, offset: int) -> None:
        """An accumulate that replaces, which MPI makes atomic, between two flushes."""
        if rank == self._rank:
            self.own[offset : offset + 8].view(np.int64)[0] = word
            self._window.Sync()
            return
        self._window.Flush(rank)
        kind = self._mpi.INT64_T
        value = [np.array([word], np.int64), kind]
        self._window.Accumulate(
            value, rank, (self._starts[rank] + offset, 1, kind), self._mpi.REPLACE
        )
        self._window.Flush(rank)

    def flush(self, rank: int) -> None:
        """Complete at the target."""
        if rank != self._rank:
            self._window.Flush(rank)

    def refresh(self) -> None:
        """Synchronise the window's copies and let the library work on arriving messages."""
        self._window.Sync()
        self._comm.Iprobe()

    def check_guards(self) -> None:
        """Raises WorkloadError where bytes around this rank's segment were written."""
        self._guarded.check()

    def free(self) -> None:
        """Collective."""
        self._window.Unlock_all()
        self._window.Free()


class SegmentNotices:
    """The carrier of a noticeboard: each rank's segment holds a copy of all notices."""

    def __init__(self, segments: Segments, rank: int, size: int) -> None:
        self._segments, self._rank, self._size = segments, rank, size
        self.notices = segments.own[: size * NOTICE_BYTES].reshape(size, NOTICE_BYTES)

    def publish(self, start: int, stop: int) -> None:
        """To every other rank."""
        data = self.notices[self._rank, start:stop]
        for other in self._others():
            self._segments.put(data, other, self._rank * NOTICE_BYTES + start)
        for other in self._others():
            self._segments.flush(other)

    def publish_word(self, at: int) -> None:
        """To every other rank."""
        word = int(self.notices[self._rank, at : at + 8].view(np.int64)[0])
        for other in self._others():
            self._segments.put_word(word, other, self._rank * NOTICE_BYTES + at)

    def refresh(self) -> None:
        """As the segments do."""
        self._segments.refresh()

    def _others(self) -> Iterator[int]:
        return (other for other in range(self._size) if other != self._rank)


def one_machine(mpi: Any, comm: Any) -> bool:  # noqa: ANN401
    """Whether all ranks can map each other's memory; collective."""
    local = comm.Split_type(mpi.COMM_TYPE_SHARED)
    together = local.Get_size() == comm.Get_size()
    local.Free()
    return bool(together)


def open_segments(mpi: Any, comm: Any, size: int, transport: str) -> Segments:  # noqa: ANN401
    """Windows of the transport asked for, ``auto``: shared where all ranks are on one machine.

    Raises:
        UnavailableError: shared memory between machines was asked for.
    """
    together = one_machine(mpi, comm)
    if transport == "shared" and not together:
        raise UnavailableError(
            "--transport shared: the ranks run on several machines; use put, or auto"
        )
    if transport == "put" or not together:
        return PutSegments(mpi, comm, size)
    return SharedSegments(mpi, comm, size)
