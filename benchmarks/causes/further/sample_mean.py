"""Planted: dram_latency_bound.

Bootstrap means: NumPy gathers random elements out of a 512 MiB array, so nearly each element is a
cache (and TLB) miss to DRAM.
"""

import sys

import numpy as np

rng = np.random.default_rng(3)
values = np.zeros(64 << 20, dtype=np.float64)
values[::509] = 1.5
index = rng.integers(0, values.size - 1_000_000, 2_000_000)
picked = np.empty(index.size)
total = 0.0
for resample in range(150):
    np.take(values[7919 * resample :], index, out=picked, mode="clip")
    total += float(picked[resample::1000].sum())
sys.stdout.write(f"checksum {total:.1f}\n")
