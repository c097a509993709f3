"""Samples of perf script: recorded ones, all header forms, damage, streaming."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from moe_prof.collectors.perf_script import ScriptFrame, ScriptSample, read_samples

CORPUS = Path(__file__).parents[1] / "fixtures" / "corpus"


def read(text: str) -> tuple[list[ScriptSample], list[tuple[int, str]]]:
    """All samples and complaints of a text."""
    complaints: list[tuple[int, str]] = []
    samples = list(
        read_samples(text.splitlines(keepends=True), lambda *what: complaints.append(what))
    )
    return samples, complaints


def test_events_of_a_recorded_script_stay_apart() -> None:
    """Page faults and clock ticks in one file are told apart by their event."""
    samples, complaints = read((CORPUS / "E01.txt").read_text(encoding="utf-8"))
    counts = {event: sum(s.event == event for s in samples) for event in {s.event for s in samples}}
    assert (counts, complaints) == ({"page-faults:u": 7, "task-clock:u": 5}, [])


HEADERS = [
    ("busy 301  18.5:  250000 cycles:u:", ("busy", None, 301, None, 18.5, 250000, "cycles:u")),
    ("a b 301/302 [003] 1.25: 9 cpu-clock:", ("a b", 301, 302, 3, 1.25, 9, "cpu-clock")),
    ("x:y 1/2 1.0: cycles:", ("x:y", 1, 2, None, 1.0, None, "cycles")),
    ("   b 7 [000] 1.0: 5 cpu_core/cycles/u:", ("b", None, 7, 0, 1.0, 5, "cpu_core/cycles/u")),
    ("foo 12 345/346 2.0: 1 r003c:", ("foo 12", 345, 346, None, 2.0, 1, "r003c")),
    ("busy 7 1 cycles:", ("busy", None, 7, None, None, 1, "cycles")),
    ("busy 7 cycles:", ("busy", None, 7, None, None, None, "cycles")),
    ("swapper 0 [001] d.h1. 3.5: 8 cycles:", ("swapper", None, 0, 1, 3.5, 8, "cycles")),
    ("a 1 [0] 2.0: sched:sched_switch: prev_comm=a prev_pid=1 ==> next_comm=b",
     ("a", None, 1, 0, 2.0, None, "sched:sched_switch")),
]  # fmt: skip


@pytest.mark.parametrize(("line", "expected"), HEADERS)
def test_header_forms(line: str, expected: tuple[object, ...]) -> None:
    """Each form of a header gives its fields, absent ones as None."""
    samples, complaints = read(f"{line}\n\t  1f00 f+0x1 (/a)\n\n")
    (s,) = samples
    assert (s.comm, s.pid, s.tid, s.cpu, s.time_s, s.period, s.event) == expected
    assert complaints == []
    assert len(s.frames) == 1


FRAMES = [
    ("1f ns::f<int, 4>(char const*)+0x10 (/a b/lib.so)",
     ScriptFrame("ns::f<int, 4>(char const*)", 16, "/a b/lib.so", 0x1F)),
    ("1f f (inlined)", ScriptFrame("f", None, None, 0x1F, inlined=True)),
    ("1f [unknown] ([unknown])", ScriptFrame(None, None, None, 0x1F)),
    ("1f f+0x2 (/lib.so (deleted))", ScriptFrame("f", 2, "/lib.so (deleted)", 0x1F)),
    ("1f f ([kernel.kallsyms])", ScriptFrame("f", None, "[kernel.kallsyms]", 0x1F)),
    ("1f operator()+0x3 (/a)", ScriptFrame("operator()", 3, "/a", 0x1F)),
    ("1f", ScriptFrame(None, None, None, 0x1F)),
]  # fmt: skip


@pytest.mark.parametrize(("line", "expected"), FRAMES)
def test_frame_forms(line: str, expected: ScriptFrame) -> None:
    """Symbols with blanks, files with blanks and parentheses, inlined and unknown frames."""
    samples, complaints = read(f"a 1 1.0: 1 cycles:\n\t        {line}\n\n")
    assert ([s.frames for s in samples], complaints) == ([(expected,)], [])


def test_sample_on_one_line() -> None:
    """Without call stacks the instruction stands behind the event."""
    text = "a 1 1.0: 1 cycles:      1f f+0x1 (/a)\na 1 2.0: 1 cycles:      2f g+0x1 (/a)\n"
    samples, complaints = read(text)
    assert [s.frames[0].symbol for s in samples] == ["f", "g"]
    assert complaints == []


def test_source_lines_and_records_are_no_damage() -> None:
    """Lines of -F +srcline and of --show-mmap-events belong to a sound file."""
    text = (
        "# captured on: today\n"
        "a 1 0.0: PERF_RECORD_MMAP2 1/1: [0x1(0x2) @ 0 fd:01 1 1]: r-xp /a\n"
        "a 1 1.0: 1 cycles:\n\t 1f f+0x1 (/a)\n  kernel.cpp:51\n\t 2f g (/a)\n\n"
    )
    samples, complaints = read(text)
    assert [[f.symbol for f in s.frames] for s in samples] == [["f", "g"]]
    assert complaints == []


def test_damage_is_told_with_its_line_and_drops_nothing_else() -> None:
    """Foreign lines between and within samples are named; all samples are read."""
    text = (
        "a 1 1.0: 1 cycles:\n\t 1f f (/a)\n\n"
        "addr2line: broken\n"
        "a 1 2.0: 1 cycles:\n\t zz not hex\n\t 1f f (/a)\n\n"
        "\t 3f lost (/a)\n\n"
        "a 1 3.0: 1 cycles:\n\t 1f f (/a)\n"
    )
    samples, complaints = read(text)
    assert [s.time_s for s in samples] == [1.0, 2.0, 3.0]
    assert [len(s.frames) for s in samples] == [1, 1, 1]
    assert [number for number, _ in complaints] == [4, 6, 9]


def test_file_cut_off_in_a_frame() -> None:
    """The half of a frame at the end of a cut file is named and not taken for a function."""
    samples, complaints = read("a 1 1.0: 1 cycles:\n\t 1f f (/a)\n\t 2f long_na")
    assert [f.symbol for s in samples for f in s.frames] == ["f"]
    assert complaints == [(3, "the file ends in the middle of a line: '2f long_na'")]


def test_samples_are_streamed() -> None:
    """An endless input gives its first samples: nothing waits for the end."""
    lines = itertools.cycle(["a 1 1.0: 1 cycles:\n", "\t 1f f (/a)\n", "\n"])
    samples = read_samples(lines, lambda *_: None)
    assert [s.line for s in itertools.islice(samples, 3)] == [1, 4, 7]


def test_hostile_line_takes_no_time() -> None:
    """A line of a million blanks and digits is turned down without searching it."""
    samples, complaints = read("a" + " 1" * 500_000 + "\n")
    assert (samples, len(complaints)) == ([], 1)
