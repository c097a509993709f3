"""Planted: dram_bandwidth_bound. NumPy adds large arrays in place."""

import sys

import numpy as np

a = np.ones(25_000_000)
b = np.full(25_000_000, 0.5)
for _ in range(150):
    a += b
sys.stdout.write(f"{a[17]}\n")
