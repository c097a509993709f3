"""Planted: syscall_bound. Writes lines to /dev/null without a buffer."""

import os

null = os.open("/dev/null", os.O_WRONLY)
for _ in range(3_000_000):
    os.write(null, b"x")
os.close(null)
