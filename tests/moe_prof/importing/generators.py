"""Outputs of tools made from known values, one strategy a tool: what was written must be read.

A strategy draws the values and the tool's version or options; it returns the text and, for each row
that must be found, (metric, value in base units, part of its source or place).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

EVENTS = ("cycles", "instructions", "branches", "branch-misses", "page-faults", "LLC-loads",
          "cpu_core/cycles/", "r1c2", "uops_issued.any:u")  # fmt: skip
FUNCTIONS = (
    "gemm", "moe::gemm<signed char, 16, 64>(int, char)", "operator()", "std::map<int, long>::at",
    "route [clone .constprop.0]", "__expf_fma", "(anonymous namespace)::run", "f(void (*)(int))",
)  # fmt: skip


@dataclass(frozen=True)
class Expected:
    """A row that must be there; ``where`` is part of its source, cpu or thread."""

    metric: str
    value: float | None
    where: str = ""


@dataclass(frozen=True)
class Output:
    """A text and what must be read from it."""

    text: str
    expected: tuple[Expected, ...]


@dataclass(frozen=True)
class Locale:
    """How a locale writes numbers."""

    group: str
    decimal: str
    lakh: bool = False

    def count(self, value: int) -> str:
        """A grouped whole number."""
        digits = str(value)
        if self.lakh and len(digits) > 3:
            head, tail = digits[:-3], digits[-3:]
            parts = [head[max(0, end - 2) : end] for end in range(len(head), 0, -2)][::-1]
            return self.group.join([*parts, tail])
        parts = [digits[max(0, end - 3) : end] for end in range(len(digits), 0, -3)][::-1]
        return self.group.join(parts)

    def fixed(self, value: float, places: int) -> str:
        """A number that is never grouped."""
        return f"{value:.{places}f}".replace(".", self.decimal)


LOCALES = (
    Locale("", "."), Locale(",", "."), Locale(".", ","), Locale("'", "."), Locale("\u2019", "."),
    Locale("\u202f", ","), Locale("\u00a0", ","), Locale(" ", ","), Locale(",", ".", lakh=True),
)  # fmt: skip
counts = st.integers(0, 10**13)
percents = st.integers(0, 10_000).map(lambda n: n / 100)
running = st.sampled_from([100.0, 83.33, 66.67, 12.5, 3.1])
names = st.lists(st.sampled_from(FUNCTIONS), min_size=1, max_size=5, unique=True)


@st.composite
def perf_stat_text(draw: st.DrawFn) -> Output:
    """Old and new layout, any locale, repetitions, multiplexing, missing counts."""
    locale = draw(st.sampled_from(LOCALES))
    bracket = draw(st.sampled_from(["[]", "()"]))
    runs = draw(st.sampled_from([1, 3, 10]))
    lines, expected = [], []
    for event in draw(st.lists(st.sampled_from(EVENTS), min_size=1, max_size=6, unique=True)):
        if draw(st.booleans()) and draw(st.booleans()):
            lines.append(f"   <not counted>      {event}")
            expected.append(Expected(event, None))
            continue
        value, share = draw(counts), draw(running)
        marks = f"  ( +- {locale.fixed(1.25, 2)}% )" if runs > 1 else ""
        if share < 100:
            marks += f"  {bracket[0]}{locale.fixed(share, 2)}%{bracket[1]}"
        comment = f"    #  {locale.fixed(1.5, 3)} K/sec" if draw(st.booleans()) else ""
        lines.append(f"{locale.count(value):>18}      {event:<24}{comment}{marks}")
        expected.append(Expected(event, float(value)))
    head = f" Performance counter stats for './moe 1 2'{f' ({runs} runs)' if runs > 1 else ''}:"
    elapsed = draw(st.integers(1, 10**12)) / 1e9
    noise = f" +- {locale.fixed(0.5, 9)}" if runs > 1 else ""
    foot = f"      {locale.fixed(elapsed, 9)}{noise} seconds time elapsed"
    expected.append(Expected("time_elapsed", elapsed))
    return Output("\n".join(["", head, "", *lines, "", foot, ""]), tuple(expected))


@st.composite
def perf_stat_csv(draw: st.DrawFn) -> Output:
    """Any separator, with a CPU column or intervals, with -r's column in either place."""
    separator = draw(st.sampled_from([",", ";", "|", "\t", "@"]))
    cpus = draw(st.sampled_from([(), ("CPU0", "CPU1"), ("S0-D0-C0",), ("N0",)]))
    deviation = draw(st.sampled_from(["", "before", "after"]))
    started = draw(st.booleans())
    lines, expected = ["# started on Mon Jun  2 10:11:12 2025", ""] if started else [], []
    for event in draw(st.lists(st.sampled_from(EVENTS), min_size=1, max_size=6, unique=True)):
        for cpu in cpus or ("",):
            value, share = draw(counts), draw(running)
            place = [cpu] if cpu else []
            if cpu.startswith(("S", "N")):
                place.append("4")
            tail = [str(draw(st.integers(1, 10**12))), f"{share:.2f}"]
            noise = ["1.25%"]
            tail = noise + tail if deviation == "before" else tail
            tail = tail + noise if deviation == "after" else tail
            tail += ["2.50", "K/sec"] if draw(st.booleans()) else ["", ""]
            lines.append(separator.join([*place, str(value), "", event, *tail]))
            expected.append(Expected(event, float(value), cpu))
    return Output("\n".join(lines) + "\n", tuple(expected))


@st.composite
def perf_stat_json(draw: st.DrawFn) -> Output:
    """6.0/6.1 with a bare metric, 6.12 with a string, later ones without or with "none"."""
    version = draw(st.sampled_from(["6.1", "6.12", "6.17", "comma"]))
    lines, expected = [], []
    for event in draw(st.lists(st.sampled_from(EVENTS), min_size=1, max_size=6, unique=True)):
        value, share = draw(counts), draw(running)
        number = f"{value}.000000"
        metric = {
            "6.1": ', "metric-value" : nan, "metric-unit" : "K/sec"',
            "6.12": ', "metric-value" : "1.500000", "metric-unit" : "K/sec"',
            "6.17": draw(
                st.sampled_from(["", ', "metric-value" : "none", "metric-unit" : "none"'])
            ),
            "comma": ', "metric-value" : 1,500000, "metric-unit" : "K/sec"',
        }[version]
        percent = f"{share:.2f}"
        if version == "comma":
            number, percent = number.replace(".", ","), percent.replace(".", ",")
        lines.append(
            f'{{"counter-value" : "{number}", "unit" : "", "event" : "{event}", '
            f'"event-runtime" : 1000, "pcnt-running" : {percent}{metric}}}'
        )
        expected.append(Expected(event, float(value)))
    return Output("\n".join(lines) + "\n", tuple(expected))


@st.composite
def perf_report(draw: st.DrawFn) -> Output:
    """With and without children and call graphs, one or two events."""
    children = draw(st.booleans())
    graph = draw(st.booleans())
    lines: list[str] = ["# To display the perf.data header info, please use --header"]
    expected = []
    for event in draw(st.sampled_from([("cycles:u",), ("cycles", "cpu_atom/cycles/")])):
        samples = draw(st.integers(1, 999))
        expected.append(Expected("samples", float(samples), event))
        lines += ["#", f"# Samples: {samples}  of event '{event}'",
                  f"# Event count (approx.): {samples * 1000}", "#"]  # fmt: skip
        functions = draw(names)
        width = max(map(len, functions)) + 4
        heads = ["Children", "    Self"] if children else ["Overhead"]
        titles = [*heads, "Command ", "Shared Object", f"{'Symbol':<{width}}"]
        lines.append("# " + "  ".join(titles))
        lines += ["# " + "  ".join("." * len(title) for title in titles), "#"]
        for function in functions:
            cells = [draw(percents) for _ in heads]
            shown = "  ".join(f"{cell:7.2f}%" for cell in cells)
            mark = draw(st.sampled_from([".", "k"]))
            lines.append(f"  {shown}  moe: w 1  libmoe.so.1    [{mark}] {function}")
            for title, cell in zip(heads, cells, strict=True):
                expected.append(Expected(title.strip(), cell / 100, f"{function} [libmoe.so.1]"))
            if graph:
                lines += [
                    "            |",
                    "            |--12.50%--callee",
                    "            |          leaf",
                ]
        lines.append("")
    return Output("\n".join(lines) + "\n", tuple(expected))


@st.composite
def cg_annotate(draw: st.DrawFn) -> Output:
    """Up to 3.20: one table, with and without percentages; 3.21 and later: groups by file."""
    new = draw(st.booleans())
    shares = draw(st.booleans())
    events = draw(st.sampled_from([("Ir",), ("Ir", "D1mr", "Bcm")]))

    def row(cells: Sequence[int], name: str) -> str:
        shown = (f"{cell:,}" + (" ( 1.25%)" if shares or new else "") for cell in cells)
        return " ".join(shown) + f"  {name}"

    lines = [f"Events recorded:  {' '.join(events)}", f"Events shown:     {' '.join(events)}", ""]
    totals = [draw(counts) for _ in events]
    expected = [
        Expected(event, float(total), "PROGRAM TOTALS")
        for event, total in zip(events, totals, strict=True)
    ]
    if new:
        lines = ["-- Metadata", *lines, "-- Summary"]
    lines += [row(totals, "PROGRAM TOTALS"), ""]
    if new:
        lines += ["-- File:function summary", f"< {row(totals, '/src/moe.cpp:')}"]
    for function in draw(names):
        cells = [draw(counts) for _ in events]
        name = function if new else f"/src/moe.cpp:{function}"
        lines.append(f"  {row(cells, f'   {name}' if new else name)}")
        expected += [
            Expected(event, float(cell), f"/src/moe.cpp:{function}")
            for event, cell in zip(events, cells, strict=True)
        ]
    return Output("\n".join(lines) + "\n", tuple(expected))


@st.composite
def callgrind_out(draw: st.DrawFn) -> Output:
    """Compressed names, relative positions, calls; zeros at the end left out."""
    functions = draw(names)
    lines = ["# callgrind format", "version: 1", "creator: callgrind-3.22.0", "cmd: ./moe",
             "positions: line", "events: Ir Dr", "", "fl=(1) moe.cpp"]  # fmt: skip
    expected, totals = [], [0, 0]
    for index, function in enumerate(functions, 1):
        lines.append(f"fn=({index}) {function}")
        ir, dr = draw(st.integers(1, 10**9)), draw(st.integers(0, 10**9))
        lines += [f"{index} {ir}", f"+2 {0} {dr}" if dr else "* 0"]
        if index > 1:
            lines += ["cfn=(1)", "calls=3 1", f"* {10**6} 7"]
        totals = [totals[0] + ir, totals[1] + dr]
        expected += [Expected("Ir", float(ir), f"{function} ("),
                     Expected("Dr", float(dr), f"{function} (")]  # fmt: skip
    lines += ["", f"totals: {totals[0]} {totals[1]}"]
    expected += [Expected("Ir", float(totals[0]), "total of the file"), Expected("complete", 1.0)]
    return Output("\n".join(lines) + "\n", tuple(expected))


@st.composite
def cachegrind_log(draw: st.DrawFn) -> Output:
    """The closing summary, with the program's own lines in between."""
    pid = draw(st.integers(1, 10**7))
    refs, misses = draw(counts), draw(counts)
    reads, writes = draw(counts), draw(counts)
    lines = [
        f"=={pid}== Cachegrind, a cache and branch-prediction profiler",
        "hello 12,345 from the program",
        f"=={pid}== I   refs:      {refs:,}",
        f"=={pid}== LLi misses:    {misses:,}",
        f"=={pid}== D   refs:      {reads + writes:,}  ({reads:,} rd   + {writes:,} wr)",
        f"=={pid}== D1  miss rate:  2.6% (  3.4%   +   0.2%  )",
    ]
    expected = (
        Expected("I_refs", float(refs)), Expected("LLi_misses", float(misses)),
        Expected("D_refs", float(reads + writes)), Expected("D_refs_rd", float(reads)),
        Expected("D_refs_wr", float(writes)),
    )  # fmt: skip
    return Output("\n".join(lines) + "\n", expected)


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
def perf_script(draw: st.DrawFn) -> Output:
    """Samples of two events with stacks, in the layouts of -F."""
    cpu = draw(st.sampled_from(["", "[003] "]))
    pid = draw(st.sampled_from(["", "77/"]))
    lines, sums = [], {}
    for number in range(draw(st.integers(1, 12))):
        event = draw(st.sampled_from(["cycles:u", "task-clock"]))
        function, period = draw(st.sampled_from(FUNCTIONS)), draw(st.integers(1, 10**9))
        lines += [f"moe w {pid}{78} {cpu}{number}.000001: {period:>10} {event}: ",
                  f"\t    4016{number:x}0 {function}+0x1f (/opt/moe (deleted))",
                  "\t    401000 main+0x2 (/opt/moe (deleted))", ""]  # fmt: skip
        scale = 1e-9 if event == "task-clock" else 1.0
        sums[event, function] = sums.get((event, function), 0.0) + period * scale
    expected = [Expected("samples", len(lines) / 4, "all events")]
    expected += [
        Expected(f"{event} self", value, f"{function} [/opt/moe (deleted)]")
        for (event, function), value in sums.items()
    ]
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
