"""Control groups' memory limits, of both versions, along the path to the root."""

from __future__ import annotations

import pytest

from moe_prof.machine.limits import memory_left_bytes
from moe_prof.machine.tree import Tree

V2 = {
    "proc/self/cgroup": "0::/job/step",
    "sys/fs/cgroup/job/memory.max": "1000000",
    "sys/fs/cgroup/job/memory.current": "400000",
    "sys/fs/cgroup/job/memory.stat": "anon 300000\ninactive_file 100000",
    "sys/fs/cgroup/job/step/memory.max": "max",
    "sys/fs/cgroup/job/step/memory.current": "400000",
}
V1 = {
    "proc/self/cgroup": "7:memory:/job",
    "sys/fs/cgroup/memory/job/memory.limit_in_bytes": "1000000",
    "sys/fs/cgroup/memory/job/memory.usage_in_bytes": "400000",
    "sys/fs/cgroup/memory/job/memory.stat": "inactive_file 1\ntotal_inactive_file 100000",
    "sys/fs/cgroup/memory/memory.limit_in_bytes": str((1 << 63) - 4096),
    "sys/fs/cgroup/memory/memory.usage_in_bytes": "500000",
}


@pytest.fixture
def left(tmp_path):
    """What a tree of these files leaves."""

    def read(files):
        for path, text in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(f"{text}\n")
        return memory_left_bytes(Tree(tmp_path))

    return read


@pytest.mark.parametrize("files", [V2, V1])
def test_limit_minus_use_without_droppable_cache(left, files):
    """The group above the process's own counts; those without a limit do not."""
    assert left(files) == 700_000


def test_the_tightest_group_counts(left):
    """The process's own, here."""
    assert left(V2 | {"sys/fs/cgroup/job/step/memory.max": "450000"}) == 50_000


def test_no_limit_is_unknown(left):
    """Not zero, not infinite."""
    assert left({"proc/self/cgroup": "0::/"}) is None
