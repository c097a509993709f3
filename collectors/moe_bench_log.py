"""Reading the log lines of ``moe_bench`` and of the program whose output it keeps to.

    problem size: num_tokens=1 d_model=2 d_ff=3 num_experts=4 top_k=5 (1000 iterations)
    Baseline time:  5.9 s
    Optimized time: 1.6 s
    Result is correct! (rel RMSE: 0, worst token: 0 at -1)
    Speedup: 3.6

The lines may stand anywhere in a log; each ``problem size`` begins another run.

Source: kernels/cpp/bench/moe_bench.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from moe_prof.collectors.perf_numbers import parse_plain
from moe_prof.collectors.perf_reading import Warnings

_NUMBER = r"[+-]?(?:[0-9]+(?:[.,][0-9]+)?(?:[eE][+-]?[0-9]+)?|nan|inf)"
SIZE = re.compile(
    r".*?problem size:\s*num_tokens=(?P<n>[0-9]+)\s+d_model=(?P<d>[0-9]+)\s+d_ff=(?P<h>[0-9]+)"
    r"\s+num_experts=(?P<e>[0-9]+)\s+top_k=(?P<k>[0-9]+)(?:\s*\((?P<iterations>[0-9]+) iter)?"
)
TIME = re.compile(
    rf".*?\b(?P<which>Baseline|Optimized) time:\s*(?P<value>{_NUMBER})\s*(?P<unit>[mun]?s)?\b"
)
RESULT = re.compile(
    rf".*?\bResult is (?P<verdict>(?:NOT )?(?:IN)?CORRECT|WRONG)\b[^(]*"
    rf"(?:\(rel RMSE:\s*(?P<rmse>{_NUMBER})(?:,\s*worst token:\s*(?P<worst>{_NUMBER})"
    rf"(?:\s*at\s*(?P<at>-?[0-9]+))?)?)?",
    re.IGNORECASE,
)
SPEEDUP = re.compile(rf".*?\bSpeedup:\s*(?P<value>{_NUMBER})\s*[x×]?\s*$")
LINE = re.compile(
    r"[^\"]*?(?:problem size:\s*num_tokens=|\b(?:Baseline|Optimized) time:\s*[-+0-9ni]"
    r"|\bResult is (?i:(?:NOT )?(?:IN)?CORRECT|WRONG)\b|\bSpeedup:\s*[-+0-9ni])"
)
_WORDS = ("problem size", " time:", "Result is", "Speedup:")
_FACTORS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRun:
    """One run of the program; what it did not print is None.

    ``shape`` is (tokens, d_model, d_ff, experts, top_k); times are of all iterations together.
    """

    shape: tuple[int, int, int, int, int] | None = None
    iterations: int | None = None
    baseline_s: float | None = None
    optimized_s: float | None = None
    correct: bool | None = None
    rel_rmse: float | None = None
    worst_error: float | None = None
    speedup: float | None = None
    line: int = 0


def is_line(line: str) -> bool:
    """Whether the line is one of those that the program prints."""
    return any(word in line for word in _WORDS) and LINE.match(line) is not None


def parse(lines: Iterable[tuple[int, str]]) -> tuple[list[BenchRun], tuple[str, ...]]:
    """All runs of a log, from its numbered lines, and remarks about lines that were cut off."""
    runs: list[BenchRun] = []
    warnings = Warnings()
    for number, line in lines:
        size = SIZE.match(line)
        if size:
            n, d, h, e, k = (int(size[name][:18]) for name in ("n", "d", "h", "e", "k"))
            times = size["iterations"]
            runs.append(
                BenchRun(shape=(n, d, h, e, k), iterations=int(times) if times else None,
                         line=number)
            )  # fmt: skip
            continue
        changes = _changes(line)
        if not changes:
            if LINE.match(line):
                warnings.add(number, f"this line was cut off: {line.strip()[:60]!r}")
            continue
        repeated = runs and any(getattr(runs[-1], name) is not None for name in changes)
        if not runs or repeated:
            last = runs[-1] if runs else BenchRun()
            runs.append(BenchRun(shape=last.shape, iterations=last.iterations, line=number))
        runs[-1] = replace(runs[-1], **changes)  # type: ignore[arg-type]
    return runs, warnings.result()


def _changes(line: str) -> dict[str, float | bool | None]:
    time, result, speedup = TIME.match(line), RESULT.match(line), SPEEDUP.match(line)
    if time:
        value = parse_plain(time["value"]) * _FACTORS[time["unit"] or "s"]
        return {"baseline_s" if time["which"] == "Baseline" else "optimized_s": value}
    if result:
        return {
            "correct": result["verdict"].lower() == "correct",
            "rel_rmse": parse_plain(result["rmse"]) if result["rmse"] else None,
            "worst_error": parse_plain(result["worst"]) if result["worst"] else None,
        }
    if speedup:
        return {"speedup": parse_plain(speedup["value"])}
    return {}
