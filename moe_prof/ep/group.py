"""What the operator asks of a group of ranks, and the groups that need no MPI.

A ``Group`` is one rank's end of P ranks. The operator checks operands, makes an engine of packed
weights and hands both over: ``fused`` does a whole call; ``dispatch`` and ``combine`` are the two small
ops that communicate. ``WindowGroup`` does all three over windows that are mapped into this process,
whoever mapped them; ``LocalGroup`` is one rank alone; ``thread_groups`` gives P ranks as threads.

Rules for every group: one call at a time (a second one is refused); back-to-back calls are safe; after
a ``PeerError`` the group is broken and refuses further calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy.typing as npt

from moe_prof.ep.native import CallArrays, Record

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
    """What ``dispatch`` gives: rows in receive order (local expert, source, slot) and where they go.

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

    ``setup`` is a hash of all that ranks must agree on in a call (sizes, dtype, flags, global_bs; bs
    too where global_bs is 0). A group compares it with what the other ranks gave and raises
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

    def fused(
        self, engine: Any, call: CallArrays, workspace: Any, options: Options, setup: int,
        record: Record,
    ) -> None:  # fmt: skip
        """One whole call: fills ``call.output``, ``share_output`` and ``expert_token_nums``.

        Args:
            engine: native.Engine with this rank's experts.
            call: checked operands.
            workspace: workspace.WorkspaceMemory.
            options: what overlaps and what stays in caches.
            setup: hash of what ranks must agree on.
            record: takes times, bytes, waits and spans.

        Raises:
            PeerError: a rank did not come, stopped, or called with another setup.
            UsageError: a call on this group runs already, or the group is broken.
        """

    def dispatch(self, engine: Any, call: CallArrays, setup: int, record: Record) -> Received:
        """Quantize this rank's rows, bring them to their owners, gather what came here.

        Raises:
            PeerError, UsageError: as ``fused``.
        """

    def combine(
        self, engine: Any, call: CallArrays, y2: Array, received: Received, record: Record
    ) -> None:
        """Bring rows back to their sources and sum them into ``call.output``.

        Args:
            y2: (R, h) of x's dtype, in receive order.
            received: what ``dispatch`` of the same call gave.

        Raises:
            PeerError, UsageError: as ``fused``.
        """
