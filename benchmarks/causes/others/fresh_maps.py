"""Planted: page_fault_bound. New memory is mapped again and again, each page touched once."""

import mmap
import sys

SIZE, PAGE = 8 << 20, 4096
marks = bytes(SIZE // PAGE)
total = 0
for _ in range(400):
    fresh = mmap.mmap(-1, SIZE)
    view = memoryview(fresh)
    view[::PAGE] = marks
    total += view[0]
    view.release()
    fresh.close()
sys.stdout.write(f"{total}\n")
