"""Lines and inlined functions on stacks, and source texts."""

from __future__ import annotations

import pytest

from moe_prof.collectors.stacks import Frame, Stack
from moe_prof.collectors.symbols import Location
from moe_prof.hotspots import places
from moe_prof.kernels.build import SOURCE_DIR
from tests.moe_prof.hotspots.stack_making import profile

INTRINSIC = "/usr/lib/gcc/x86_64-linux-gnu/12/include/avx2intrin.h"
LOCATIONS = {
    ("/b", 0x10): (Location("_mm_add", INTRINSIC, 9), Location("tile", "/k/t.h", 51),
                   Location("gemm", "/k/g.cpp", 6)),
    ("/b", 0x1F): (Location("main", "/k/m.cpp", 3),),
    ("/b", 0x20): (Location("main", "/k/m.cpp", 4),),
}  # fmt: skip


@pytest.fixture
def asked(monkeypatch):
    """addr2line's answers, and what it was asked for."""
    wanted = {}

    def locate(addresses, folder):
        wanted.update(addresses)
        return LOCATIONS

    monkeypatch.setattr(places, "locate", locate)
    return wanted


FRAMES = (Frame("main", "/b", address=0x20), Frame("gemm", "/b", address=0x10))


@pytest.mark.parametrize(("return_addresses", "caller"), [(True, 0x1F), (False, 0x20)])
def test_callers_lie_before_their_return_address(asked, tmp_path, return_addresses, caller):
    """With frame pointers a caller's address is behind the call; the cost's own is not."""
    places.with_places(profile(Stack(FRAMES, 1.0)), tmp_path, return_addresses=return_addresses)
    assert asked == {"/b": {caller, 0x10}}


def test_inlined_functions_are_added(asked, tmp_path):
    """They stand inside their function; the line to read is outside the intrinsics' header."""
    (found,) = places.with_places(
        profile(Stack(FRAMES, 1.0)), tmp_path, return_addresses=False
    ).stacks
    assert [(f.function, f.line, f.inlined) for f in found.frames] == [
        ("main", 4, False), ("gemm", 6, False), ("tile", 51, True), ("_mm_add", 9, True),
    ]  # fmt: skip
    assert places.leaf_place(found) == ("/k/t.h", 51)
    assert places.leaf_function(found).function == "gemm"


def test_source_of_kernels_built_elsewhere():
    """The kernels' own sources are found by their place below the kernels' folder."""
    first = (SOURCE_DIR / "cpp" / "step.h").read_text(encoding="utf-8").splitlines()[0]
    assert places.source_text("/elsewhere/kernels/cpp/step.h", 1) == first.strip()


@pytest.mark.parametrize(("file", "line"), [("/nowhere/a.c", 1), ("", 3), ("/k/a.c", None)])
def test_sources_that_are_not_here(file, line):
    """No text, no error."""
    assert places.source_text(file, line) == ""


def test_lines_beyond_the_source(tmp_path):
    """A source that has changed since may be shorter."""
    path = tmp_path / "a.c"
    path.write_text("one\n")
    assert (places.source_text(str(path), 1), places.source_text(str(path), 9)) == ("one", "")
