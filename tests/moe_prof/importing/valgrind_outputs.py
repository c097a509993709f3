"""Outputs of valgrind's profilers and annotators, made from known values."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from tests.moe_prof.importing.written import (
    Expected,
    Output,
    counts,
    names,
)


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
