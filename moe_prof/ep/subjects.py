"""The variants of a case on one rank: a checked call, a way each to run it, and what checks it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from moe_prof.ep import oracle, small_ops
from moe_prof.ep.batches import Batch, expert_weights, rows_of
from moe_prof.ep.call import OperatorCall, TokenArguments, operator_call
from moe_prof.ep.cases import CACHE_ONLY, FUSED, OVERLAP_ONLY, SMALL_OPS, Case, Trial
from moe_prof.ep.group import Options
from moe_prof.ep.native import BF16, FP16, Array, EngineInfo
from moe_prof.ep.operands import Attributes
from moe_prof.ep.predictions import Bytes, predicted
from moe_prof.ep.prepared import WeightArguments
from moe_prof.ep.record import Record, Span
from moe_prof.ep.workspace import workspace

Call = Callable[[Record], None]

OPTIONS = {
    FUSED: Options(),
    OVERLAP_ONLY: Options(cache_fused=False),
    CACHE_ONLY: Options(overlap=False),
}
DTYPES = {"bf16": BF16, "fp16": FP16}
_POISON = 0x7FC1
"""A NaN in bf16 and in fp16."""


@dataclass(frozen=True, slots=True)
class Subjects:
    """Everything that a rank needs of a case.

    Attributes:
        call: the checked call; all variants fill its outputs.
        calls: by variant.
    """

    case: Case
    whole: Batch
    call: OperatorCall
    calls: dict[str, Call]

    @property
    def info(self) -> EngineInfo:
        """What really runs."""
        return self.call.prepared.engine.info

    @property
    def workspace_bytes(self) -> tuple[int, int]:
        """With segments that share memory, and without."""
        sizes = self.call.sizes
        return workspace(sizes).total_bytes, workspace(sizes, reuse=False).total_bytes

    def run_once(self, name: str) -> Array:
        """One call into outputs that are poisoned before; a copy of the output."""
        output, share_output, nums = self.call.outputs
        output.view(np.uint16)[...] = _POISON
        share_output.view(np.uint16)[...] = _POISON
        nums[...] = -1
        self.calls[name](Record(self.call.group.size))
        return output.copy()

    def traced(self, name: str, capacity: int) -> tuple[Span, ...]:
        """Spans of one call."""
        record = Record(self.call.group.size, capacity)
        self.calls[name](record)
        return record.spans

    def expected(self) -> Array:
        """The float64 oracle's output for this rank's tokens, in their dtype.

        Experts are made one at a time, for memory.
        """
        case, part = self.case, self.case.tokens_of(self.call.group.rank)
        x, ids = self.call.arrays.x, self.whole.ids[part]
        rows = np.zeros((*ids.shape, case.h))
        for expert in np.unique(ids):
            made = expert_weights(case, int(expert))
            where = np.nonzero(ids == expert)
            got = oracle.expert(x[where[0]].astype(np.float64), made.w1, made.s1, made.w2, made.s2)
            rows[where] = got.astype(x.dtype).astype(np.float64)
        scales = self.whole.scales[part].astype(np.float64)
        total: Array = np.einsum("tjh,tj->th", rows, scales).astype(x.dtype)
        return total

    def predicted(self, name: str) -> Bytes:
        """Bytes of a call on this rank."""
        rank = self.call.group.rank
        rows = rows_of(self.case, self.whole.ids, rank, self.info.block_rows)
        return predicted(name, self.case.h, self.case.n, rows, alltoallv=self.call.group.size > 1)


@contextmanager
def prepare(case: Case, trial: Trial, group: Any, whole: Batch) -> Iterator[Subjects]:  # noqa: ANN401
    """This rank's part of a case; engines are freed in the end.

    Raises:
        MoeProfError: an operand is out of range, or the kernels cannot be had.
    """
    part = case.tokens_of(group.rank)
    tokens = TokenArguments(
        whole.x[part].astype(DTYPES[case.dtype]),
        np.ascontiguousarray(whole.ids[part]),
        np.ascontiguousarray(whole.scales[part]),
    )
    call = operator_call(
        tokens, _weights(case, group.rank), group,
        Attributes(
            case.ranks, group.rank, case.experts, global_bs=case.max_tokens * case.ranks
        ),
        threads=trial.threads, isa=trial.isa,
    )  # fmt: skip
    try:
        yield Subjects(case, whole, call, {name: _way(name, call) for name in trial.variants})
    finally:
        call.prepared.engine.close()


def _weights(case: Case, rank: int) -> WeightArguments:
    """Those of this rank's experts, as lists; they are packed and then not needed any more."""
    local = case.local_experts
    made = [expert_weights(case, expert) for expert in range(rank * local, (rank + 1) * local)]
    return WeightArguments(
        [one.w1 for one in made], [one.s1 for one in made], [one.w2 for one in made],
        [one.s2 for one in made],
    )  # fmt: skip


def _way(name: str, call: OperatorCall) -> Call:
    """How a variant runs the call."""
    if name == SMALL_OPS:
        return lambda record: _discard(small_ops.run(replace(call, record=record)))
    options, memory = OPTIONS[name], call.prepared.workspace(call.sizes)
    return lambda record: call.group.fused(
        call.prepared.engine, call.arrays, memory, options, call.setup, record
    )


def _discard(outputs: object) -> None:
    """They are the call's arrays."""
    del outputs
