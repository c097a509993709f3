"""Places that breakpoints count: chosen near the hot loops, and read from perf's table."""

import shutil

import pytest

from moe_prof.collectors import callgrind_format
from moe_prof.collectors.hotloop import HotLoop
from moe_prof.errors import UnavailableError
from moe_prof.program import landmarks
from moe_prof.program.landmarks import Landmark, choose, counts, ratios
from moe_prof.program.whole import Factors, factors_of

HOT = HotLoop("step", "/p", 0x40, 0x48, True, (), 10**6, 0.9, ())
OTHER = HotLoop("sort", "/lib/libc.so.6", 0x40, 0x48, True, (), 10**6, 0.1, ())
TEXT = """\
# callgrind format
positions: instr
events: Ir
ob=/p
fl=f.c
fn=main
0x10 1
0x14 5000
fn=step
0x20 700
0x30 900
0x40 1000000
0x48 1000000
0x60 901
0x70 3000000
ob=/lib/libc.so.6
fn=sort
0x40 1000000
"""
PROFILE = callgrind_format.parse(TEXT)


def test_places_before_and_after_a_loop():
    """The nearest of its function that are executed neither once nor in every iteration."""
    found = choose(PROFILE, [HOT], "/p", most_seen=2000)
    assert found == {0: (Landmark(0x30, 900), Landmark(0x60, 901))}


def test_a_place_of_the_program_for_a_loop_of_a_library():
    """Where libraries lie in memory is not known."""
    marks = (Landmark(0x20, 700), Landmark(0x30, 900), Landmark(0x60, 901), Landmark(0x14, 5000))
    assert choose(PROFILE, [OTHER], "/p", most_seen=9000) == {0: marks}
    assert choose(PROFILE, [], "/p", most_seen=9000) == {0: marks}
    assert choose(PROFILE, [OTHER], "/p", most_seen=6000) == {0: marks[:3]}
    assert choose(PROFILE, [OTHER], "/other", most_seen=6000) == {}


def test_hits_that_the_time_left_allows():
    """Each costs some microseconds, and the run itself its time."""
    assert landmarks.affordable_hits(14.0, 2.0) == pytest.approx(10.0 / landmarks.HIT_S)
    assert landmarks.affordable_hits(600.0, 2.0) == landmarks.MOST_HITS
    assert landmarks.affordable_hits(3.0, 2.0) == 0


def test_ratio_of_the_place_that_goes_on():
    """What ran no more often was over when the simulation was cut off."""
    marks = {0: (Landmark(0x30, 100), Landmark(0x60, 50)), 1: (Landmark(0x80, 10),)}
    assert ratios(marks, {0x30: 100, 0x60: 400, 0x80: 10}) == {0: 8.0}
    assert ratios(marks, {}) == {}


def test_factors_of_loops_and_of_the_rest():
    """A loop without a ratio takes the first one's; other code takes the mean."""
    assert factors_of({}, [HOT]) is None
    assert factors_of({0: 8.0}, []) == Factors((), 8.0)
    assert factors_of({0: 8.0}, [HOT, OTHER]) == Factors((8.0, 8.0), 0.0)


def test_reading_counts():
    """perf's table with commas; what was not counted is left out."""
    text = (
        "200,,mem:0x555555555148:x:u,1000,100.00,,\n"
        "<not supported>,,mem:0x555555555150:x:u,0,100.00,,\n"
    )
    assert counts(text) == {0x555555555148: 200}


def test_only_programs_have_places(tmp_path):
    """A script is no ELF file."""
    if any(shutil.which(name) is None for name in ("perf", "setarch")):
        pytest.skip("perf and setarch are needed")
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    with pytest.raises(UnavailableError, match="no ELF program"):
        landmarks.count([str(script)], script, [Landmark(1, 1)], tmp_path, timeout_s=5)
