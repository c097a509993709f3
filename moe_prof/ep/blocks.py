"""Memory for results that is used again once nobody holds a result any more.

Separate ops make several large arrays per call. Fresh memory would cost page faults, which a
framework with a caching allocator does not have, and which would flatter the fused operator.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from moe_prof.ep.windows import LINE_BYTES

_FREE_REFERENCES = 3  # of the list, of the loop and of getrefcount itself
_MOST_WASTE = 2  # a block serves results of at least half of its size
_MOST_BLOCKS = 32


@dataclass(slots=True)
class Blocks:
    """Blocks of memory, each lent to one array with all of its views at a time."""

    _blocks: list[npt.NDArray[np.uint8]] = field(default_factory=list)

    def empty(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """An array with undefined contents, on a cache line's boundary."""
        kind = np.dtype(dtype)
        size_bytes = math.prod(shape) * kind.itemsize
        block = self._find(size_bytes + LINE_BYTES)
        start = -block.ctypes.data % LINE_BYTES
        return block[start : start + size_bytes].view(kind).reshape(shape)

    def _find(self, size_bytes: int) -> npt.NDArray[np.uint8]:
        for block in self._blocks:
            fits = size_bytes <= block.size <= _MOST_WASTE * size_bytes
            if fits and sys.getrefcount(block) == _FREE_REFERENCES:
                return block
        while len(self._blocks) >= _MOST_BLOCKS:
            self._blocks.pop(0)
        self._blocks.append(np.empty(size_bytes, np.uint8))
        return self._blocks[-1]
