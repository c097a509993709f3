"""Outputs of perf stat, report and script, made from known values."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.moe_prof.importing.written import (
    EVENTS,
    FUNCTIONS,
    LOCALES,
    Expected,
    Output,
    counts,
    names,
    percents,
    running,
)


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
