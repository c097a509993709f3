"""Compilation by numba: functions called from Python, and functions called by those.

The former are kept on disk. Numba compares only the file that defines a function with what it has
kept, not the files that the function calls into; so the cache's folder is named by a hash of all
files of this package. The latter are compiled into their callers and need no entry from Python.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numba.core

from moe_prof.kernels.build import cache_root

Function = TypeVar("Function", bound=Callable[..., object])

SETTINGS: Any = numba.core.config  # without types: its names are set from the environment


def inner(function: Function) -> Function:
    """Compile a function that only compiled functions call."""
    return _jit(no_cpython_wrapper=True)(function)


def entry(function: Function) -> Function:
    """Compile a function with parallel loops that Python calls; at its first call, once a machine.

    Where no folder can be written, every process compiles it anew.
    """
    compiled: Any = _jit(parallel=True)(function)
    before = SETTINGS.CACHE_DIR
    try:
        SETTINGS.CACHE_DIR = str(cache_folder())
        compiled.enable_caching()
    except RuntimeError:
        return cast(Function, compiled)
    finally:
        SETTINGS.CACHE_DIR = before
    return cast(Function, compiled)


def max_threads() -> int:
    """Threads that numba has in this process."""
    return int(SETTINGS.NUMBA_NUM_THREADS)


def threading_layer() -> str:
    """What numba runs its parallel loops on (omp, tbb, workqueue); known after the first loop."""
    untyped: Any = numba
    return str(untyped.threading_layer())


def is_kept(name: str) -> bool:
    """Whether the entry function of that name has been compiled on this machine before."""
    return any(cache_folder().rglob(f"*.{name}-*.nbc"))


@functools.cache
def cache_folder() -> Path:
    """Where compiled entry functions of these very sources are kept, beside the C++ kernels.

    Raises:
        RuntimeError: the user has no home, and no other place is named.
    """
    sources = sorted(Path(__file__).parent.glob("*.py"))
    digest = hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()
    return cache_root() / "numba" / digest[:16]


def _jit(**options: bool) -> Callable[[Function], Function]:
    """Numba's decorator: no checks for division by zero, the interpreter's lock released."""
    jit = cast(Callable[..., Callable[[Function], Function]], numba.njit)
    return jit(nogil=True, error_model="numpy", no_cfunc_wrapper=True, **options)
