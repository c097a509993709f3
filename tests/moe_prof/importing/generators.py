"""Outputs of tools made from known values, one strategy a tool: what was written must be read.

A strategy draws the values and the tool's version or options; it returns the text and, for each row
that must be found, (metric, value in base units, part of its source or place).
"""

from __future__ import annotations

import json
from collections.abc import Callable

from hypothesis import strategies as st

from tests.moe_prof.importing.perf_outputs import (
    perf_report,
    perf_script,
    perf_stat_csv,
    perf_stat_json,
    perf_stat_text,
)
from tests.moe_prof.importing.valgrind_outputs import cachegrind_log, callgrind_out, cg_annotate
from tests.moe_prof.importing.written import (
    Expected,
    Output,
    names,
    percents,
)


@st.composite
def llvm_mca(draw: st.DrawFn) -> Output:
    """Text and JSON, one or two regions."""
    as_json = draw(st.booleans())
    regions, lines, expected = [], [], []
    for number in range(draw(st.integers(1, 2))):
        figures = {"Iterations": 100, "Instructions": draw(st.integers(1, 10**6)),
                   "Total Cycles": draw(st.integers(1, 10**6)),
                   "Total uOps": draw(st.integers(1, 10**6)), "Dispatch Width": 6}  # fmt: skip
        name = f"part {number}"
        lines += [f"[{number}] Code Region - {name}", ""]
        lines += [f"{key}: {value:>12}" for key, value in figures.items()]
        lines += ["IPC:               1.25", "Block RThroughput: 1.2", ""]
        keys = {"Total Cycles": "TotalCycles", "Total uOps": "TotaluOps",
                "Dispatch Width": "DispatchWidth"}  # fmt: skip
        summary = {keys.get(key, key): value for key, value in figures.items()} | {"IPC": 1.25}
        regions.append({"Name": name, "Instructions": [], "SummaryView": summary})
        expected += [Expected(key, float(value), name) for key, value in figures.items()]
    text = json.dumps({"CodeRegions": regions}, indent=2) if as_json else "\n".join(lines)
    return Output(text + "\n", tuple(expected))


@st.composite
def toplev_csv(draw: st.DrawFn) -> Output:
    """With and without titles, intervals, CPUs; any separator."""
    separator = draw(st.sampled_from([",", ";", "\t"]))
    titles, timed, per_core = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    fields = ["Timestamp"] * timed + ["CPUs"] * per_core
    fields += ["Area", "Value", "Unit", "Description", "Sample", "Stddev", "Multiplex",
               "Bottleneck", "Idle"]  # fmt: skip
    lines = [separator.join(fields)] if titles else ["# 4.7-full on Intel(R) Xeon(R) [spr]"]
    expected = []
    for core in range(draw(st.integers(1, 2)) if per_core else 1):
        for node in ("Frontend_Bound", "Backend_Bound.Memory_Bound.L1_Bound", "Retiring"):
            value = draw(percents)
            below = draw(st.sampled_from(["", " <"]))
            cells = ["1.000123456"] * timed + [f"S0-C{core}"] * per_core
            cells += [node, f"{value}", f"% Slots{below}", "", "", "0.0", "25.0", "", ""]
            lines.append(separator.join(cells))
            expected.append(Expected(node, value / 100, f"S0-C{core}" if per_core else ""))
    return Output("\n".join(lines) + "\n", tuple(expected))


@st.composite
def perfspect_csv(draw: st.DrawFn) -> Output:
    """Version 3's series and summary, version 2's series."""
    layout = draw(st.sampled_from(["series", "summary", "old"]))
    cpi, share, rate = draw(st.integers(10, 900)) / 100, draw(percents), draw(percents)
    metrics = {"CPI": (cpi, cpi), "TMA_Retiring(%)": (share, share / 100),
               "memory bandwidth read (MB/sec)": (rate, rate * 1e6)}  # fmt: skip
    expected = tuple(Expected(name, base) for name, (_, base) in metrics.items())
    if layout == "summary":
        lines = ["metric,mean,min,max,stddev"]
        lines += [f"{name},{printed},{printed},NaN,0.5" for name, (printed, _) in metrics.items()]
    else:
        prefix, head = ("metric_", "time") if layout == "old" else ("", "TS,SKT,CPU,CID")
        places = "1.0" if layout == "old" else "1700000001,,,"
        printed_values = [f"{printed}" for printed, _ in metrics.values()]
        lines = [",".join([head, *(prefix + name for name in metrics)])]
        lines.append(",".join([places, *printed_values]))
    return Output("\n".join(lines) + "\n", expected)


@st.composite
def pyperf_json(draw: st.DrawFn) -> Output:
    """Several workers, the unit in the benchmark's or the file's metadata."""
    unit = draw(st.sampled_from(["second", "byte", "integer"]))
    values = draw(st.lists(st.integers(1, 10**9).map(lambda n: n / 1e9), min_size=1, max_size=6))
    own = {"metadata": {"name": "gemm", "unit": unit}}
    runs = [{"metadata": {}, "values": [value], "warmups": [[1, 0.5]]} for value in values]
    document: dict[str, object] = {"version": "1.0", "benchmarks": [{"runs": runs}]}
    if draw(st.booleans()):
        document |= own
    else:
        document["benchmarks"] = [{"runs": runs, **own}]
    mean = sum(values) / len(values)
    return Output(json.dumps(document), (Expected("gemm", mean, "mean"),))


@st.composite
def moe_bench_log(draw: st.DrawFn) -> Output:
    """Headings, other output and several runs."""
    lines, expected = ["--------------- Test 1 ---------------"], []
    for tokens in draw(st.lists(st.integers(1, 4096), min_size=1, max_size=3, unique=True)):
        base, fast = draw(st.integers(1, 10**6)) / 1e4, draw(st.integers(1, 10**6)) / 1e4
        lines += [
            f"problem size: num_tokens={tokens} d_model=64 d_ff=32 num_experts=8 top_k=2"
            " (10 iterations)",
            f"Baseline time:  {base:g} s", "warming up", f"Optimized time: {fast:g} s",
            "Result is correct! (rel RMSE: 1.5e-08, worst token: 2e-07 at 3)",
            f"Speedup: {base / fast:g}",
        ]  # fmt: skip
        expected += [
            Expected("Baseline time", float(f"{base:g}")),
            Expected("Optimized time", float(f"{fast:g}")),
            Expected("num_tokens", float(tokens)),
            Expected("rel_rmse", 1.5e-8),
        ]
    return Output("\n".join(lines) + "\n", tuple(expected))


@st.composite
def gprof_flat(draw: st.DrawFn) -> Output:
    """A flat profile with and without call counts, in one of gprof's units."""
    unit, factor = draw(st.sampled_from([("ms", 1e-3), ("us", 1e-6), ("s", 1.0), ("Ks", 1e3)]))
    lines = ["Flat profile:", "", "Each sample counts as 0.01 seconds.",
             "  %   cumulative   self              self     total",
             f" time   seconds   seconds    calls  {unit}/call  {unit}/call  name"]  # fmt: skip
    expected, total = [], 0.0
    for function in draw(names):
        own, calls = draw(st.integers(0, 10**4)) / 100, draw(st.integers(1, 10**9))
        total = round(total + own, 2)
        counted = draw(st.booleans())
        middle = f"{calls:>8} {2.5:>8.2f} {7.25:>8.2f}" if counted else " " * 26
        lines.append(f" {12.5:5.2f} {total:10.2f} {own:8.2f} {middle}  {function}")
        expected.append(Expected("self seconds", own, f"{function}; flat"))
        expected.append(Expected("calls", float(calls) if counted else None, f"{function}; flat"))
        if counted:
            expected.append(Expected("self per call", 2.5 * factor, f"{function}; flat"))
    expected.append(Expected("total seconds", total))
    return Output("\n".join(lines) + "\n", tuple(expected))


@st.composite
def folded(draw: st.DrawFn) -> Output:
    """Stacks whose names hold blanks; only the last blank separates the weight."""
    weights = [(function, draw(st.integers(1, 10**9))) for function in draw(names)]
    lines = [f"moe;main;{function} {weight}" for function, weight in weights]
    expected = [Expected("samples self", float(weight), function) for function, weight in weights]
    expected.append(Expected("samples", float(sum(weight for _, weight in weights))))
    return Output("\n".join(lines) + "\n", tuple(expected))


@st.composite
def vtune_csv(draw: st.DrawFn) -> Output:
    """Three delimiters, nested columns, quoted names, blank cells."""
    delimiter = draw(st.sampled_from([",", "\t", ";"]))
    columns = ["Function", "CPU Time", "CPU Time:Spin Time", "Module"]
    lines, expected = [delimiter.join(columns)], []
    for function in draw(names):
        own, spin = draw(st.integers(0, 10**6)) / 1e3, draw(st.integers(0, 10**6)) / 1e3
        blank = draw(st.booleans())
        lines.append(delimiter.join([f'"{function}"', f"{own}", "" if blank else f"{spin}", "moe"]))
        expected.append(Expected("CPU Time", own, f"{function} [moe]"))
        expected.append(
            Expected("CPU Time:Spin Time", None if blank else spin, f"{function} [moe]")
        )
    spins = [one.value for one in expected if one.metric.endswith("Spin Time")]
    if all(spin is None for spin in spins):
        expected = [one for one in expected if one.metric == "CPU Time"]
    return Output("\n".join(lines) + "\n", tuple(expected))


GENERATORS: dict[str, Callable[[], st.SearchStrategy[Output]]] = {
    "perf_stat_text": perf_stat_text,
    "perf_stat_csv": perf_stat_csv,
    "perf_stat_json": perf_stat_json,
    "perf_report": perf_report,
    "cg_annotate": cg_annotate,
    "callgrind_out": callgrind_out,
    "cachegrind_log": cachegrind_log,
    "llvm_mca": llvm_mca,
    "toplev_csv": toplev_csv,
    "perfspect_csv": perfspect_csv,
    "pyperf_json": pyperf_json,
    "moe_bench_log": moe_bench_log,
    "gprof_flat": gprof_flat,
    "perf_script": perf_script,
    "folded": folded,
    "vtune_csv": vtune_csv,
}
