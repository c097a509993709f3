"""Planted: dram_bandwidth_bound. Sums and scales arrays of 64 MiB in place."""

import sys

import numpy as np

a = np.ones(8 << 20)
b = np.ones(8 << 20)
for _ in range(150):
    a += b
sys.stdout.write(f"{a[5]}\n")
