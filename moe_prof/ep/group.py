"""What the operator asks of a group of ranks, and the groups that need no MPI.

A ``Group`` is one rank's end of P ranks. The operator checks operands, makes an engine of packed
weights and hands both over: ``fused`` does a whole call; ``dispatch`` and ``combine`` are the two
small ops that communicate. ``WindowGroup`` does all three over windows that are mapped into this
process, whoever mapped them; ``LocalGroup`` is one rank alone; ``thread_groups`` gives P ranks as
threads.

Rules for every group: one call at a time (a second one is refused); back-to-back calls are safe;
after a ``PeerError`` the group is broken and refuses further calls.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy.typing as npt

from moe_prof.ep.native import (
    CACHE_FUSED,
    OVERLAP,
    CallArrays,
    Engine,
    GroupView,
    Record,
)
from moe_prof.ep.prepared import PreparedCache
from moe_prof.ep.windows import WindowLayout, window_layout
from moe_prof.ep.workspace import WorkspaceMemory, aligned_bytes
from moe_prof.errors import MoeProfError, UsageError

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Options:
    """How a call runs; results have the same bits whatever is chosen.

    Attributes:
        overlap: deep path only: publish, compute and write back expert by expert.
        cache_fused: intermediates of a block of rows stay in caches; else in the workspace.
    """

    overlap: bool = True
    cache_fused: bool = True


@dataclass(frozen=True, slots=True)
class Received:
    """What ``dispatch`` gives: rows in receive order (local expert, source, slot), and counts.

    Attributes:
        x1: (R, h) int8.
        x1_scale: (R) f32.
        expand_idx: (B, k) int32, slot of each choice within (source, expert); -1: skipped.
        ep_send_count: (L, P) int32, inclusive prefix sums over the receive order.
        group_list: (L) int64, cumulative rows by local expert.
        expert_token_nums: (L) int64, plain counts.
        epoch: of the call, for ``combine``.
        setup: as given to ``dispatch``.
    """

    x1: Array
    x1_scale: Array
    expand_idx: Array
    ep_send_count: Array
    group_list: Array
    expert_token_nums: Array
    epoch: int
    setup: int


class Group(Protocol):
    """One rank's end of a group: the argument ``group_ep``.

    ``setup`` is a hash of all that ranks must agree on in a call (sizes, dtype, flags, global_bs;
    bs too where global_bs is 0). A group compares it with what the other ranks gave and raises
    ``PeerError`` naming the rank where they differ.
    """

    @property
    def rank(self) -> int:
        """This rank."""

    @property
    def size(self) -> int:
        """P."""

    @property
    def max_bs(self) -> int:
        """Most tokens of any rank."""

    @property
    def h(self) -> int:
        """Hidden size."""

    @property
    def experts(self) -> int:
        """E, over all ranks."""

    @property
    def k(self) -> int:
        """Most experts per token."""

    @property
    def prepared(self) -> PreparedCache:
        """Packed experts of the layers called on this group: a ``PreparedCache()`` of its own."""

    def fused(
        self, engine: Engine, call: CallArrays, workspace: WorkspaceMemory, options: Options,
        setup: int, record: Record,
    ) -> None:  # fmt: skip
        """One whole call: fills ``call.output``, ``share_output`` and ``expert_token_nums``.

        Args:
            engine: this rank's experts.
            call: checked operands.
            workspace: this rank's own.
            options: what overlaps and what stays in caches.
            setup: hash of what ranks must agree on.
            record: takes times, bytes, waits and spans.

        Raises:
            PeerError: a rank did not come, stopped, or called with another setup.
            UsageError: a call on this group runs already, or the group is broken.
        """

    def dispatch(self, engine: Engine, call: CallArrays, setup: int, record: Record) -> Received:
        """Quantize this rank's rows, bring them to their owners, gather what came here.

        Raises:
            PeerError, UsageError: as ``fused``.
        """

    def combine(
        self, engine: Engine, call: CallArrays, y2: Array, received: Received, record: Record
    ) -> None:
        """Bring rows back to their sources and sum them into ``call.output``.

        Args:
            y2: (R, h) of x's dtype, in receive order.
            received: what ``dispatch`` of the same call gave.

        Raises:
            PeerError, UsageError: as ``fused``.
        """


class WindowGroup:
    """A group over windows that are mapped into this process.

    Args:
        rank: this rank.
        bases: address of every rank's window here, in rank order; all zeros at first.
        layout: of the windows.
        k: most experts per token.
        timeout_s: of each wait for another rank; not above 0: never.
        crowded: ranks outnumber CPUs, so waits yield at once.
        memory: kept alive as long as the group.
    """

    def __init__(
        self, rank: int, bases: tuple[int, ...], layout: WindowLayout, k: int, *,
        timeout_s: float = 60.0, crowded: bool = False, memory: object = None,
    ) -> None:  # fmt: skip
        self.rank = rank
        self.size = len(bases)
        self.max_bs = layout.max_bs
        self.h = layout.h
        self.experts = layout.experts
        self.k = k
        self.prepared = PreparedCache()
        self.memory = memory
        self._view = GroupView(rank, layout, bases, crowded, timeout_s)
        self._running = threading.Lock()
        self._epoch = 0
        self._dispatched = 0
        self._broken: MoeProfError | None = None

    @property
    def view(self) -> GroupView:
        """As the core sees it."""
        return self._view

    def fused(
        self, engine: Engine, call: CallArrays, workspace: WorkspaceMemory, options: Options,
        setup: int, record: Record,
    ) -> None:  # fmt: skip
        """See ``Group``."""
        flags = (OVERLAP if options.overlap else 0) | (CACHE_FUSED if options.cache_fused else 0)
        with self._alone(), self._next_epoch():
            engine.fused(call, self._view, self._epoch, setup, workspace, flags, record)

    def dispatch(self, engine: Engine, call: CallArrays, setup: int, record: Record) -> Received:
        """See ``Group``."""
        local = self.experts // self.size
        capacity = self.max_bs * self.size * min(call.expert_ids.shape[1], local)
        with self._alone(), self._next_epoch():
            x1, scale, expand_idx, send_count, group_list = engine.dispatch(
                call, self._view, self._epoch, setup, capacity, record
            )
            self._dispatched = self._epoch
        return Received(
            x1, scale, expand_idx, send_count, group_list, call.expert_token_nums, self._epoch,
            setup,
        )  # fmt: skip

    def combine(
        self, engine: Engine, call: CallArrays, y2: Array, received: Received, record: Record
    ) -> None:
        """See ``Group``."""
        with self._alone():
            if received.epoch != self._dispatched:
                raise UsageError("combine: its rows are not of the last dispatch on this group")
            engine.combine(
                call, self._view, received.epoch, received.setup, y2, received.expand_idx,
                received.ep_send_count, record,
            )  # fmt: skip
            self._dispatched = 0

    @contextmanager
    def _next_epoch(self) -> Iterator[None]:
        """Count the call, unless it turns out that it never began.

        Raises:
            UsageError: rows of a dispatch are still out.
        """
        if self._dispatched:
            raise UsageError("rows of a dispatch are still out on this group; combine them first")
        self._epoch += 1
        try:
            yield
        except UsageError:
            self._epoch -= 1
            raise

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the group for one call.

        Raises:
            UsageError: another call holds it, or it is broken.
        """
        if not self._running.acquire(blocking=False):
            raise UsageError("a call on this group runs already; make one group per caller")
        try:
            if self._broken is not None:
                raise UsageError(
                    f"this group is broken ({self._broken}); make a new one"
                ) from self._broken
            try:
                yield
            except UsageError:  # before anything was sent
                raise
            except MoeProfError as error:
                self._broken = error
                raise
        finally:
            self._running.release()


class LocalGroup(WindowGroup):
    """One rank alone, with a window of its own: all E experts are here.

    Args:
        max_bs: most tokens of a call.
        h: hidden size.
        experts: E.
        k: most experts per token.
    """

    def __init__(self, max_bs: int, h: int, experts: int, k: int) -> None:
        layout = window_layout(1, experts, max_bs, h)
        memory = aligned_bytes(layout.size_bytes, zero=True)
        super().__init__(0, (memory.ctypes.data,), layout, k, memory=memory)


def thread_groups(
    ranks: int, max_bs: int, h: int, experts: int, k: int, *, timeout_s: float = 60.0,
    crowded: bool = True,
) -> tuple[WindowGroup, ...]:  # fmt: skip
    """P ends of one group for P threads of this process, in rank order."""
    layout = window_layout(ranks, experts, max_bs, h)
    memory = [aligned_bytes(layout.size_bytes, zero=True) for _ in range(ranks)]
    bases = tuple(window.ctypes.data for window in memory)
    return tuple(
        WindowGroup(
            rank, bases, layout, k, timeout_s=timeout_s, crowded=crowded, memory=memory
        )
        for rank in range(ranks)
    )  # fmt: skip
