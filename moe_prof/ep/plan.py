"""``plan``: what a call will do, before anything is compiled or allocated."""

from __future__ import annotations

from dataclasses import dataclass

from moe_prof.ep.call import exec_flags
from moe_prof.ep.operands import (
    MAX_BS,
    MAX_H,
    MIN_H,
    Attributes,
    ExecFlag,
    check_attributes,
    check_width,
    in_range,
)
from moe_prof.ep.tiling import TilingRecord
from moe_prof.ep.traffic import (
    MessageRatio,
    StageBytes,
    Way,
    expert_weight_bytes,
    message_ratio,
    row_bytes,
    saving,
    total_bytes,
    total_row_bytes,
)
from moe_prof.ep.windows import WindowLayout, window_layout
from moe_prof.ep.workspace import Workspace, WorkspaceSizes, workspace

SCRATCH_BYTES = 512 * 1024  # a thread's block of intermediates, at most


@dataclass(frozen=True, slots=True)
class WayPlan:
    """Predicted bytes of one way through the operator.

    Attributes:
        way: whose.
        stages: bytes of one routed row.
        row_bytes: their sum.
        total_bytes: all rows and the weights of the experts that have rows, on one rank.
    """

    way: Way
    stages: tuple[StageBytes, ...]
    row_bytes: int
    total_bytes: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What a call will do on one rank.

    Attributes:
        flags: path and options.
        deep: products write straight into the sources' windows; else (L = 1) by way of y2.
        tiling: the tiling record.
        workspace, separate: segments with and without reuse.
        window: layout of a rank's window.
        rows: routed rows of this rank that bytes are predicted for, spread evenly over its experts.
        ways: predicted bytes.
        weight_bytes: of one expert.
        saving: share of the separate ops' bytes that the CPU fusion saves at rows / L per expert.
        messages: bytes of int8 messages over those of 16-bit ones.
    """

    flags: ExecFlag
    deep: bool
    tiling: TilingRecord
    workspace: Workspace
    separate: Workspace
    window: WindowLayout
    rows: int
    ways: tuple[WayPlan, ...]
    weight_bytes: int
    saving: float
    messages: MessageRatio


def plan(
    bs: int, h: int, n: int, k: int, moe_expert_num: int, *, ep_rank_size: int = 1,
    ep_rank_id: int = 0, global_bs: int = 0, n_shared: int = 0, tensor_list: bool = False,
    mask: bool = False, smooth: bool = False, threads: int = 1, strict: bool = False,
) -> Plan:  # fmt: skip
    """Path, tiling, workspace and bytes of a call.

    Args:
        bs, h, n, k: B, hidden size, width of the first product, top-k.
        moe_expert_num, ep_rank_size, ep_rank_id, global_bs: as in the operator.
        n_shared: width of the shared expert, 0 without one.
        tensor_list, mask, smooth: which options the call uses.
        threads: of a rank.
        strict: refuse widths that the reference operator refuses.

    Raises:
        UsageError: a size is out of range.
    """
    attributes = Attributes(ep_rank_size, ep_rank_id, moe_expert_num, 0, global_bs)
    in_range("bs", bs, 0, MAX_BS)
    in_range("h", h, MIN_H, MAX_H)
    check_attributes(attributes, k)
    check_width("gmm1HLen (n)", n, strict=strict)
    if n_shared:
        check_width("shareGmm1HLen (n_shared)", n_shared, strict=strict)
    local = attributes.local_experts
    rows_of_all = global_bs or bs * ep_rank_size
    sizes = WorkspaceSizes(bs, rows_of_all, k, h, n, n_shared, ep_rank_size, local)
    flags = exec_flags(
        local, tensor_list=tensor_list, mask=mask, shared=n_shared > 0, smooth=smooth
    )
    reused = workspace(sizes)
    window = window_layout(ep_rank_size, moe_expert_num, rows_of_all // ep_rank_size, h)
    rows = rows_of_all * k // ep_rank_size
    by_expert = [rows // local + (1 if e < rows % local else 0) for e in range(local)]
    tiling = TilingRecord(
        ep_rank_size=ep_rank_size, ep_rank_id=ep_rank_id, moe_expert_num=moe_expert_num,
        moe_expert_num_per_rank=local, quant_mode=0, global_bs=rows_of_all, bs=bs, k=k, h=h,
        aic_num=threads, aiv_num=threads, total_ub_size=SCRATCH_BYTES,
        total_win_size=window.size_bytes, gmm1_h_len=n, share_gmm1_h_len=n_shared,
        is_tensor_list=tensor_list,
        workspace_offsets=tuple((s.name, s.offset) for s in reused.segments),
    )  # fmt: skip
    return Plan(
        flags=flags, deep=local > 1, tiling=tiling, workspace=reused,
        separate=workspace(sizes, reuse=False), window=window, rows=rows,
        ways=tuple(
            WayPlan(
                way, row_bytes(way, h, n), total_row_bytes(way, h, n),
                total_bytes(way, h, n, by_expert),
            )
            for way in Way
        ),
        weight_bytes=expert_weight_bytes(h, n), saving=saving(h, n, max(1, rows // local)),
        messages=message_ratio(h),
    )  # fmt: skip
