"""Waiting is told from work by what stands on the stack, innermost first."""

from __future__ import annotations

import pytest

from moe_prof.hotspots.waiting import has_nameless_runtime, is_waiting
from tests.moe_prof.hotspots.stack_making import stack

WAITS = [
    ("moe::ThreadPool::work@moe_bench", "moe::Signal::wait@moe_bench"),
    ("moe::ThreadPool::work(int)@moe_bench", "moe::Signal::wait(unsigned int, unsigned long)@moe"),
    ("work@moe_bench", "moe::Signal::sleep@moe_bench", "syscall@libc.so.6"),
    ("moe::Signal::sleep@moe_bench", "syscall@libc.so.6", "do_syscall_64@[kernel.kallsyms]",
     "finish_task_switch@[kernel.kallsyms]"),
    ("main@moe_bench", "[unknown]@libgomp.so.1.0.0"),
    ("main@moe_bench", "gomp_team_barrier_wait_end@libgomp.so.1"),
    ("main@a", "__kmp_fork_barrier@libiomp5.so"),
    ("main@a", "__kmp_hyper_barrier_release@libomp.so", "[unknown]@[kernel.kallsyms]"),
    ("main@a", "__sched_yield@libc.so.6"),
    ("main@a", "pthread_cond_wait@@GLIBC_2.3.2@libc.so.6"),
    ("loop@a", "_mm_pause@a"),
    ("main@a", "do_spin@libgomp.so.1"),
]  # fmt: skip
WORKS = [
    ("main@moe_bench", "moe_qs8_gemm_4x16c4__avx2@moe_bench"),
    ("moe::Signal::wait@moe_bench", "moe::packed::choose@moe_bench"),
    ("gomp_team_barrier_wait_end@libgomp.so.1", "task@a"),
    ("forward@a", "expf@libm.so.6"),
    ("moe::Signal::raise@moe_bench", "syscall@libc.so.6", "futex_wake@[kernel.kallsyms]"),
    ("forward@a", "asm_exc_page_fault@[kernel.kallsyms]"),
    ("main@a", "[unknown]@a"),
    ("main@a", "GOMP_parallel@libgomp.so.1"),
]
NOTHING = ()


@pytest.mark.parametrize("frames", WAITS)
def test_waiting(frames):
    """Pools, OpenMP runtimes with and without symbols, futexes, yields, pauses."""
    assert is_waiting(stack(*frames))


@pytest.mark.parametrize("frames", [*WORKS, NOTHING])
def test_working(frames):
    """Work below a wait, waking others, page faults, functions without names."""
    assert not is_waiting(stack(*frames))


def test_runtime_without_symbols_is_named():
    """The remark needs the runtime's name."""
    assert has_nameless_runtime((stack("a@b"), stack("[unknown]@libgomp.so.1"))) == "libgomp.so.1"
    assert has_nameless_runtime((stack("a@b"), stack())) == ""
