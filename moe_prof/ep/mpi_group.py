"""A group of MPI ranks: windows for the fused call, ``Alltoallv`` for the small ops.

:class:`EpGroup` is the argument ``group_ep`` of the operator where ranks are processes. Within one
machine the fused call stores into windows that are mapped into every process; between machines (or
with ``transport="put"``) rows travel by ``MPI_Put``, see ``put_call.py``. The two small ops that
communicate always use ``MPI_Alltoallv``, see ``alltoall.py``: they are what users would write.

When a group is made, ranks exchange a hash of what they must agree on, and whoever differs is
named. An error of one rank is raised on all: leave the group by an exception (it is a context
manager), or call :meth:`EpGroup.fail`. A rank that does not come is named after the deadline. After
an error the group refuses every call; :meth:`EpGroup.survivors` gives what is left, where the MPI
can tell (ULFM).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any

from moe_prof.ep import mpi as finding
from moe_prof.ep.alltoall import Exchange
from moe_prof.ep.board import NOTICE_BYTES, Board, agree
from moe_prof.ep.cases import Transport
from moe_prof.ep.group import Array, Options, Received, WindowGroup
from moe_prof.ep.native import CallArrays, Engine
from moe_prof.ep.prepared import PreparedCache
from moe_prof.ep.put_call import PutCall
from moe_prof.ep.record import Record
from moe_prof.ep.segments import SegmentNotices, Segments, open_segments
from moe_prof.ep.windows import ABORT_OFFSET, WindowLayout, window_layout
from moe_prof.ep.workspace import WorkspaceMemory
from moe_prof.errors import MoeProfError, PeerError, UnavailableError, UsageError

DEADLINE_S = 30.0


class EpGroup:
    """One rank's end of a group of MPI processes; making and closing it is collective.

    Args:
        comm: an mpi4py communicator; it is duplicated.
        max_bs: most tokens of any rank.
        h / experts / k: hidden size, experts of all ranks, most experts per token.
        transport: of the fused call; ``auto``: shared memory where all ranks are on one machine.
        threads: of each rank, to know whether CPUs are outnumbered, so that waits yield.
        deadline_s: how long to wait for a rank.

    Raises:
        UsageError: the ranks do not agree; the differing one is named.
        PeerError: a rank did not come.
    """

    def __init__(
        self,
        comm: Any,  # noqa: ANN401  (mpi4py is optional)
        max_bs: int,
        h: int,
        experts: int,
        k: int,
        *,
        transport: Transport = "auto",
        threads: int = 1,
        deadline_s: float = DEADLINE_S,
    ) -> None:
        self._mpi = finding.load()
        self.comm = comm.Dup()
        self.rank, self.size = int(comm.Get_rank()), int(comm.Get_size())
        self.max_bs, self.h, self.experts, self.k = max_bs, h, experts, k
        self.deadline_s = deadline_s
        self.crowded = _local_size(self._mpi, self.comm) * threads > len(os.sched_getaffinity(0))
        self.prepared = PreparedCache()
        self._running = threading.Lock()
        self._notices = open_segments(self._mpi, self.comm, self.size * NOTICE_BYTES, "auto")
        self.board = Board(
            SegmentNotices(self._notices, self.rank, self.size), self.rank, self.size,
            deadline_s=deadline_s, yields=self.crowded,
        )  # fmt: skip
        agree(
            self.board,
            {"E": experts, "k": k, "h": h, "maxB": max_bs, "transport": transport},
        )
        self.layout: WindowLayout = window_layout(self.size, experts, max_bs, h)
        self.segments: Segments = open_segments(
            self._mpi, self.comm, self.layout.size_bytes, transport
        )
        self._fused = self._fused_path()
        self._small = Exchange(self._mpi, self.comm, self.board)

    @property
    def transport(self) -> str:
        """How the fused call's rows travel: ``shared`` or ``put``."""
        return self.segments.kind

    def agree(self, facts: Mapping[str, object]) -> None:
        """Compare further facts with all ranks; collective. Raises UsageError as the maker does."""
        agree(self.board, facts)

    def fused(
        self,
        engine: Engine,
        call: CallArrays,
        workspace: WorkspaceMemory,
        options: Options,
        setup: int,
        record: Record,
    ) -> None:
        """One whole call, see ``Group``."""
        with self._one_call():
            self._fused.fused(engine, call, workspace, options, setup, record)

    def dispatch(self, engine: Engine, call: CallArrays, setup: int, record: Record) -> Received:
        """Quantize, exchange, gather, see ``Group``."""
        with self._one_call():
            return self._small.dispatch(engine, call, setup, record)

    def combine(
        self,
        engine: Engine,
        call: CallArrays,
        y2: Array,
        received: Received,
        record: Record,
    ) -> None:
        """Bring rows back and sum them, see ``Group``."""
        with self._one_call():
            self._small.combine(engine, call, y2, received, record)

    def fail(self, error: MoeProfError) -> None:
        """Tell all ranks to raise this rank's error wherever they wait; the group is broken."""
        if self.board.lost is not None:
            return
        words = str(error) if isinstance(error, PeerError) else f"rank {self.rank}: {error}"
        self.board.alarm(_same(error, words))
        for other in range(self.size):
            self.segments.put_word(self.rank + 1, other, ABORT_OFFSET)

    def survivors(self) -> Any:  # noqa: ANN401
        """A communicator of the ranks that are left, after a rank was lost (ULFM).

        Raises:
            UnavailableError: this MPI cannot tell; start the program again.
        """
        try:
            with suppress(NotImplementedError, self._mpi.Exception):
                self.comm.Revoke()
            return self.comm.Shrink()
        except (AttributeError, NotImplementedError, self._mpi.Exception) as error:
            raise UnavailableError(
                "this MPI library cannot go on without a lost rank (it has no ULFM); start the "
                "program again"
            ) from error

    def check_guards(self) -> None:
        """Raises WorkloadError where bytes around this rank's windows were written."""
        self.segments.check_guards()
        self._notices.check_guards()

    def close(self) -> None:
        """Give windows back; collective. A broken group leaves them to the process's end."""
        if self.board.lost is not None:
            return
        self.board.meet("close")
        self.segments.free()
        self._notices.free()
        self.comm.Free()

    def __enter__(self) -> EpGroup:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
            return
        if not isinstance(error, MoeProfError):
            error = MoeProfError(f"{type(error).__name__}: {error}")
        self.fail(error)

    @contextmanager
    def _one_call(self) -> Iterator[None]:
        """Refuse a second call; turn a peer's trouble into the error that the peer told."""
        if not self._running.acquire(blocking=False):
            raise UsageError(
                "a call on this group runs already; calls on one group must follow each other, or "
                "use a group for each"
            )
        try:
            self.board.heed_alarms()
            yield
        except PeerError as error:
            raise self._told(error) from error
        finally:
            self._running.release()

    def _told(self, error: PeerError) -> MoeProfError:
        """What the others shall raise too: an alarm that is there already, else this error."""
        try:
            self.board.heed_alarms()
        except MoeProfError as known:
            return known
        peer = error.peer
        if 0 <= peer < self.size and peer != self.rank:
            doing = self.board.stage_of(peer) or "starting"
            error = PeerError(f"{error} (rank {peer}, last: {doing})", peer, error.stage)
        self.fail(error)
        return error

    def _fused_path(self) -> WindowGroup | PutCall:
        view = [self.segments.segment(rank) for rank in range(self.size)]
        if self.segments.kind == "put":
            return PutCall(self)
        bases = tuple(int(one.ctypes.data) for one in view if one is not None)
        return WindowGroup(
            self.rank, bases, self.layout, self.k, timeout_s=self.deadline_s, crowded=self.crowded
        )


def _same(error: MoeProfError, words: str) -> MoeProfError:
    """An error of the same exit code with other words."""
    made = MoeProfError(words)
    made.exit_code = error.exit_code
    return made


def _local_size(mpi: Any, comm: Any) -> int:  # noqa: ANN401
    """Ranks on this machine."""
    local = comm.Split_type(mpi.COMM_TYPE_SHARED)
    size = int(local.Get_size())
    local.Free()
    return size
