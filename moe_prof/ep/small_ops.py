"""The operator as separate calls from memory to memory: what fusing saves is measured against them.

The same scalar kernels and products as the fused operator, so that results have the same bits.
Make a call with ``operator_call``, then run the steps one by one, or all of them with ``run``.
"""

from __future__ import annotations

from moe_prof.ep.call import OperatorCall
from moe_prof.ep.group import Received
from moe_prof.ep.native import Array, quantize


def dispatch(call: OperatorCall) -> Received:
    """Quantize this rank's rows, bring them to their owners, gather what came here.

    Raises:
        PeerError, UsageError: see ``Group.dispatch``.
    """
    return call.group.dispatch(call.prepared.engine, call.arrays, call.setup, call.record)


def grouped_matmul1(call: OperatorCall, x1: Array, group_list: Array | None) -> Array:
    """x1 (R, h) int8, rows sorted by expert, to C (R, n) int32.

    Args:
        call: the call.
        x1: rows.
        group_list: (L) int64, cumulative; None: all rows are the shared expert's.
    """
    return call.prepared.engine.gmm1(x1, group_list, call.record)


def dequant_swiglu_quant(
    call: OperatorCall, c1: Array, x1_scale: Array, group_list: Array | None
) -> tuple[Array, Array]:
    """C (R, n) int32 to x2 (R, n / 2) int8 and its scales (R)."""
    return call.prepared.engine.swiglu(c1, x1_scale, group_list, call.record)


def grouped_matmul2(
    call: OperatorCall, x2: Array, x2_scale: Array, group_list: Array | None
) -> Array:
    """x2 (R, n / 2) int8 to rows (R, h) of x's dtype."""
    dtype = call.arrays.x.dtype
    return call.prepared.engine.gmm2(x2, x2_scale, group_list, dtype, call.record)


def combine(call: OperatorCall, y2: Array, received: Received) -> Array:
    """Rows back to their sources and their weighted sums: output (B, h).

    Raises:
        PeerError, UsageError: see ``Group.combine``.
    """
    call.group.combine(call.prepared.engine, call.arrays, y2, received, call.record)
    return call.arrays.output


def shared_expert(call: OperatorCall) -> Array:
    """The shared expert over all rows, step by step: share_output (B, h); zeros without one."""
    if call.prepared.engine.n_shared == 0:
        call.arrays.share_output[...] = 0
        return call.arrays.share_output
    x1, x1_scale = quantize(call.arrays.x, call.arrays.share_smooth)
    c1 = grouped_matmul1(call, x1, None)
    x2, x2_scale = dequant_swiglu_quant(call, c1, x1_scale, None)
    call.arrays.share_output[...] = grouped_matmul2(call, x2, x2_scale, None)
    return call.arrays.share_output


def run(call: OperatorCall) -> tuple[Array, Array, Array]:
    """All steps: output, share_output, expert_token_nums.

    Raises:
        PeerError, UsageError: see ``Group.dispatch``.
    """
    received = dispatch(call)
    shared_expert(call)
    c1 = grouped_matmul1(call, received.x1, received.group_list)
    x2, x2_scale = dequant_swiglu_quant(call, c1, received.x1_scale, received.group_list)
    y2 = grouped_matmul2(call, x2, x2_scale, received.group_list)
    combine(call, y2, received)
    return call.outputs
