"""The worker's side of a contest: prepare, compare, calibrate, then a sample whenever asked.

It says, one JSON object a line: ``skipped`` (reason), ``failed`` (reason), or ``ready`` (path,
prepare_s, loops, forward_s and the errors), then ``sampled`` (forward_s, cpu_s) for every line that
it reads. It ends when its standard input does.
"""

from __future__ import annotations

import gc
import json
import math
import os
import sys
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.contender import F32, Contender, Entry, load
from moe_prof.errors import MoeProfError, UnavailableError
from moe_prof.kernels import random_tokens, random_weights
from moe_prof.kernels.oracle import errors
from moe_prof.scenario import Scenario

MAX_LOOPS = 1 << 24
WARMUP_SHARE = 8
"""A sample is preceded by one loop in so many, to bring back what other contenders evicted."""


def serve(request: Mapping[str, Any], events_fd: int) -> None:
    """Serve one request until standard input ends."""
    entry = Entry(**request["entry"])
    try:
        contender = load(entry.adapter, entry.options)
        reason = contender.availability()
        if reason:
            _emit(events_fd, "skipped", reason=reason)
            return
        x, prepare_s = _prepare(contender, entry, request)
        facts = _compare(contender, x, request["expected"])
        loops, forward_s = _calibrate(contender, x, request)
    except UnavailableError as error:
        _emit(events_fd, "skipped", reason=str(error))
        return
    except MoeProfError as error:
        _emit(events_fd, "failed", reason=str(error))
        return
    _emit(
        events_fd, "ready", path=contender.path, prepare_s=prepare_s, loops=loops,
        forward_s=forward_s, **facts,
    )  # fmt: skip
    gc.collect()
    gc.disable()
    while sys.stdin.readline():
        _sample(contender, x, loops, events_fd)
    contender.close()


def _prepare(contender: Contender, entry: Entry, request: Mapping[str, Any]) -> tuple[F32, float]:
    n, d, h, e, k = request["shape"]
    scenario = Scenario(n, d, h, e, k)
    weights = random_weights(scenario, request["seed"])
    start_s = time.perf_counter()
    contender.prepare(weights, entry.threads, n)
    return random_tokens(scenario, request["seed"]), time.perf_counter() - start_s


def _compare(contender: Contender, x: F32, expected: str) -> dict[str, float | None]:
    """Errors against both truths; None for what is not finite."""
    with np.load(expected) as truth:
        y = contender.forward(x)[truth["rows"]]
        oracle, plain = errors(y, truth["oracle"]), errors(y, truth["unquantized"])
    found = {
        "oracle_rel_rmse": oracle.rel_rmse, "oracle_worst_token": oracle.worst_error,
        "unquantized_rel_rmse": plain.rel_rmse, "unquantized_worst_token": plain.worst_error,
    }  # fmt: skip
    return {name: value if math.isfinite(value) else None for name, value in found.items()}


def _calibrate(contender: Contender, x: F32, request: Mapping[str, Any]) -> tuple[int, float]:
    """Forwards of a sample and the time of one."""
    loops = request["loops"] or 1
    while True:
        total_s = contender.time_forward(x, loops)
        if request["loops"] or total_s >= request["min_sample_s"] or loops >= MAX_LOOPS:
            return loops, total_s / loops
        loops *= 2


def _sample(contender: Contender, x: F32, loops: int, events_fd: int) -> None:
    if loops > 1:  # a single long forward is its own warm-up
        contender.time_forward(x, max(1, loops // WARMUP_SHARE))
    cpu_start_s = time.process_time()
    total_s = contender.time_forward(x, loops)
    cpu_s = time.process_time() - cpu_start_s
    _emit(events_fd, "sampled", forward_s=total_s / loops, cpu_s=cpu_s / loops)


def _emit(events_fd: int, event: str, **values: object) -> None:
    os.write(events_fd, json.dumps({"event": event, **values}).encode() + b"\n")
