"""What the compute core is given: one expert's weights, one call's operands, the mapped windows."""

from __future__ import annotations

from dataclasses import dataclass

from moe_prof.ep import abi
from moe_prof.ep.core import Array, at, dtype_code, pointers
from moe_prof.ep.windows import ABORT_OFFSET, WindowLayout


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

    def raw(self) -> abi.CCall:
        """The C structure; it points into the arrays."""
        return abi.CCall(
            bs=self.x.shape[0], active=self.active, h=self.x.shape[1],
            k=self.expert_ids.shape[1], experts=self.experts, dtype=dtype_code(self.x.dtype),
            x=at(self.x), expert_ids=at(self.expert_ids), expert_scales=at(self.expert_scales),
            smooth=at(self.smooth), share_smooth=at(self.share_smooth), output=at(self.output),
            share_output=at(self.share_output), expert_token_nums=at(self.expert_token_nums),
        )  # fmt: skip


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

    def raw(self, epoch: int, setup: int) -> abi.CGroup:
        """The C structure."""
        to = self.layout
        window = abi.CWindow(
            bytes=to.size_bytes, abort=ABORT_OFFSET, cells=to.cells, cells_stride=to.cells_stride,
            done=to.done, done_stride=to.done_stride, dispatch=to.dispatch,
            slot_bytes=to.slot_bytes, combine=to.combine, row_bytes=to.row_bytes, max_bs=to.max_bs,
        )  # fmt: skip
        return abi.CGroup(
            rank=self.rank, ranks=len(self.bases), bases=pointers(self.bases), layout=window,
            epoch=epoch, setup=setup & 0xFFFFFFFF, crowded=int(self.crowded),
            timeout_s=self.timeout_s,
        )  # fmt: skip
