"""Planted: dram_bandwidth_bound.

NumPy adds one 96 MiB track onto another in place, over and over: plain streaming far beyond L3 in
one thread.
"""

import sys

import numpy as np

n = 24 << 20
master = np.zeros(n, dtype=np.float32)
track = np.full(n, 0.25, dtype=np.float32)
for _ in range(240):
    np.add(master, track, out=master)
sys.stdout.write(f"checksum {float(master[::4097].sum()):.2f}\n")
