"""``fused_deep_moe``: the operator in one call, with the reference operator's names and order."""

from __future__ import annotations

from moe_prof.ep.call import TokenArguments, operator_call
from moe_prof.ep.group import Group, Options
from moe_prof.ep.native import Array
from moe_prof.ep.operands import Attributes, Weights
from moe_prof.ep.prepared import WeightArguments
from moe_prof.ep.record import Record

_DEFAULT = Options()


def fused_deep_moe(
    x: Array,
    expert_ids: Array,
    gmm1_weight: Weights,
    gmm1_weight_scale: Weights,
    gmm2_weight: Weights,
    gmm2_weight_scale: Weights,
    expert_scales: Array,
    share_gmm1_weight: Array | None = None,
    share_gmm1_weight_scale: Array | None = None,
    share_gmm2_weight: Array | None = None,
    share_gmm2_weight_scale: Array | None = None,
    expert_smooth_scales: Array | None = None,
    share_smooth_scales: Array | None = None,
    x_active_mask: Array | None = None,
    group_ep: Group | None = None,
    ep_rank_size: int = 1,
    ep_rank_id: int = 0,
    moe_expert_num: int = 1,
    quant_mode: int = 0,
    global_bs: int = 0,
    *,
    strict: bool = False,
    options: Options = _DEFAULT,
    threads: int = 1,
    isa: str | None = None,
    record: Record | None = None,
) -> tuple[Array, Array, Array]:
    """Dispatch tokens to the experts of all ranks, apply them, combine: called by every rank.

    Args:
        x: (bs, h) bfloat16 (ml_dtypes) or float16, finite.
        expert_ids: (bs, k) int32; -1 skips; no id twice in a row.
        gmm1_weight: int8 (L, h, n), or a list of L (h, n): gate the left half of n, up the right.
        gmm1_weight_scale: fp32 or x's dtype, (L, n) or a list of (n).
        gmm2_weight: int8 (L, n / 2, h), or a list.
        gmm2_weight_scale: fp32 or x's dtype, (L, h) or a list.
        expert_scales: (bs, k) fp32, factors of the weighted sum.
        share_gmm1_weight, share_gmm1_weight_scale: int8 (h, n_s) and (n_s): the shared expert.
        share_gmm2_weight, share_gmm2_weight_scale: int8 (n_s / 2, h) and (h).
        expert_smooth_scales: (E, h) fp32, multiply x before it is quantized.
        share_smooth_scales: (h) fp32, the same for the shared expert.
        x_active_mask: (bs) bool, trues first: only they are dispatched, ids of others are padding.
        group_ep: this rank's end of the group, e.g. ``LocalGroup`` for one process.
        ep_rank_size, ep_rank_id, moe_expert_num: P, this rank, E; as in the group.
        quant_mode: 0, int8 per token.
        global_bs: rows of all ranks together, maxB * P; 0: bs * P, where all ranks have the same
        bs. strict: refuse widths that the reference operator refuses. options: what overlaps and
        what stays in caches; the results do not depend on it. threads: of this rank. isa: force
        an instruction-set path; the results do not depend on it. record: takes times, bytes,
        waits and spans.

    Returns:
        output (bs, h), share_output (bs, h) (zeros without a shared expert), both in x's dtype, and
        expert_token_nums (L) int64: rows that each local expert received.

    Raises:
        InputError, UsageError: an argument is wrong; the message names it.
        PeerError: another rank did not come, stopped, or called with another setup.
        BuildError: the kernels cannot be compiled.
    """
    call = operator_call(
        TokenArguments(
            x, expert_ids, expert_scales, expert_smooth_scales, share_smooth_scales, x_active_mask
        ),
        WeightArguments(
            gmm1_weight, gmm1_weight_scale, gmm2_weight, gmm2_weight_scale, share_gmm1_weight,
            share_gmm1_weight_scale, share_gmm2_weight, share_gmm2_weight_scale,
        ),
        group_ep,
        Attributes(ep_rank_size, ep_rank_id, moe_expert_num, quant_mode, global_bs),
        strict=strict, threads=threads, isa=isa, record=record,
    )  # fmt: skip
    call.group.fused(
        call.prepared.engine, call.arrays, call.prepared.workspace(call.sizes), options,
        call.setup, call.record,
    )  # fmt: skip
    return call.outputs
