"""Telling waiting from work by the functions on a stack.

A thread waits when the innermost function that is neither system nor runtime code is a wait, or
when the runtime below it is known to wait there. Going outwards from the cost: code of the C
library and of the kernel says nothing by itself (reading a clock is part of a spinning loop, and of
work); a function of the list below decides for waiting; any other function of the program decides
for work.

Source: names of this project's thread pool (kernels/cpp/wait_policy.cpp, thread_pool.cpp); GNU
libgomp (config/linux/wait.h, bar.c, team.c), LLVM libomp (kmp_barrier.cpp, kmp_wait_release.h),
glibc (nptl), Linux (kernel/futex, kernel/sched).
"""

from __future__ import annotations

import re

from moe_prof.collectors.stacks import UNKNOWN, Frame, Stack

_WAITS = re.compile(
    r"moe::Signal::(?:wait|sleep)\b|moe::ThreadPool::wait_for_team\b|\bmoe::\S*\brelax\b"
    r"|gomp_\w*(?:barrier_wait|barrier_handle|wait_end|ptrlock_get_slow|mutex_lock_slow|sem_wait)"
    r"|\bdo_(?:spin|wait)\b|\bfutex_wait|\bfutex_do_wait|\bdo_futex_wait"
    r"|\b__kmp\w*(?:barrier|wait|yield|suspend|flag_\d+)|\b__kmp_(?:x86_)?(?:cpu_)?pause"
    r"|GOMP_barrier|omp_(?:set|test)_\w*lock"
    r"|sched_yield|pthread_(?:cond_\w*wait|join|barrier_wait|spin_lock)|__lll_lock_wait"
    r"|pthread_mutex_lock_slow|__futex_abstimed_wait|clock_nanosleep|\busleep\b"
    r"|tbb::\S*(?:wait|pause)|\bschedule\b|\bfinish_task_switch\b|\bio_schedule\b|_spin_lock_slowpath"
)
_RUNTIME_MODULE = re.compile(r"lib(?:gomp|omp|iomp5)\b.*")
_SYSTEM_MODULE = re.compile(
    r"(?:libc|libpthread|libm|librt|ld-linux\S*|ld-musl\S*)\b.*|\[(?:vdso|vsyscall)\]"
    r"|\[(?:kernel|guest\.kernel)\S*\]|\[\w+\]|vmlinux\S*"
)
_PAUSES = re.compile(r"\b_mm_pause\b|\b__builtin_ia32_pause\b|\bcpu_relax\b|\b_umwait\b|_tpause\b")


def is_wait_name(function: str) -> bool:
    """Whether a function of that name waits, whoever calls it."""
    return bool(_WAITS.search(function) or _PAUSES.search(function))


def is_waiting(stack: Stack) -> bool:
    """Whether the cost at the end of the stack is waiting for others."""
    for frame in reversed(stack.frames):
        if is_wait_name(frame.function):
            return True
        if not says_nothing(frame):
            return False
        if frame.function == UNKNOWN and _RUNTIME_MODULE.fullmatch(frame.module_name):
            return True  # a runtime without symbols: what it does by itself is mostly waiting
    return False


def says_nothing(frame: Frame) -> bool:
    """Whether a frame leaves open what its caller does: system code, runtime code."""
    name = frame.module_name
    if _RUNTIME_MODULE.fullmatch(name) or _SYSTEM_MODULE.fullmatch(name):
        return True
    return frame.function == UNKNOWN and not name


def has_nameless_runtime(stacks: tuple[Stack, ...]) -> str:
    """The name of an OpenMP runtime whose functions could not be named, "" if there is none."""
    for stack in stacks:
        for frame in stack.frames[-1:]:
            if frame.function == UNKNOWN and _RUNTIME_MODULE.fullmatch(frame.module_name):
                return frame.module_name
    return ""
