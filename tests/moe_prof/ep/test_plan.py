"""The plan: flags, tiling record, workspace with and without reuse, predicted and counted bytes."""

from itertools import pairwise

import pytest

from moe_prof.ep import plan, small_ops
from moe_prof.ep.group import LocalGroup, Options
from moe_prof.ep.native import Record
from moe_prof.ep.operands import ExecFlag
from moe_prof.ep.tiling import (
    GMM1_TILE,
    GMM2_TILE,
    L1_BYTES,
    first_k_tile,
    k_tiles,
    keeps_a,
)
from moe_prof.ep.traffic import Way, message_ratio, row_bytes, saving, total_row_bytes
from moe_prof.ep.windows import window_layout
from moe_prof.ep.workspace import RESERVED_BYTES, WorkspaceSizes, workspace
from moe_prof.errors import UsageError
from tests.moe_prof.ep.made import layer, tokens
from tests.moe_prof.ep.test_group import fused, one_call


def test_bytes_per_row_at_a_large_layers_sizes():
    """h = 7168, n = 4096: 124 KB in separate ops, 185 in the reference's fusion, 43 in this one."""
    found = {way: total_row_bytes(way, 7168, 4096) for way in Way}
    assert found == {Way.SMALL_OPS: 123_904, Way.NPU_FUSION: 185_344, Way.CPU_FUSION: 43_016}


@pytest.mark.parametrize(
    ("h", "n", "percent"), [(7168, 4096, (1.4, 10.0, 27.3)), (512, 1024, (11.6, 46.4, 68.4))]
)
def test_what_fusing_saves(h, n, percent):
    """Weights dominate: 8, 64 and 256 rows per expert."""
    assert tuple(round(100 * saving(h, n, rows), 1) for rows in (8, 64, 256)) == percent


def test_int8_messages_against_16_bit_ones():
    """54 % for dispatch, 77 % with the combine, which stays at 16 bits."""
    ratio = message_ratio(7168)
    assert round(100 * ratio.dispatch) == 54
    assert round(100 * ratio.both) == 77


def test_flags_path_and_tiling():
    """What the record repeats, and the path that L decides."""
    deep = plan(8, 7168, 4096, 8, 64, ep_rank_size=8, ep_rank_id=3, n_shared=2048, smooth=True)
    assert deep.deep
    assert deep.flags == ExecFlag.DEEP_FUSE | ExecFlag.SHARED_EXPERT | ExecFlag.SMOOTH_QUANT
    record = deep.tiling
    assert (record.moe_expert_num_per_rank, record.global_bs, record.ep_rank_id) == (8, 64, 3)
    assert (record.gmm1_h_len, record.share_gmm1_h_len) == (4096, 2048)
    assert record.total_win_size == window_layout(8, 64, 8, 7168).size_bytes
    assert dict(record.workspace_offsets)["x1"] == 0
    shallow = plan(8, 7168, 4096, 8, 8, ep_rank_size=8)
    assert not shallow.deep
    assert shallow.workspace["y2"].size_bytes == 2 * 64 * 7168
    assert deep.workspace["y2"].size_bytes == 0


def test_out_of_range_sizes_are_refused():
    """As in the operator itself."""
    with pytest.raises(UsageError, match=r"bs = 300 is not in 0..256"):
        plan(300, 7168, 4096, 8, 64)
    with pytest.raises(UsageError, match=r"h = 256 is not in 512..7168"):
        plan(8, 256, 4096, 8, 64)
    with pytest.raises(UsageError, match=r"n.* = 1536 is not a multiple of 1024"):
        plan(8, 512, 1536, 8, 64, strict=True)


SIZES = WorkspaceSizes(bs=4, global_bs=16, k=3, h=520, n=40, n_shared=24, ranks=4, local_experts=2)


def test_workspace_segments_with_reuse():
    """Sizes by formula, 512-byte alignment, X1 and X2 one memory, no other overlap."""
    found = workspace(SIZES)
    r, s = 16 * 2, 4
    sizes = {segment.name: segment.size_bytes for segment in found.segments}
    assert sizes == {
        "x1": (s + r) * 520, "x2": s * 12 + r * 20, "x1_scale": 4 * (s + r),
        "x2_scale": 4 * (s + r), "swap": 4 * max(r * 40 + s * 24, (r + s) * 520), "y2": 0,
        "group_list": 16, "expand_idx": 48, "ep_send_count": 32, "reserved": RESERVED_BYTES,
    }  # fmt: skip
    assert all(segment.offset % 512 == 0 for segment in found.segments)
    assert found["x2"].offset == found["x1"].offset
    assert found["x2"].alias == "x1"
    own = sorted((s for s in found.segments if not s.alias), key=lambda s: s.offset)
    for before, after in pairwise(own):
        assert before.offset + before.size_bytes <= after.offset
    assert own[-1].offset + own[-1].size_bytes <= found.total_bytes


def test_reuse_makes_room_for_the_larger_of_two():
    """A width of the second product above h: X2 is the larger one."""
    wide = WorkspaceSizes(
        bs=4, global_bs=4, k=1, h=520, n=4000, n_shared=0, ranks=1, local_experts=2
    )
    found = workspace(wide)
    assert found["x2"].size_bytes == 4 * 2000 > found["x1"].size_bytes
    assert found["x1_scale"].offset >= found["x2"].size_bytes


def test_without_reuse_every_segment_has_memory_of_its_own():
    """No alias, and a larger total."""
    found = workspace(SIZES, reuse=False)
    spans = sorted((s.offset, s.offset + s.size_bytes) for s in found.segments)
    assert all(a[1] <= b[0] for a, b in pairwise(spans))
    assert {"swap", "swiglu", "c2"} <= {s.name for s in found.segments}
    assert found.total_bytes > workspace(SIZES).total_bytes


def test_rules_of_the_reference_tiles():
    """GMM2 fills L1; A stays only with as many k tiles as stages; cores begin at different k."""
    assert GMM2_TILE.l1_bytes == L1_BYTES
    assert GMM1_TILE.l1_bytes < L1_BYTES
    assert [k_tiles(k, GMM2_TILE) for k in (512, 2048, 2049)] == [1, 4, 5]
    assert keeps_a(2048, GMM2_TILE, same_block=True)
    assert not keeps_a(2048, GMM2_TILE, same_block=False)
    assert not keeps_a(1024, GMM2_TILE, same_block=True)
    assert [first_k_tile(block, 2048, GMM2_TILE) for block in range(5)] == [0, 1, 2, 3, 0]


def through_memory(record, stage):
    """Bytes read and written in a stage, without caches."""
    counted = record.bytes[stage]
    return counted["memory_read"], counted["memory_written"]


def weight_bytes(made):
    """Of all experts, as the operator gets them."""
    return made.weights.gmm1_weight.nbytes + made.weights.gmm2_weight.nbytes


def test_counted_bytes_of_the_fused_operator_are_the_predicted_ones():
    """Messages, rows back and sums, by stage; the products read weights and nothing of the rows."""
    made = layer(h=512, n=128, experts=4)
    group = LocalGroup(6, 512, 4, 2)
    record = Record(1)
    fused(group, one_call(group, made, tokens(made, 6, k=2), record=record))
    rows = 12
    for stage in row_bytes(Way.CPU_FUSION, 512, 128):
        read, written = through_memory(record, stage.stage)
        if stage.stage == "dispatch":
            read -= 6 * 512 * 2  # x, once per token
        if stage.stage == "combine":
            written -= 6 * 512 * 2  # output
        if stage.stage == "gmm2":
            read = 0  # weights
        assert (read, written) == (rows * stage.read, rows * stage.written), stage.stage
    read_weights = sum(through_memory(record, stage)[0] for stage in ("gmm1", "gmm2"))
    beside = 4 * (512 + 128) * 8  # a scale and an offset's correction per channel
    assert weight_bytes(made) < read_weights <= weight_bytes(made) + beside
    assert through_memory(record, "gmm1")[1] == through_memory(record, "swiglu")[1] == 0
    assert record.bytes["gmm1"]["cache_written"] == rows * (4 * 128 + 4 * 64)


@pytest.mark.parametrize("separate", [True, False])
def test_counted_bytes_without_cache_fusion(separate):
    """Small ops, and the fused call whose intermediates go through the workspace, move C and q2."""
    made = layer(h=512, n=128, experts=4)
    group = LocalGroup(6, 512, 4, 2)
    record = Record(1)
    call = one_call(group, made, tokens(made, 6, k=2), record=record)
    if separate:
        small_ops.run(call)
    else:
        fused(group, call, Options(cache_fused=False))
    rows = 12
    assert through_memory(record, "gather") == (rows * 516, rows * 516)
    assert through_memory(record, "gmm1")[1] == rows * 4 * 128
    assert through_memory(record, "swiglu") == (
        rows * (4 * 128 + 4) + 4 * 4 * 128, rows * (64 + 4)
    )  # fmt: skip
    assert through_memory(record, "gmm2")[1] == rows * 1024
    assert through_memory(record, "send") == ((rows * 1024,) * 2 if separate else (0, 0))


def test_a_record_has_times_spans_and_a_total():
    """Spans of every stage that ran lie inside the call, none is lost; few are kept when asked."""
    made = layer(n=32, experts=4, n_shared=32)
    group = LocalGroup(6, 512, 4, 2)
    record = Record(1, span_capacity=100)
    call = one_call(group, made, tokens(made, 6, k=2), record=record)
    fused(group, call)
    stages = {span.stage for span in record.spans}
    assert stages == {"dispatch", "gather", "gmm1", "swiglu", "gmm2", "combine", "shared"}
    assert {span.expert for span in record.spans if span.stage == "gmm1"} <= {0, 1, 2, 3}
    assert {span.expert for span in record.spans if span.stage == "shared"} == {4}
    assert all(span.begin_s <= span.end_s for span in record.spans)
    assert record.spans_lost == 0
    assert 0 < sum(record.stage_s.values()) <= record.total_s
    few = Record(1, span_capacity=3)
    fused(group, one_call(group, made, tokens(made, 6, k=2), record=few))
    assert len(few.spans) == 3
    assert few.spans_lost > 0
    few.reset()
    assert few.total_s == 0
