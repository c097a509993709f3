"""Arrays between guards: near writes are counted, wherever the array's size lets it end."""

import numpy as np
import pytest

from moe_prof.errors import WorkloadError
from moe_prof.kernels.guarded import ALIGNMENT, Guarded


@pytest.mark.parametrize("values", [1, 16, 250, 256, 1024, 1025])
def test_a_margin_shows_the_write_behind_the_end(values):
    """Also behind sizes of whole cache lines and pages, where else the guard page begins."""
    guarded = Guarded("y", (values,), np.float32, margin_bytes=ALIGNMENT)
    guarded.array[:] = 1.0
    guarded.check("mine")
    assert guarded.array.ctypes.data % ALIGNMENT == 0
    whole = np.frombuffer(guarded._memory, np.float32)
    behind = (guarded.array.ctypes.data - whole.ctypes.data) // 4 + values
    whole[behind] = 2.0
    with pytest.raises(WorkloadError, match="mine: it wrote out of bounds: 4 bytes after y"):
        guarded.check("mine")
    whole[behind] = np.frombuffer(bytes([0xA5] * 4), np.float32)[0]
    guarded.check("mine")
