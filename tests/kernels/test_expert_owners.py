"""Who applies which tasks: the share-out of grouped experts, by itself through ctypes."""

import ctypes
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import pytest

from moe_prof.kernels.build import SOURCE_DIR
from moe_prof.kernels.compiler import find_compiler

HOOK = Path(__file__).with_name("expert_owners.cpp")
CPP = SOURCE_DIR / "cpp"
LARGEST = 32  # rows of a task
READ_ROWS = 4  # reading an expert's weights counts as so many rows


class Owners:
    """One share-out, with the tasks as (expert, begin, count)."""

    def __init__(self, library, handle):
        self._library, self._handle = library, ctypes.c_void_p(handle)
        self.tasks = [self._task(i) for i in range(library.owners_tasks(self._handle))]

    def _task(self, i):
        task = np.zeros(3, dtype=np.int32)
        self._library.owners_task(self._handle, i, ctypes.c_void_p(task.ctypes.data))
        return tuple(task.tolist())

    def take(self, thread):
        """The number of the thread's next task, -1 when none is left."""
        return self._library.owners_take(self._handle, thread)

    def take_all(self, thread):
        """All that a thread gets when the others sleep."""
        taken = []
        while (task := self.take(thread)) >= 0:
            taken.append(task)
        return taken

    def take_in_turn(self, team):
        """The tasks of each thread when all take one a turn."""
        taken = [[] for _ in range(team)]
        left = list(range(team))
        while left:
            for thread in list(left):
                task = self.take(thread)
                if task < 0:
                    left.remove(thread)
                else:
                    taken[thread].append(task)
        return taken


@pytest.fixture(scope="module")
def share_out(tmp_path_factory):
    """A context manager (ids, experts, team, shared=True) to Owners."""
    out = tmp_path_factory.mktemp("owners") / "libowners.so"
    sources = [HOOK, CPP / "packed" / "expert_owners.cpp", CPP / "packed" / "buckets.cpp"]
    flags = ["-std=c++17", "-O2", "-fPIC", "-shared", f"-I{CPP}", f"-I{SOURCE_DIR / 'include'}"]
    argv = [*find_compiler().argv, *flags, "-o", str(out), *map(str, sources)]
    subprocess.run(argv, check=True, capture_output=True)
    library = ctypes.CDLL(str(out))
    library.owners_new.restype = ctypes.c_void_p

    @contextmanager
    def make(ids, experts, team, *, shared=True):
        ids = np.ascontiguousarray(ids, dtype=np.int32)
        handle = library.owners_new(
            experts, ids.shape[1], int(shared), ctypes.c_void_p(ids.ctypes.data), len(ids),
            LARGEST, team,
        )  # fmt: skip
        try:
            yield Owners(library, handle)
        finally:
            library.owners_delete(ctypes.c_void_p(handle))

    return make


def random_ids(tokens, experts, top_k, seed=0):
    """(tokens, top_k) distinct experts per token."""
    rng = np.random.default_rng(seed)
    return np.stack([rng.permutation(experts)[:top_k] for _ in range(tokens)])


@pytest.mark.parametrize("team", [1, 2, 3, 7])
@pytest.mark.parametrize(("tokens", "experts", "top_k"), [(1, 1, 1), (5, 9, 2), (200, 16, 4)])
def test_every_task_is_taken_once(share_out, tokens, experts, top_k, team):
    """Threads that take in turn get all tasks, none twice; then -1 for everyone."""
    with share_out(random_ids(tokens, experts, top_k), experts, team) as owners:
        taken = owners.take_in_turn(team)
        assert sorted(chain.from_iterable(taken)) == list(range(len(owners.tasks)))
        assert [owners.take(thread) for thread in (*range(team), 0)] == [-1] * (team + 1)


def test_tasks_cover_every_row(share_out):
    """Each routed row and each token of the shared expert stands in one task of at most 32 rows."""
    with share_out(random_ids(200, 16, 4), 16, 2) as owners:
        routed = [(begin, count) for expert, begin, count in owners.tasks if expert < 16]
        shared = [(begin, count) for expert, begin, count in owners.tasks if expert == 16]
    for tasks, rows in ((routed, 800), (shared, 200)):
        ends = [begin + count for begin, count in tasks]
        assert [begin for begin, _ in tasks] == [0, *ends[:-1]]
        assert ends[-1] == rows
        assert max(count for _, count in tasks) <= LARGEST


def test_chunks_of_an_expert_stay_with_one_owner(share_out):
    """Until somebody steals, an expert's tasks are all of one thread, even when they are many."""
    ids = np.concatenate([np.full(150, 0), np.full(130, 1)])[:, None]
    with share_out(ids, 2, 2, shared=False) as owners:
        turns = [[owners.take(thread) for thread in range(2)] for _ in range(5)]
        experts = {tuple(owners.tasks[task][0] for task in turn) for turn in turns}
    assert experts == {(0, 1)}


@pytest.mark.parametrize("team", [2, 3, 4])
def test_parts_cost_about_the_same(share_out, team):
    """The first threads' parts of the routed rows differ by no more than one expert's cost."""
    with share_out(random_ids(512, 64, 2), 64, team, shared=False) as owners:
        costs = [count + READ_ROWS for _, _, count in owners.tasks]
        queue = list(range(len(costs)))
        starts = [owners.take(thread) for thread in range(team)]
    bounds = [*starts, len(queue)]
    parts = [sum(costs[a:b]) for a, b in pairwise(bounds)]
    assert max(parts) - min(parts) <= 2 * max(costs)


def test_shared_rows_are_cut_as_the_tokens_are(share_out):
    """A thread takes the shared expert's rows of its own half of the tokens before the others'."""
    with share_out(random_ids(128, 4, 1), 4, 2) as owners:
        tasks = [owners.tasks[task] for task in owners.take_all(1)]
    assert [begin for expert, begin, _ in tasks if expert == 4] == [64, 96, 0, 32]


def test_one_thread_finishes_the_work_of_those_that_sleep(share_out):
    """A thread whose own queues are empty takes the others' tasks."""
    with share_out(random_ids(64, 8, 2), 8, 3) as owners:
        assert sorted(owners.take_all(1)) == list(range(len(owners.tasks)))


def test_experts_without_tokens_have_no_task(share_out):
    """Empty experts and teams larger than the work leave nothing to take, and nothing breaks."""
    with share_out(np.full((3, 1), 7), 16, 5, shared=False) as owners:
        assert owners.tasks == [(7, 0, 3)]
        assert sorted(owners.take(thread) for thread in range(5)) == [-1, -1, -1, -1, 0]


def test_threads_that_take_at_once_share_nothing(share_out):
    """Four threads that race for the same queues never get the same task."""
    with share_out(random_ids(2048, 64, 4), 64, 4) as owners:
        with ThreadPoolExecutor(4) as pool:
            taken = list(pool.map(owners.take_all, range(4)))
        assert sorted(chain.from_iterable(taken)) == list(range(len(owners.tasks)))
