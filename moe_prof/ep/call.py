"""From the operator's arguments to one checked call, for the fused operator and the small ops."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from moe_prof.ep.group import Group
from moe_prof.ep.native import Array, CallArrays
from moe_prof.ep.operands import Attributes, ExecFlag, check_smooth, check_tokens, check_values
from moe_prof.ep.prepared import Prepared, WeightArguments
from moe_prof.ep.record import Record
from moe_prof.ep.workspace import WorkspaceSizes
from moe_prof.errors import UsageError


@dataclass(frozen=True, slots=True)
class TokenArguments:
    """The operator's arguments that change with every call, by their names."""

    x: Array
    expert_ids: Array
    expert_scales: Array
    expert_smooth_scales: Array | None = None
    share_smooth_scales: Array | None = None
    x_active_mask: Array | None = None


@dataclass(frozen=True, slots=True)
class OperatorCall:
    """A checked call: operands and outputs, packed experts, group and what they imply.

    Attributes:
        arrays: operands in the core's form; outputs to be filled.
        prepared: this rank's packed experts.
        group: this rank's end of the group.
        flags: path and options.
        sizes: what the workspace follows from.
        setup: hash of all that ranks must agree on.
        record: takes times, bytes, waits and spans.
    """

    arrays: CallArrays
    prepared: Prepared
    group: Group
    flags: ExecFlag
    sizes: WorkspaceSizes
    setup: int
    record: Record

    @property
    def outputs(self) -> tuple[Array, Array, Array]:
        """output, share_output, expert_token_nums."""
        return self.arrays.output, self.arrays.share_output, self.arrays.expert_token_nums


def operator_call(
    tokens: TokenArguments, weights: WeightArguments, group: Group | None, attributes: Attributes,
    *, strict: bool = False, threads: int = 1, isa: str | None = None,
    record: Record | None = None,
) -> OperatorCall:  # fmt: skip
    """Check all arguments, pack the weights if they are new, make the outputs.

    Raises:
        InputError, UsageError: an argument is wrong; the message names it.
        BuildError: the kernels cannot be compiled.
    """
    if group is None:
        raise UsageError("group_ep is missing; one process alone takes a LocalGroup")
    x = tokens.x
    active = check_tokens(
        x, tokens.expert_ids, tokens.expert_scales, tokens.x_active_mask, attributes
    )
    bs, h = x.shape
    check_smooth(
        tokens.expert_smooth_scales, tokens.share_smooth_scales, attributes.moe_expert_num, h,
        shared=weights.has_shared,
    )  # fmt: skip
    _check_group(group, attributes, h, tokens.expert_ids.shape[1], bs)
    local = attributes.local_experts
    prepared = group.prepared.get(
        weights, local, h, x.dtype, threads=threads, isa=isa, strict=strict
    )
    sizes = WorkspaceSizes(
        bs=bs, global_bs=attributes.global_bs or bs * attributes.ep_rank_size,
        k=tokens.expert_ids.shape[1], h=h, n=prepared.engine.n, n_shared=prepared.engine.n_shared,
        ranks=attributes.ep_rank_size, local_experts=local,
    )  # fmt: skip
    flags = exec_flags(
        local, tensor_list=prepared.tensor_list, mask=tokens.x_active_mask is not None,
        shared=weights.has_shared, smooth=tokens.expert_smooth_scales is not None,
    )  # fmt: skip
    arrays = _arrays(tokens, active, attributes)
    if not prepared.engine.accepts(arrays):
        check_values(
            tokens.x, tokens.expert_ids[:active], tokens.expert_scales, attributes.moe_expert_num
        )
    return OperatorCall(
        arrays, prepared, group, flags, sizes,
        _setup(sizes, attributes, x.dtype, flags), record or Record(group.size),
    )  # fmt: skip


def exec_flags(
    local_experts: int, *, tensor_list: bool, mask: bool, shared: bool, smooth: bool
) -> ExecFlag:
    """The operator's path flags."""
    flags = ExecFlag(0)
    for flag, holds in (
        (ExecFlag.DEEP_FUSE, local_experts > 1),
        (ExecFlag.TENSOR_LIST, tensor_list),
        (ExecFlag.X_ACTIVE_MASK, mask),
        (ExecFlag.SHARED_EXPERT, shared),
        (ExecFlag.SMOOTH_QUANT, smooth),
    ):
        if holds:
            flags |= flag
    return flags


def _arrays(tokens: TokenArguments, active: int, attributes: Attributes) -> CallArrays:
    x = np.ascontiguousarray(tokens.x)
    return CallArrays(
        x=x, expert_ids=np.ascontiguousarray(tokens.expert_ids),
        expert_scales=np.ascontiguousarray(tokens.expert_scales), active=active,
        experts=attributes.moe_expert_num, smooth=_dense(tokens.expert_smooth_scales),
        share_smooth=_dense(tokens.share_smooth_scales), output=np.empty(x.shape, x.dtype),
        share_output=np.empty(x.shape, x.dtype),
        expert_token_nums=np.empty(attributes.local_experts, np.int64),
    )  # fmt: skip


def _dense(array: Array | None) -> Array | None:
    return None if array is None else np.ascontiguousarray(array)


def _check_group(group: Group, a: Attributes, h: int, k: int, bs: int) -> None:
    for name, given, have in (
        ("ep_rank_size", a.ep_rank_size, group.size), ("ep_rank_id", a.ep_rank_id, group.rank),
        ("moe_expert_num", a.moe_expert_num, group.experts), ("h (x.shape[1])", h, group.h),
    ):  # fmt: skip
        if given != have:
            raise UsageError(f"{name} = {given}, but group_ep was made for {have}")
    most = max(bs, a.global_bs // a.ep_rank_size)
    for name, given, most_allowed in (
        ("top-k (expert_ids.shape[1])", k, group.k),
        ("bs, global_bs / ep_rank_size", most, group.max_bs),
    ):
        if given > most_allowed:
            raise UsageError(f"{name} = {given}, but group_ep was made for at most {most_allowed}")


def _setup(s: WorkspaceSizes, a: Attributes, dtype: np.dtype[Any], flags: ExecFlag) -> int:
    """Hash of what must be the same on all ranks; bs too where global_bs does not say it."""
    same = flags & (ExecFlag.SHARED_EXPERT | ExecFlag.SMOOTH_QUANT)
    facts = (
        s.h, s.n, s.n_shared, s.k, s.ranks, a.moe_expert_num, a.quant_mode, s.global_bs,
        dtype.name, int(same),
    )  # fmt: skip
    return zlib.crc32(repr(facts).encode())
