"""Arrays between guards: what a kernel does outside of them is found.

Before and behind an array lie pages that may not be touched, so that a far access ends the process
at once, and between the array and these pages known bytes, so that a near write is seen afterwards.
An array starts on a cache line, as allocators for vector code give it.

Source: mprotect(2).
"""

from __future__ import annotations

import ctypes
import math
import mmap
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from moe_prof.errors import MoeProfError, WorkloadError

ALIGNMENT = 64
GUARD_BYTES = 1 << 24
"""On each side, of address space only: a wrong index lands in it unless it is wilder than that."""
PATTERN = 0xA5
_PROT_NONE = 0

Scalar = TypeVar("Scalar", bound=np.generic)


class Guarded:
    """One array between guards.

    Args:
        margin_bytes: known bytes behind the array at least; with none an array that ends on a cache
            line may end at the page that may not be touched.

    Attributes:
        array: the array, its bytes ``PATTERN`` at first.
    """

    def __init__(
        self, name: str, shape: tuple[int, ...], dtype: npt.DTypeLike, *, margin_bytes: int = 0
    ) -> None:
        kind = np.dtype(dtype)
        self._name, size = name, math.prod(shape) * kind.itemsize
        page = mmap.PAGESIZE
        inside = -(-max(size + margin_bytes, 1) // page) * page
        self._memory = mmap.mmap(-1, inside + 2 * GUARD_BYTES)
        self._bytes = np.frombuffer(self._memory, np.uint8)
        self._start = GUARD_BYTES + (inside - margin_bytes - size) // ALIGNMENT * ALIGNMENT
        self._end, self._inside = self._start + size, slice(GUARD_BYTES, GUARD_BYTES + inside)
        self._bytes[self._inside] = PATTERN
        self._protect(0, GUARD_BYTES, _PROT_NONE)
        self._protect(GUARD_BYTES + inside, GUARD_BYTES, _PROT_NONE)
        self.array = self._bytes[self._start : self._end].view(kind).reshape(shape)

    def freeze(self) -> None:
        """From now on a write to the array ends the process."""
        self.array.flags.writeable = False
        self._protect(self._inside.start, self._inside.stop - self._inside.start, mmap.PROT_READ)

    def check(self, who: str) -> None:
        """Raises WorkloadError where bytes beside the array have changed."""
        for where, low, high in (
            ("before", self._inside.start, self._start),
            ("after", self._end, self._inside.stop),
        ):
            changed = int(np.count_nonzero(self._bytes[low:high] != PATTERN))
            if changed:
                raise WorkloadError(
                    f"{who}: it wrote out of bounds: {changed} bytes {where} {self._name}"
                )

    def _protect(self, low: int, size: int, access: int) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        address = ctypes.c_void_p(self._bytes.ctypes.data + low)
        if libc.mprotect(address, ctypes.c_size_t(size), access):
            raise MoeProfError(f"memory around {self._name} cannot be guarded (mprotect)")


def frozen_copy(name: str, array: npt.NDArray[Scalar]) -> Guarded:
    """A copy of an array between guards that nobody may write."""
    guarded = Guarded(name, array.shape, array.dtype)
    guarded.array[...] = array
    guarded.freeze()
    return guarded
