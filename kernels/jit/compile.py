"""Compilation by numba: functions called from Python, and functions called by those.

The former are kept on disk. Numba compares only the file that defines a function with what it has
kept, not the files that the function calls into; so the cache's folder is named by a hash of all
files of this package. The latter are compiled into their callers and need no entry from Python.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

import numba
from numba.core import config

Function = TypeVar("Function", bound=Callable[..., object])


def inner(function: Function) -> Function:
    """Compile a function that only compiled functions call."""
    compiled = numba.njit(
        nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True
    )(function)
    return cast(Function, compiled)


def entry(function: Function) -> Function:
    """Compile a function with parallel loops that Python calls; at its first call, once a machine.

    Where no folder can be written, every process compiles it anew.
    """
    compiled = numba.njit(nogil=True, error_model="numpy", parallel=True, no_cfunc_wrapper=True)(
        function
    )
    before = config.CACHE_DIR
    config.CACHE_DIR = before or _cache_folder()
    try:
        compiled.enable_caching()
    except RuntimeError:
        return cast(Function, compiled)
    finally:
        config.CACHE_DIR = before
    return cast(Function, compiled)


@functools.cache
def _cache_folder() -> str:
    """A folder of the user's cache for these very sources; without a home "", numba's choice."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if not os.path.isabs(base):
        return ""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    digest = hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()
    return os.path.join(base, "moe-prof", "numba", digest[:16])
