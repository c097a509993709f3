"""Planted: dram_bandwidth_bound. Sums and scales arrays of 256 MiB in place."""

import sys

import numpy as np

a = np.ones(32 << 20)
b = np.ones(32 << 20)
for _ in range(15):
    a += b
sys.stdout.write(f"{a[5]}\n")
