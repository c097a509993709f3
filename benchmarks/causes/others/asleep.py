"""Planted: unknown. Waits for something outside of it."""

import time

for _ in range(30):
    time.sleep(0.1)
