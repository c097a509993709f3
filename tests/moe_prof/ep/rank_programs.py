"""Programs that tests run on every rank: ``mpirun -n P python -m tests.moe_prof.ep.rank_programs``.

The first argument names one. Rank 0 prints one JSON line a rank: what each saw.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time

import numpy as np

from moe_prof.ep import LocalGroup, Options, Record, fused_deep_moe, mpi, small_ops
from moe_prof.ep.call import TokenArguments, operator_call
from moe_prof.ep.mpi_group import EpGroup
from moe_prof.ep.native import BF16
from moe_prof.ep.operands import Attributes
from moe_prof.ep.prepared import WeightArguments
from moe_prof.ep.workspace import Workspace, WorkspaceMemory, aligned_bytes, workspace
from moe_prof.errors import MoeProfError

H, N, K, MAX_BS = 512, 96, 2, 5
E = int(os.environ.get("EP_TEST_EXPERTS", "6"))
GUARD = 4096
BATCHES = 6


def layer(experts):
    """Weights of these experts, the same on every rank."""
    made = []
    for expert in experts:
        rng = np.random.default_rng([1, expert])
        made.append(
            (
                rng.integers(-128, 128, (H, N), np.int8),
                rng.random(N, np.float32) * 1e-3,
                rng.integers(-128, 128, (N // 2, H), np.int8),
                rng.random(H, np.float32) * 1e-3,
            )
        )
    return [list(part) for part in zip(*made, strict=True)]


def tokens(batch, rank):
    """A rank's tokens of a batch: sometimes none, sometimes with skipped choices."""
    rng = np.random.default_rng([2, batch, rank])
    bs = int(rng.integers(0, MAX_BS + 1))
    x = rng.standard_normal((bs, H)).astype(BF16)
    ids = np.array([rng.permutation(E)[:K] for _ in range(bs)], np.int32).reshape(bs, K)
    ids[rng.random((bs, K)) < 0.1] = -1
    return x, ids, rng.random((bs, K), np.float32)


class Guarded:
    """Workspace memory between guards, poisoned before each call."""

    def __init__(self, layout: Workspace) -> None:
        self._all = aligned_bytes(layout.total_bytes + 2 * GUARD)
        self._all[:] = 0xA5
        self.memory = WorkspaceMemory(layout, self._all[GUARD:-GUARD])

    def poison(self, rng) -> None:
        """Other bytes in each call; large parts of them NaN or huge."""
        self.memory.memory[:] = rng.choice([0xFF, 0x7F, 0x5A])

    def intact(self) -> bool:
        """Whether nothing was written outside."""
        return bool((self._all[:GUARD] == 0xA5).all() and (self._all[-GUARD:] == 0xA5).all())


def calls_of(group, comm):
    """(call, expected output) of each batch."""
    local = E // group.size
    own = layer(range(group.rank * local, (group.rank + 1) * local))
    whole = layer(range(E))
    alone = LocalGroup(MAX_BS, H, E, K)
    made = []
    for batch in range(BATCHES):
        x, ids, scales = tokens(batch, group.rank)
        expected = fused_deep_moe(
            x, ids, *whole, expert_scales=scales, group_ep=alone, moe_expert_num=E
        )[0]
        call = operator_call(
            TokenArguments(x, ids, scales), WeightArguments(*own), group,
            Attributes(group.size, group.rank, E, global_bs=MAX_BS * group.size),
        )  # fmt: skip
        made.append((call, expected.view(np.uint16).copy()))
    comm.Barrier()
    return made, own


def stress(comm, count, transport):
    """Calls back to back after random delays, in poisoned memory between guards."""
    rng = np.random.default_rng(comm.rank)  # other delays on each rank
    with EpGroup(comm, MAX_BS, H, E, K, transport=transport, deadline_s=60.0) as group:
        made, _own = calls_of(group, comm)
        guarded = [Guarded(workspace(call.sizes)) for call, _ in made]
        wrong = 0
        for number in range(count):
            call, expected = made[number % BATCHES]
            memory = guarded[number % BATCHES]
            memory.poison(rng)
            call.arrays.output.view(np.uint16)[...] = 0x7FC1
            if rng.random() < 0.2:
                time.sleep(rng.random() * 5e-4)
            record = Record(group.size)
            way = number % 5
            if way == 4:
                small_ops.run(call)
            elif transport == "put":
                options = Options(overlap=way != 1)
                group.fused(
                    call.prepared.engine, call.arrays, memory.memory, options, call.setup, record
                )
            else:
                options = Options(overlap=way != 1, cache_fused=way != 2)
                group.fused(
                    call.prepared.engine, call.arrays, memory.memory, options, call.setup, record
                )
            wrong += not (call.arrays.output.view(np.uint16) == expected).all()
        group.check_guards()
        return {
            "calls": count, "wrong": wrong, "intact": all(one.intact() for one in guarded),
            "transport": group.transport,
        }  # fmt: skip


def mismatch(comm):
    """The last rank was set up for another hidden size."""
    h = 2 * H if comm.rank == comm.size - 1 else H
    EpGroup(comm, MAX_BS, h, E, K, deadline_s=60.0)


def bad_id(comm):
    """One rank has an expert id that is out of range; the others have begun their call."""
    with EpGroup(comm, MAX_BS, H, E, K, deadline_s=60.0) as group:
        made, own = calls_of(group, comm)
        if group.rank == 1:
            time.sleep(0.2)
            x, ids, scales = tokens(3, 0)
            ids = np.concatenate([ids, np.full((1, K), E, np.int32)])
            x, scales = (np.concatenate([one, one[:1]]) for one in (x, scales))
            attributes = Attributes(group.size, group.rank, E, global_bs=MAX_BS * group.size)
            operator_call(
                TokenArguments(x[: MAX_BS], ids[-len(x[: MAX_BS]) :], scales[: MAX_BS]),
                WeightArguments(*own), group, attributes,
            )  # fmt: skip
        small_ops.run(made[0][0])


def concurrent(comm):
    """A second call on the group while one waits for the other rank."""
    with EpGroup(comm, MAX_BS, H, E, K, deadline_s=60.0) as group:
        made, _own = calls_of(group, comm)
        call, _ = made[0]
        refused = []

        def fused():
            group.fused(
                call.prepared.engine, call.arrays, call.prepared.workspace(call.sizes), Options(),
                call.setup, Record(group.size),
            )  # fmt: skip

        if group.rank == 0:
            first = threading.Thread(target=fused)
            first.start()
            time.sleep(0.3)  # rank 1 has not begun, so that the first call still waits
            try:
                fused()
            except MoeProfError as error:
                refused.append(str(error))
            comm.send("go", 1)
            first.join()
        else:
            comm.recv(source=0)
            fused()
        return {"refused": refused}


def main(name, *words):
    """Run a program on this rank; errors are told as they are raised on each."""
    comm = mpi.load().COMM_WORLD
    programs = {"mismatch": mismatch, "bad_id": bad_id, "concurrent": concurrent}
    started_s = time.monotonic()
    try:
        told = stress(comm, int(words[0]), words[1]) if words else programs[name](comm)
    except MoeProfError as error:
        told = {"error": type(error).__name__, "code": error.exit_code, "text": str(error)}
    told = {**(told or {}), "rank": comm.rank, "s": round(time.monotonic() - started_s, 3)}
    lines = comm.gather(told)
    if comm.rank == 0:
        for line in lines:
            print(json.dumps(line), flush=True)  # noqa: T201
    comm.Barrier()
    mpi.load().Finalize()


if __name__ == "__main__":
    main(*sys.argv[1:])
