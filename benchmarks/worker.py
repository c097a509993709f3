"""The process of one contender: ``python -m benchmarks.worker EVENTS_FD PARENT_PID``.

Libraries read the size of their thread pools from the environment when they are loaded, so nothing
but the standard library is imported before the request has been read.
"""

from __future__ import annotations

import importlib
import json
import os
import sys

POOL_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def main(argv: list[str]) -> None:
    """Read the request, size the pools, serve."""
    request = json.loads(sys.stdin.readline())
    for name in POOL_VARIABLES:
        os.environ[name] = str(request["entry"]["threads"])
    importlib.import_module("benchmarks.serving").serve(request, int(argv[0]))


if __name__ == "__main__":
    main(sys.argv[1:])
