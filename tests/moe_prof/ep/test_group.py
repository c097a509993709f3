"""Groups: faults end waits with the rank that is the cause, and calls take turns."""

import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from moe_prof.ep import native, small_ops
from moe_prof.ep.call import operator_call
from moe_prof.ep.group import LocalGroup, Options, WindowGroup, thread_groups
from moe_prof.ep.native import Record
from moe_prof.ep.operands import Attributes
from moe_prof.ep.windows import window_layout
from moe_prof.ep.workspace import WorkspaceMemory, aligned_bytes, workspace
from moe_prof.errors import InputError, PeerError, UsageError
from tests.moe_prof.ep.made import DEFAULT, E, H, K, layer, of_rank, run, tokens

SMALL = {"n": 32, "experts": 4}


def one_call(group, made, t, *, record=None, global_bs=None, threads=1):
    """A checked call of a rank."""
    ranks = group.size
    rows = len(t.x) * ranks if global_bs is None else global_bs
    return operator_call(
        t, of_rank(made.weights, group.rank, ranks), group,
        Attributes(ranks, group.rank, made.experts, 0, rows), record=record, threads=threads,
    )  # fmt: skip


def fused(group, call, options=DEFAULT):
    """Run it."""
    group.fused(
        call.prepared.engine, call.arrays, call.prepared.workspace(call.sizes), options,
        call.setup, call.record,
    )  # fmt: skip
    return call.outputs


@pytest.mark.parametrize("way", ["fused", "small"])
@pytest.mark.parametrize("experts", [4, 2])
def test_a_rank_that_does_not_come_is_named(way, experts):
    """Rank 1 never calls: rank 0 gives up after its timeout, and the group is broken."""
    made = layer(n=32, experts=experts)
    groups = thread_groups(2, 4, H, experts, K, timeout_s=0.05)
    call = one_call(groups[0], made, tokens(made, 4, k=2))
    with pytest.raises(PeerError, match=r"rank 0: rank 1 did not come within 0.05 s") as caught:
        if way == "fused":
            fused(groups[0], call)
        else:
            small_ops.run(call)
    assert caught.value.peer == 1
    assert caught.value.stage == "wait_dispatch"
    with pytest.raises(UsageError, match=r"this group is broken .*rank 1 did not come"):
        fused(groups[0], call)
    with pytest.raises(PeerError, match="rank 1: rank 0 has stopped the call") as caught:
        fused(groups[1], one_call(groups[1], made, tokens(made, 4, k=2)))
    assert caught.value.peer == 0


def test_a_rank_that_leaves_after_dispatch_is_named():
    """Rank 1 sends its rows and stops: rank 0 waits for its completion flag."""
    made = layer(**SMALL)
    groups = thread_groups(2, 4, H, 4, K, timeout_s=0.1)
    t = tokens(made, 4, k=2)
    with ThreadPoolExecutor(2) as pool:
        calls = [one_call(group, made, t) for group in groups]
        received = list(pool.map(small_ops.dispatch, calls))
    y2 = np.zeros((len(received[0].x1), H), t.x.dtype)
    with pytest.raises(PeerError, match="rank 1 did not come") as caught:
        small_ops.combine(calls[0], y2, received[0])
    assert (caught.value.peer, caught.value.stage) == (1, "wait_combine")
    assert calls[0].record.wait_s[1, 1] >= 0.09
    assert calls[0].record.wait_s[1, 0] == 0


def test_another_setup_is_noticed_by_rank():
    """Ranks with different numbers of tokens and no global_bs: each names the other."""
    made = layer(**SMALL)
    groups = thread_groups(2, 8, H, 4, K, timeout_s=5)

    def rank(index):
        t = tokens(made, 3 + index, k=2)
        call = one_call(groups[index], made, t, global_bs=0)
        with pytest.raises(PeerError) as caught:
            fused(groups[index], call)
        return str(caught.value)

    with ThreadPoolExecutor(2) as pool:
        said = list(pool.map(rank, range(2)))
    assert any("called with another setup" in words for words in said)
    assert all(f"rank {1 - i}" in words for i, words in enumerate(said))


def test_abort_ends_a_wait():
    """A rank that fails elsewhere tells the others."""
    made = layer(**SMALL)
    groups = thread_groups(2, 4, H, 4, K, timeout_s=30)
    call = one_call(groups[0], made, tokens(made, 4, k=2))
    timer = threading.Timer(0.05, native.abort, [groups[1].view])
    timer.start()
    with pytest.raises(PeerError, match="rank 1 has stopped the call"):
        fused(groups[0], call)
    timer.join()


def test_concurrent_calls_on_one_group_are_refused():
    """While one call waits for its peer, a second one is refused and harms nothing."""
    made = layer(**SMALL)
    groups = thread_groups(2, 4, H, 4, K, timeout_s=30)
    t = tokens(made, 4, k=2)
    calls = [one_call(group, made, t) for group in groups]
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(fused, groups[0], calls[0])
        while not has_sent(groups, 0, 1):
            pass
        with pytest.raises(UsageError, match="a call on this group runs already"):
            fused(groups[0], one_call(groups[0], made, t))
        second = fused(groups[1], calls[1])
        first = waiting.result()
    expected = run(made, [t, t])
    np.testing.assert_array_equal(first[0], expected[0][0])
    np.testing.assert_array_equal(second[0], expected[1][0])


def has_sent(groups, source, owner):
    """Whether ``source`` has published its rows for the first expert of ``owner``."""
    place = groups[owner].view.layout.cell(source, 0)
    return groups[owner].memory[owner][place : place + 8].view(np.uint64)[0] > 0


def test_a_busy_engine_is_refused_and_the_group_goes_on():
    """Two groups share packed experts: the second call is refused without breaking its group."""
    made = layer(**SMALL)
    t = tokens(made, 4, k=2)
    groups = thread_groups(2, 4, H, 4, K, timeout_s=30)
    call = one_call(groups[0], made, t)
    engine = call.prepared.engine
    alone = LocalGroup(4, H, 2, K)
    only = replace(made, weights=of_rank(made.weights, 0, 2))
    other = one_call(alone, only, tokens(only, 4, k=2))
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(fused, groups[0], call)
        while not has_sent(groups, 0, 1):  # now it waits for rank 1
            pass
        with pytest.raises(UsageError, match="already run a call"):
            alone.fused(
                engine, other.arrays, other.prepared.workspace(other.sizes), Options(),
                other.setup, other.record,
            )  # fmt: skip
        fused(groups[1], one_call(groups[1], made, t))
        waiting.result()
    fused(alone, other)


def test_rows_of_a_dispatch_must_be_combined_first():
    """Dispatch and combine belong together; a fused call in between is refused."""
    made = layer(**SMALL)
    group = LocalGroup(4, H, 4, K)
    call = one_call(group, made, tokens(made, 4, k=2))
    received = small_ops.dispatch(call)
    with pytest.raises(UsageError, match="rows of a dispatch are still out"):
        fused(group, call)
    y2 = np.zeros((8, H), call.arrays.x.dtype)
    small_ops.combine(call, y2, received)
    with pytest.raises(UsageError, match="not of the last dispatch"):
        small_ops.combine(call, y2, received)
    fused(group, call)


@pytest.mark.parametrize("experts", [4, 2])
@pytest.mark.parametrize("in_cache", [True, False])
def test_nothing_is_read_before_it_is_written_nor_written_outside(experts, in_cache):
    """Poison in workspaces, windows and outputs changes no bit, guards around them stay."""
    ranks, bs, guard = 2, 5, 4096
    made = layer(h=520, n=38, experts=experts, n_shared=22)
    t = tokens(made, bs, k=2, skip=0.2)
    expected = run(made, [t] * ranks)
    layout = window_layout(ranks, experts, bs, 520)
    windows = [aligned_bytes(guard + layout.size_bytes + guard) for _ in range(ranks)]
    for window in windows:
        window[:] = 0xA5
        window[guard : guard + layout.dispatch] = 0
    bases = tuple(window.ctypes.data + guard for window in windows)

    def rank(index):
        group = WindowGroup(index, bases, layout, 2, timeout_s=30, crowded=True)
        call = one_call(group, made, t)
        plan = workspace(call.sizes)
        memory = aligned_bytes(guard + plan.total_bytes + guard)
        memory[:] = 0xA5
        for array in call.outputs[:2]:
            array.view(np.uint16)[...] = 0x7FC1
        inner = memory[guard : guard + plan.total_bytes]
        group.fused(
            call.prepared.engine, call.arrays, WorkspaceMemory(plan, inner),
            Options(cache_fused=in_cache), call.setup, call.record,
        )  # fmt: skip
        reserved = plan["reserved"]
        untouched = inner[reserved.offset : reserved.offset + reserved.size_bytes]
        for part in (memory[:guard], memory[guard + plan.total_bytes :], untouched):
            assert (part == 0xA5).all()
        return call.outputs

    with ThreadPoolExecutor(ranks) as pool:
        results = list(pool.map(rank, range(ranks)))
    for got, wanted in zip(results, expected, strict=True):
        for a, b in zip(got, wanted, strict=True):
            np.testing.assert_array_equal(a, b)
    for window in windows:
        assert (window[:guard] == 0xA5).all()
        assert (window[guard + layout.size_bytes :] == 0xA5).all()


def test_packed_weights_are_kept_while_their_arrays_live():
    """The same arrays are packed once; others, or another setup, anew; dead ones leave."""
    made = layer(**SMALL)
    group = LocalGroup(4, H, 4, K)
    t = tokens(made, 4, k=2)
    first = one_call(group, made, t).prepared
    assert one_call(group, made, t).prepared is first
    assert one_call(group, made, t, threads=2).prepared is not first
    other = layer(**SMALL, seed=9)
    assert one_call(group, other, t).prepared is not first
    assert len(group.prepared._entries) == 3
    engine = weakref.ref(one_call(group, other, t).prepared.engine)
    del other
    assert len(group.prepared._entries) == 2
    assert engine() is None
    group.prepared.clear()
    assert one_call(group, made, t).prepared is not first


def test_sizes_that_do_not_fit_are_refused_by_the_core():
    """Beyond what Python checks: a window too small for the call."""
    made = layer(**SMALL)
    group = LocalGroup(8, H, 4, K)
    call = one_call(group, made, tokens(made, 4, k=2))
    small = LocalGroup(2, H, 4, K)
    with pytest.raises(InputError, match="fused: sizes or pointers do not fit together"):
        small.fused(
            call.prepared.engine, call.arrays, call.prepared.workspace(call.sizes), Options(),
            call.setup, Record(1),
        )  # fmt: skip


def test_other_transports_get_the_same_bits_from_the_stages():
    """Rows by hand from send buffers to receive buffers and back, as an all-to-all would."""
    ranks, bs = 2, 6
    made = layer(n_shared=34)
    parts = [tokens(made, bs, seed=rank, skip=0.2) for rank in range(ranks)]
    expected = run(made, parts)
    groups = thread_groups(ranks, bs, H, E, K)
    calls = [one_call(group, made, t) for group, t in zip(groups, parts, strict=True)]
    slot, row, local = 1024, 2 * H, E // ranks
    routes = [native.route(t.expert_ids, bs, E) for t in parts]
    sent = [np.zeros((E, bs, slot), np.uint8) for _ in parts]
    back = [np.zeros((E, bs, row), np.uint8) for _ in parts]
    for call, (expand_idx, _), out in zip(calls, routes, sent, strict=True):
        bases = [out[e].ctypes.data for e in range(E)]
        call.prepared.engine.send_rows(call.arrays, expand_idx, bases, slot, call.record)
    for owner, call in enumerate(calls):
        for e in range(local):
            expert = owner * local + e
            counts = np.array([routes[src][1][expert] for src in range(ranks)], np.int32)
            call.prepared.engine.expert_rows(
                e, call.arrays.x.dtype, counts, [s[expert].ctypes.data for s in sent], slot,
                [b[expert].ctypes.data for b in back], row, call.record,
            )  # fmt: skip
    for rank, (call, (expand_idx, _)) in enumerate(zip(calls, routes, strict=True)):
        bases = [back[rank][e].ctypes.data for e in range(E)]
        call.prepared.engine.weighted_sum(call.arrays, expand_idx, bases, row, call.record)
        call.prepared.engine.shared(call.arrays, call.record)
        np.testing.assert_array_equal(call.outputs[0], expected[rank][0])
        np.testing.assert_array_equal(call.outputs[1], expected[rank][1])
    runs = [(src, e) for e in range(local) for src in range(ranks)]
    counts = np.array([routes[src][1][e] for src, e in runs], np.int32)
    x1, scale = native.gather(
        H, [sent[src][e].ctypes.data for src, e in runs], counts, slot, calls[0].record
    )
    with ThreadPoolExecutor(ranks) as pool:
        received = list(pool.map(small_ops.dispatch, calls))
    np.testing.assert_array_equal(x1, received[0].x1)
    np.testing.assert_array_equal(scale, received[0].x1_scale)
    np.testing.assert_array_equal(received[0].ep_send_count.ravel(), np.cumsum(counts))
