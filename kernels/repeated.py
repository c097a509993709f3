"""Experts that share memory: an array whose first experts' pages are mapped again for the others.

A layer larger than memory can then be run by every kernel as it is: addresses differ, the memory
behind them repeats. What changes is what caches, the TLB and the memory see: fewer bytes than the
layer has, which every report of such a run says.

Source: mmap(2) and memfd_create(2): a file mapped at fixed addresses, as often as wanted.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os

import numpy as np

from moe_prof.errors import UsageError
from moe_prof.kernels.weights import I8

_PROT_NONE, _MAP_FIXED, _MAP_FAILED = 0, 0x10, ctypes.c_void_p(-1).value


class _Pages:
    """Address space that repeats a file's pages; given back when the last array over it goes."""

    def __init__(self, block: I8, size_bytes: int) -> None:
        self._size_bytes = -(-size_bytes // mmap.PAGESIZE) * mmap.PAGESIZE
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.mmap.restype = ctypes.c_void_p
        self._libc.mmap.argtypes = (
            ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int,
            ctypes.c_long,
        )  # fmt: skip
        self._libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
        self._address = 0
        reserved = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self._address = self._map(None, self._size_bytes, _PROT_NONE, reserved, -1)
        self._fill(block)
        self.__array_interface__ = {
            "data": (self._address, True), "shape": (size_bytes,), "typestr": "|i1", "version": 3,
        }  # fmt: skip

    def _fill(self, block: I8) -> None:
        descriptor = os.memfd_create("experts", os.MFD_CLOEXEC)
        try:
            with open(descriptor, "wb", closefd=False) as file:
                file.write(block.data)
            for low in range(0, self._size_bytes, block.nbytes):
                size = min(block.nbytes, self._size_bytes - low)
                flags = mmap.MAP_SHARED | _MAP_FIXED
                self._map(self._address + low, size, mmap.PROT_READ, flags, descriptor)
        except OSError as error:
            raise UsageError(f"experts cannot share memory: {error.strerror}") from error
        finally:
            os.close(descriptor)

    def _map(self, at: int | None, size: int, access: int, flags: int, descriptor: int) -> int:
        found = self._libc.mmap(at, size, access, flags, descriptor, 0)
        if found == _MAP_FAILED:
            words = os.strerror(ctypes.get_errno())
            raise UsageError(f"experts cannot share memory: {words} (mapping {size} bytes)")
        return int(found)

    def __del__(self) -> None:
        if self._address:
            self._libc.munmap(self._address, self._size_bytes)


def repeated(block: I8, count: int) -> I8:
    """(count, rows, columns) int8, read-only: expert e is ``block[e % len(block)]``, in its memory.

    Args:
        block: (distinct, rows, columns) int8; all of it together must be whole pages.

    Raises:
        UsageError: it is not, or the system refuses the mapping.
    """
    if block.nbytes % mmap.PAGESIZE:
        raise UsageError(
            f"experts of {block.nbytes // len(block)} bytes a matrix cannot share memory in groups "
            f"of {len(block)}: together they are no whole pages of {mmap.PAGESIZE} bytes"
        )
    shape = (count, *block.shape[1:])
    pages = _Pages(np.ascontiguousarray(block), math.prod(shape))
    view: I8 = np.asarray(pages).reshape(shape)
    return view
