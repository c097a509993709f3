"""Planted: page_fault_bound. New arrays of zeros of which each page is touched once."""

import sys

import numpy as np

total = 0
for step in range(5000):
    fresh = np.zeros(4 << 20, np.uint8)
    fresh[::4096] = step % 7
    total += int(fresh[::65536].sum())
sys.stdout.write(f"{total}\n")
