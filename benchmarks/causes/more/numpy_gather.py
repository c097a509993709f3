"""Planted: dram_latency_bound, dram_bandwidth_bound. NumPy gathers from a large array at random."""

import sys

import numpy as np

rng = np.random.default_rng(1)
table = np.arange(60_000_000, dtype=np.int64)
where = rng.integers(0, table.size, 20_000_000)
gathered = np.empty(where.size, dtype=np.int64)
for _ in range(12):
    np.take(table, where, out=gathered, mode="clip")
sys.stdout.write(f"{gathered[99]}\n")
