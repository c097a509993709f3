"""Every export conserves the sum of weights and has the structure that its readers expect."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from moe_prof.collectors import callgrind_format
from moe_prof.collectors.stacks import Frame, Profile, Stack, parse_folded
from moe_prof.export import FORMATS
from tests.moe_prof.hotspots.stack_making import profile, stack

HEADER = "/usr/lib/gcc/x86_64-linux-gnu/12/include/avx2intrin.h"
TIMED = profile(
    stack("main@/x/b:/k/m.c:3", "f<int, 4>(char const*)@/x/b:/k/f.c:7", weight=0.25, thread="0"),
    stack("main@/x/b:/k/m.c:3", "g;h@lib.so", weight=0.5, thread="0"),
    stack("main@/x/b:/k/m.c:4", "r@/x/b", "r@/x/b", weight=0.125, thread="1"),
    Stack((Frame("f", "/x/b", "/k/f.c", 7), Frame("_mm_add", "/x/b", HEADER, 9, inlined=True)),
          0.0625, 1, "1"),
    Stack((), 0.0625, 1, "1"),
)  # fmt: skip
COUNTED = profile(stack("a@b", "c@b", weight=70, phase="down"), stack("a@b", weight=30),
                  unit="instructions")  # fmt: skip
EMPTY = profile()


def folded_sum(text: str) -> float:
    """Microseconds, or counts."""
    return sum(float(line.rpartition(" ")[2]) for line in text.splitlines())


def speedscope_sum(text: str) -> float:
    """Weights of all profiles."""
    return sum(sum(p["weights"]) for p in json.loads(text)["profiles"])


def firefox_sum(text: str) -> float:
    """Milliseconds, or counts."""
    return sum(sum(t["samples"]["weight"]) for t in json.loads(text)["threads"])


def callgrind_sum(text: str) -> float:
    """The sum of self costs that a reader finds."""
    return sum(callgrind_format.parse(text).body.values())


def hatchet_sum(text: str) -> float:
    """Inclusive costs of the roots."""
    return sum(
        value
        for root in json.loads(text)
        for name, value in root["metrics"].items()
        if name.endswith("(inc)")
    )


SUMS: dict[str, tuple[Callable[[str], float], float]] = {
    "folded": (folded_sum, 1e6),
    "speedscope": (speedscope_sum, 1),
    "firefox": (firefox_sum, 1e3),
    "callgrind": (callgrind_sum, 1e9),
    "hatchet": (hatchet_sum, 1),
}


def test_every_format_is_tested():
    """A new row of the table needs a reader here."""
    assert set(SUMS) == set(FORMATS)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("case", ["seconds", "counts", "nothing"])
def test_sums_are_conserved(name, case):
    """All weights arrive, in the unit of the format."""
    found: Profile = {"seconds": TIMED, "counts": COUNTED, "nothing": EMPTY}[case]
    read, scale = SUMS[name]
    factor = scale if case == "seconds" else 1
    assert read(FORMATS[name].write(found, "title")) == pytest.approx(found.total * factor)


def test_folded_comes_back_by_thread():
    """Threads and functions survive; compiler's intrinsics are the function that uses them."""
    again = parse_folded(FORMATS["folded"].write(TIMED, ""))
    assert again.threads == ("0", "1")
    assert {s.frames[-1].function for s in again.stacks} == {
        "f<int, 4>(char const*)", "g:h", "r", "f", "[unknown]",
    }  # fmt: skip


def test_speedscope_structure():
    """Indexes lie in the table, samples and weights pair up, the axis ends at their sum."""
    document = json.loads(FORMATS["speedscope"].write(TIMED, "S3 packed"))
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = document["shared"]["frames"]
    assert [p["name"] for p in document["profiles"]] == ["thread 0", "thread 1"]
    for found in document["profiles"]:
        assert (found["type"], found["unit"]) == ("sampled", "seconds")
        assert len(found["samples"]) == len(found["weights"])
        assert found["endValue"] == sum(found["weights"])
        assert all(0 <= index < len(frames) for sample in found["samples"] for index in sample)
    counted = json.loads(FORMATS["speedscope"].write(COUNTED, ""))
    assert counted["profiles"][0]["unit"] == "none"


def test_firefox_structure():
    """Every table has its length, every index lies in its table, stacks lead to their callers."""
    document = json.loads(FORMATS["firefox"].write(TIMED, "S3 packed"))
    assert document["meta"]["preprocessedProfileVersion"] == 47
    for thread in document["threads"]:
        for name in ("samples", "stackTable", "frameTable", "funcTable", "resourceTable"):
            table = thread[name]
            columns = [column for column in table.values() if isinstance(column, list)]
            assert {len(column) for column in columns} <= {table["length"]}
        stacks, functions = thread["stackTable"], thread["funcTable"]
        assert all(p is None or p < i for i, p in enumerate(stacks["prefix"]))
        assert all(f < thread["frameTable"]["length"] for f in stacks["frame"])
        assert all(f < functions["length"] for f in thread["frameTable"]["func"])
        assert all(s < len(thread["stringArray"]) for s in functions["name"])
        assert all(s is None or s < stacks["length"] for s in thread["samples"]["stack"])
        assert thread["samples"]["time"] == sorted(thread["samples"]["time"])


def test_callgrind_comes_back():
    """Functions, calls, lines and objects as written; recursion adds nothing twice."""
    again = callgrind_format.parse(FORMATS["callgrind"].write(TIMED, "S3\npacked"))
    assert again.complete
    assert again.events == ("Nanoseconds",)
    own = {key.name: cost[0] for key, cost in again.functions.items()}
    assert own["f<int, 4>(char const*)"] == 250_000_000
    assert own["r"] == 125_000_000
    inclusive = {key.name: value for key, value in again.inclusive_cost("Nanoseconds").items()}
    assert inclusive["main"] == 875_000_000
    lines = {site.line for site in again.sites if site.function.name.startswith("f<")}
    assert lines == {7}


def test_hatchet_structure():
    """Inclusive costs are own costs and those of the children."""

    def check(nodes, metric):
        for node in nodes:
            assert set(node) == {"frame", "metrics", "children"}
            below = sum(child["metrics"][f"{metric} (inc)"] for child in node["children"])
            assert node["metrics"][f"{metric} (inc)"] == node["metrics"][metric] + below
            check(node["children"], metric)

    check(json.loads(FORMATS["hatchet"].write(TIMED, "")), "time")
    check(json.loads(FORMATS["hatchet"].write(COUNTED, "")), "instructions")


@pytest.mark.filterwarnings("ignore")
def test_hatchet_reads_it():
    """The library itself finds all of the time."""
    hatchet = pytest.importorskip("hatchet", reason="llnl-hatchet is not installed (calltree)")
    frame = hatchet.GraphFrame.from_literal(json.loads(FORMATS["hatchet"].write(TIMED, "")))
    assert frame.dataframe["time"].sum() == pytest.approx(TIMED.total)
