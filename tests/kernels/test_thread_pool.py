"""The thread pool, by itself through ctypes and behind plans: nothing may hang, leak or be lost."""

import ctypes
import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from moe_prof import kernels
from moe_prof.kernels.build import SOURCE_DIR
from moe_prof.kernels.compiler import find_compiler
from moe_prof.kernels.features import read_cpu, supported
from tests.kernels.layers import layer

SOURCES = [SOURCE_DIR / "cpp" / name for name in ("thread_pool.cpp", "wait_policy.cpp", "cpus.cpp")]
HOOK = Path(__file__).with_name("thread_pool_hook.cpp")
CHILD_LIMIT_S = 60

needs_packed = pytest.mark.skipif(
    "avx2" not in supported(read_cpu()), reason="packed, which uses the pool, has no path here"
)


@pytest.fixture(scope="module")
def lib(tmp_path_factory):
    """The pool in a library of its own, with the hook's functions typed."""
    out = tmp_path_factory.mktemp("pool") / "libpool.so"
    flags = ["-std=c++17", "-O2", "-fPIC", "-shared", "-pthread", f"-I{SOURCE_DIR / 'cpp'}"]
    sources = [str(path) for path in (HOOK, *SOURCES)]
    argv = [*find_compiler().argv, *flags, "-o", str(out), *sources]
    subprocess.run(argv, check=True, capture_output=True)
    library = ctypes.CDLL(str(out))
    pool, i32 = ctypes.c_void_p, ctypes.c_int32
    for name, result, arguments in (
        ("new", pool, (i32, i32)), ("delete", None, (pool,)), ("threads", i32, (pool,)),
        ("wrong_counts", ctypes.c_int64, (pool, i32, i32)), ("wait_for_last", None, (pool, i32)),
        ("waited_ns", ctypes.c_uint64, (pool, i32)), ("region_ns", ctypes.c_uint64, (pool,)),
        ("allowed_cpus", None, (pool, ctypes.c_void_p)), ("usable_cpus", i32, ()),
        ("region_cost_ns", ctypes.c_double, (pool,)),
        ("cpus_of_quota", i32, (ctypes.c_char_p,)),
    ):  # fmt: skip
        function = getattr(library, f"hook_{name}")
        function.restype, function.argtypes = result, arguments
    return library


@contextmanager
def pool_of(lib, threads, *, pin=False):
    """A pool for a while."""
    pool = lib.hook_new(threads, int(pin))
    try:
        yield pool
    finally:
        lib.hook_delete(pool)


@contextmanager
def affinity(cpus):
    """This thread restricted to some CPUs for a while."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def exit_code_of_child(action):
    """What a forked child exits with: 0 when action() is true; None when it had to be killed."""
    child = os.fork()
    if child == 0:
        code = 70  # an exception below leaves it
        try:
            code = 0 if action() else 1
        finally:
            os._exit(code)
    deadline = time.monotonic() + CHILD_LIMIT_S
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return None


def thread_count():
    """Threads of this process, as the kernel counts them."""
    return len(os.listdir("/proc/self/task"))


def allowed_cpus(lib, pool):
    """How many CPUs each thread of a pool may run on."""
    allowed = np.zeros(lib.hook_threads(pool), np.int32)
    lib.hook_allowed_cpus(pool, allowed.ctypes.data)
    return allowed.tolist()


@pytest.mark.parametrize("threads", [1, 2, 3, 4, 5])
def test_barriers_hold_the_whole_team(lib, threads):
    """After each barrier every thread sees the step of every other one, more than CPUs included."""
    with pool_of(lib, threads) as pool:
        assert lib.hook_threads(pool) == threads
        assert lib.hook_wrong_counts(pool, 300, 3) == 0


def test_sleepers_wake_for_the_next_region(lib):
    """A pool that lay idle for longer than it spins runs the next region whole."""
    with pool_of(lib, 3) as pool:
        for _ in range(5):
            time.sleep(0.01)
            assert lib.hook_wrong_counts(pool, 1, 1) == 0


def test_team_on_a_single_cpu_makes_progress(lib):
    """More threads than CPUs take turns instead of spinning their time away."""
    with affinity({min(os.sched_getaffinity(0))}), pool_of(lib, 4) as pool:
        assert lib.hook_usable_cpus() == 1
        assert lib.hook_wrong_counts(pool, 300, 2) == 0


def test_destroying_ends_the_workers(lib):
    """Pools, used or not, leave no thread behind."""
    before = thread_count()
    for regions in (0, 1) * 20:
        with pool_of(lib, 4) as pool:
            lib.hook_wrong_counts(pool, regions, 1)
    assert thread_count() == before


def test_waiting_is_counted_where_it_happens(lib):
    """The threads that wait are charged with the time, the busy one is not."""
    with pool_of(lib, 2) as pool:
        lib.hook_wait_for_last(pool, 100)
        waited = [lib.hook_waited_ns(pool, thread) * 1e-6 for thread in range(2)]
        assert lib.hook_region_ns(pool) * 1e-6 >= 95
    assert waited[0] >= 80
    assert waited[1] <= waited[0] - 50


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_cost_of_a_region_is_measured(lib, threads):
    """A team's region costs something below a second; a single thread has none."""
    with pool_of(lib, threads) as pool:
        cost_ns = lib.hook_region_cost_ns(pool)
        assert (cost_ns == 0) == (threads == 1)
        assert cost_ns < 1e9
        assert lib.hook_wrong_counts(pool, 10, 2) == 0


def test_pinned_threads_have_one_cpu_each(lib):
    """Pinning binds every thread, the creator included, and gives its CPUs back at the end."""
    before = os.sched_getaffinity(0)
    with pool_of(lib, 3, pin=True) as pool:
        assert allowed_cpus(lib, pool) == [1, 1, 1]
    assert os.sched_getaffinity(0) == before


def test_pool_beside_a_pinned_one_keeps_all_cpus(lib):
    """The workers of a second pool do not inherit the first one's binding; ends in any order."""
    before = os.sched_getaffinity(0)
    first = lib.hook_new(2, 1)
    second = lib.hook_new(2, 0)
    third = lib.hook_new(2, 1)
    assert allowed_cpus(lib, second)[1] == len(before)
    assert lib.hook_usable_cpus() == len(before)
    for pool in (first, second, third):
        lib.hook_delete(pool)
    assert os.sched_getaffinity(0) == before


def test_forked_child_starts_its_own_workers(lib):
    """A child's first region has the whole team again, and destroying the pool does not hang."""
    with pool_of(lib, 3) as pool:
        lib.hook_wrong_counts(pool, 10, 1)

        def in_child():
            right = lib.hook_wrong_counts(pool, 10, 2) == 0 and thread_count() == 3
            lib.hook_delete(pool)
            return right

        assert exit_code_of_child(in_child) == 0
        assert lib.hook_wrong_counts(pool, 10, 2) == 0


def test_forked_child_destroys_a_pool_it_never_used(lib):
    """Destroying without a region does not wait for the parent's threads."""
    with pool_of(lib, 3) as pool:
        assert exit_code_of_child(lambda: lib.hook_delete(pool) is None) == 0


def test_two_pools_of_two_callers(lib):
    """Pools that run at once, each from its own thread, do not disturb each other."""
    wrong = []

    def use(threads):
        with pool_of(lib, threads) as pool:
            wrong.append(lib.hook_wrong_counts(pool, 500, 2))

    callers = [threading.Thread(target=use, args=(threads,)) for threads in (2, 3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert wrong == [0, 0]


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("max 100000", 0), ("150000 100000", 1), ("400000 100000", 4), ("50000 100000", 1),
        ("-1\n 100000\n", 0), ("200000\n 100000\n", 2), ("", 0), ("100000 0", 0), (" ", 0),
    ],
)  # fmt: skip
def test_quota_in_whole_cpus(lib, text, cpus):
    """Both versions of cgroups' files: whole CPUs, at least one, 0 without a limit."""
    assert lib.hook_cpus_of_quota(text.encode()) == cpus


@needs_packed
@pytest.mark.parametrize("n", [1, 5])
@pytest.mark.parametrize("threads", [1, 2, 3, 4, 5])
def test_team_sizes_give_the_same_bits(n, threads):
    """Plans with any number of threads, more than CPUs included, agree."""
    w, x = layer(n, 40, 24, 5, 2)
    with kernels.variant("packed").prepare(w, threads=1) as plan:
        expected = plan.forward(x).tobytes()
    with kernels.variant("packed").prepare(w, threads=threads) as plan:
        assert plan.info.threads == threads
        assert plan.forward(x).tobytes() == expected


@needs_packed
@pytest.mark.parametrize("n", [1, 3])
def test_ten_thousand_tiny_forwards(n):
    """Regions of microseconds, one after the other, all end."""
    w, x = layer(n, 16, 8, 4, 2)
    with kernels.variant("packed").prepare(w, threads=2) as plan:
        before = plan.forward(x)
        plan.time_forward(x, 10_000)
        assert plan.forward(x).tobytes() == before.tobytes()


@needs_packed
def test_many_plans_alive_at_once():
    """Idle plans neither disturb those that run nor leave threads behind."""
    w, x = layer(3, 40, 24, 5, 2)
    before = thread_count()
    plans = [kernels.variant("packed").prepare(w, threads=2) for _ in range(20)]
    outputs = {plan.forward(x).tobytes() for plan in plans for _ in range(3)}
    for plan in plans:
        plan.close()
    assert len(outputs) == 1
    assert thread_count() == before


@needs_packed
def test_two_plans_from_two_python_threads():
    """Each Python thread gets its own plan's result."""
    w, x = layer(6, 64, 48, 5, 2)
    expected = kernels.variant("packed").prepare(w, threads=1).forward(x).tobytes()
    outputs = [[], []]

    def use(mine):
        with kernels.variant("packed").prepare(w, threads=2) as plan:
            mine.extend(plan.forward(x).tobytes() for _ in range(200))

    callers = [threading.Thread(target=use, args=(mine,)) for mine in outputs]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert [set(mine) for mine in outputs] == [{expected}] * 2


@needs_packed
def test_process_may_end_with_a_plan_open():
    """Workers that still wait do not keep the interpreter from ending."""
    script = (
        "import numpy as np\n"
        "from moe_prof import kernels\n"
        "from tests.kernels.layers import layer\n"
        "w, x = layer()\n"
        "plan = kernels.variant('packed').prepare(w, threads=3)\n"
        "plan.forward(x)\n"
        "keep = [plan]; keep.append(keep)\n"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", script], check=False, timeout=CHILD_LIMIT_S, cwd=root
    )
    assert done.returncode == 0
