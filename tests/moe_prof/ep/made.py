"""Layers, tokens and ranks for tests of the expert-parallel operator: ranks are threads."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import ml_dtypes
import numpy as np

from moe_prof.ep import small_ops
from moe_prof.ep.call import TokenArguments, operator_call
from moe_prof.ep.fused import fused_deep_moe
from moe_prof.ep.group import Options, thread_groups
from moe_prof.ep.operands import Attributes
from moe_prof.ep.prepared import WeightArguments

BF16 = np.dtype(ml_dtypes.bfloat16)
FP16 = np.dtype(np.float16)
H, N, E, K = 512, 96, 8, 3
DEFAULT = Options()


@dataclass(frozen=True)
class Layer:
    """Weights of all experts, and smoothing scales where there are any."""

    weights: WeightArguments
    smooth: np.ndarray | None = None
    share_smooth: np.ndarray | None = None

    @property
    def experts(self):
        """E."""
        return len(self.weights.gmm1_weight)


def layer(seed=0, *, h=H, n=N, experts=E, n_shared=0, smooth=False, scale_dtype=np.float32):
    """A layer whose results are of order one; weights use the whole int8 range."""
    rng = np.random.default_rng(seed)

    def weight(*shape):
        return rng.integers(-128, 128, shape, dtype=np.int8)

    def scale(*shape, rows):
        return (rng.uniform(0.5, 2.0, shape) / (74 * np.sqrt(rows))).astype(scale_dtype)

    shared = (None,) * 4
    if n_shared:
        shared = (
            weight(h, n_shared), scale(n_shared, rows=h),
            weight(n_shared // 2, h), scale(h, rows=n_shared // 2),
        )  # fmt: skip
    weights = WeightArguments(
        weight(experts, h, n), scale(experts, n, rows=h),
        weight(experts, n // 2, h), scale(experts, h, rows=n // 2), *shared,
    )  # fmt: skip
    if not smooth:
        return Layer(weights)
    return Layer(
        weights, rng.uniform(0.25, 4.0, (experts, h)).astype(np.float32),
        rng.uniform(0.25, 4.0, h).astype(np.float32) if n_shared else None,
    )  # fmt: skip


def tokens(made, bs, seed=1, *, k=K, dtype=BF16, skip=0.0, masked=None, heavy=False):
    """One rank's operands: distinct experts in a row, a share of ids skipped."""
    rng = np.random.default_rng(seed)
    h = made.weights.gmm1_weight.shape[1]
    x = rng.standard_t(2.0, (bs, h)) if heavy else rng.standard_normal((bs, h))
    ids = np.array(
        [rng.permutation(made.experts)[:k] for _ in range(bs)], np.int32
    ).reshape(bs, k)  # fmt: skip
    ids[rng.random(ids.shape) < skip] = -1
    mask = None if masked is None else np.arange(bs) < masked
    return TokenArguments(
        x.astype(dtype), ids, rng.uniform(-1, 1, (bs, k)).astype(np.float32), made.smooth,
        made.share_smooth, mask,
    )  # fmt: skip


def of_rank(weights, rank, ranks, *, as_list=False):
    """The weights of one rank's experts, as one tensor or as a list."""
    local = len(weights.gmm1_weight) // ranks
    part = slice(rank * local, (rank + 1) * local)
    routed = {
        name: getattr(weights, name)[part]
        for name in ("gmm1_weight", "gmm1_weight_scale", "gmm2_weight", "gmm2_weight_scale")
    }
    return replace(
        weights, **{k: [a.copy() for a in v] if as_list else v for k, v in routed.items()}
    )


def run(
    made, all_tokens, *, way="fused", options=DEFAULT, isa=None, threads=1, as_list=False,
    max_bs=None, global_bs=None, calls=1,
):  # fmt: skip
    """(output, share_output, expert_token_nums) of every rank, ranks as threads."""
    ranks = len(all_tokens)
    most = max(len(t.x) for t in all_tokens)
    max_bs = max(1, most) if max_bs is None else max_bs
    h, k = made.weights.gmm1_weight.shape[1], all_tokens[0].expert_ids.shape[1]
    groups = thread_groups(ranks, max_bs, h, made.experts, k)
    rows = most * ranks if global_bs is None else global_bs

    def one(rank):
        weights = of_rank(made.weights, rank, ranks, as_list=as_list)
        for _ in range(calls):
            found = call(all_tokens[rank], weights, groups[rank], made.experts, rows)
        return found

    def call(t, weights, group, experts, rows):
        if way == "small":
            attributes = Attributes(ranks, group.rank, experts, 0, rows)
            return small_ops.run(
                operator_call(t, weights, group, attributes, isa=isa, threads=threads)
            )
        return fused_deep_moe(
            t.x, t.expert_ids, weights.gmm1_weight, weights.gmm1_weight_scale,
            weights.gmm2_weight, weights.gmm2_weight_scale, t.expert_scales,
            weights.share_gmm1_weight, weights.share_gmm1_weight_scale, weights.share_gmm2_weight,
            weights.share_gmm2_weight_scale, t.expert_smooth_scales, t.share_smooth_scales,
            t.x_active_mask, group, ranks, group.rank, experts, 0, rows, options=options, isa=isa,
            threads=threads,
        )  # fmt: skip

    with ThreadPoolExecutor(ranks) as pool:
        return list(pool.map(one, range(ranks)))


def gathered(results):
    """The bits of all ranks' outputs, one after another: output, share_output."""
    return tuple(
        np.concatenate([result[i] for result in results]).view(np.uint16) for i in range(2)
    )


def split(t, sizes):
    """One rank's operands as those of several ranks."""
    ends = np.cumsum(sizes)
    return [
        replace(
            t, x=t.x[end - size : end], expert_ids=t.expert_ids[end - size : end],
            expert_scales=t.expert_scales[end - size : end],
        )
        for end, size in zip(ends, sizes, strict=True)
    ]  # fmt: skip
