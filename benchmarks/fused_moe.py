"""The fused operator against the same stages through the workspace and against separate ops.

``python -m benchmarks.fused_moe``. One rank and one thread; every token chooses all experts, so
that each has as many rows as there are tokens. The ways take turns, and each one's least CPU time
of its thread counts, which other programs disturb less than wall time.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np

from moe_prof.ep import small_ops
from moe_prof.ep.call import OperatorCall, TokenArguments, operator_call
from moe_prof.ep.group import LocalGroup, Options
from moe_prof.ep.native import BF16
from moe_prof.ep.operands import Attributes
from moe_prof.ep.prepared import WeightArguments
from moe_prof.ep.traffic import expert_weight_bytes

EXPERTS = 8
SIZES = ((512, 1024), (1024, 1024), (2048, 1536), (7168, 4096))
ROWS = (1, 8, 32)


def main(argv: Sequence[str] | None = None) -> int:
    """Print one line per size and number of rows."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fused_moe", description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="default: 9")
    parser.add_argument("--isa", default=None, help="instruction-set path (default: the best)")
    args = parser.parse_args(argv)
    sys.stdout.write("h n rows fused_ms unfused/fused separate/fused weights_GB/s GOP/s\n")
    for h, n in SIZES:
        weights = _weights(h, n)
        group = LocalGroup(max(ROWS), h, EXPERTS, EXPERTS)
        for rows in ROWS:
            call = operator_call(
                _tokens(rows, h), weights, group, Attributes(1, 0, EXPERTS, 0, 0), isa=args.isa
            )
            sys.stdout.write(_line(h, n, rows, _times(call, args.rounds)) + "\n")
            sys.stdout.flush()
    return 0


def _times(call: OperatorCall, rounds: int) -> dict[str, float]:
    """Least CPU seconds of each way."""
    ways: dict[str, Callable[[], object]] = {
        "fused": lambda: _fused(call, Options()),
        "unfused": lambda: _fused(call, Options(cache_fused=False)),
        "separate": lambda: small_ops.run(call),
    }
    least = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds):
        for name, way in ways.items():
            begin_s = time.thread_time()
            way()
            least[name] = min(least[name], time.thread_time() - begin_s)
    return least


def _fused(call: OperatorCall, options: Options) -> None:
    call.group.fused(
        call.prepared.engine, call.arrays, call.prepared.workspace(call.sizes), options,
        call.setup, call.record,
    )  # fmt: skip


def _line(h: int, n: int, rows: int, least: dict[str, float]) -> str:
    fused_s = least["fused"]
    weight_bytes = EXPERTS * expert_weight_bytes(h, n)
    return (
        f"{h} {n} {rows} {fused_s * 1e3:.3f} {least['unfused'] / fused_s:.2f} "
        f"{least['separate'] / fused_s:.2f} {weight_bytes / fused_s / 1e9:.1f} "
        f"{2 * weight_bytes * rows / fused_s / 1e9:.0f}"
    )


def _weights(h: int, n: int) -> WeightArguments:
    rng = np.random.default_rng(0)

    def int8(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int8]]:
        return rng.integers(-128, 128, shape, dtype=np.int8)

    return WeightArguments(
        int8(EXPERTS, h, n), np.full((EXPERTS, n), 1e-3 / np.sqrt(h), np.float32),
        int8(EXPERTS, n // 2, h), np.full((EXPERTS, h), 1e-3 / np.sqrt(n), np.float32),
    )  # fmt: skip


def _tokens(rows: int, h: int) -> TokenArguments:
    x = np.random.default_rng(1).standard_normal((rows, h)).astype(BF16)
    ids = np.tile(np.arange(EXPERTS, dtype=np.int32), (rows, 1))
    return TokenArguments(x, ids, np.ones((rows, EXPERTS), np.float32))


if __name__ == "__main__":
    sys.exit(main())
