"""The tables of cg_annotate and callgrind_annotate, of every version."""

from __future__ import annotations

import pytest

from moe_prof.collectors.valgrind_annotation import parse_annotation
from moe_prof.errors import InputError
from tests.collectors.fixture_files import recorded


def test_corpus_h01_totals():
    """Nine events, percentages left out."""
    totals = parse_annotation(recorded("corpus/H01.txt")).totals
    assert (totals["Ir"], totals["D1mr"]) == (1009442925, 9902929)


def test_corpus_h01_function():
    """The costs of a template with blanks and commas in its name."""
    found = parse_annotation(recorded("corpus/H01.txt")).function("gemm")
    assert found.costs["Ir"] == 707804400


def test_corpus_h01_cells_without_percentage():
    """A bare 0 is a zero, not a missing value."""
    found = parse_annotation(recorded("corpus/H01.txt")).function("gemm")
    assert found.costs["DLmr"] == 0


def test_corpus_h02_totals():
    """callgrind_annotate with one event."""
    found = parse_annotation(recorded("corpus/H02.txt"))
    assert (found.tool, found.totals) == ("callgrind_annotate", {"Ir": 1009441737})


def test_corpus_h02_names():
    """Blanks and commas stay in the name, the object in brackets too."""
    name = parse_annotation(recorded("corpus/H02.txt")).functions[1].name
    assert name == (
        "/usr/include/c++/12/bits/stl_vector.h:std::vector<long, std::allocator<long> >::operator[]"
        "(unsigned long) const [/build/busy]"
    )


def test_a_dot_is_missing():
    """cg_annotate's dots are None, never 0."""
    text = "Events shown:  Ir Bi\n\n9 (100.0%) 2 (100.0%)  PROGRAM TOTALS\n\n9 (100.0%) .  a.c:f\n"
    assert parse_annotation(text).functions[0].costs == {"Ir": 9, "Bi": None}


def test_a_function_that_is_not_listed_is_an_error():
    """Below the threshold a function is not in the text, and no zero is made up."""
    with pytest.raises(InputError, match="nowhere"):
        parse_annotation(recorded("corpus/H01.txt")).function("nowhere")


@pytest.mark.parametrize("text", ["", "hello", "Events recorded:  Ir\n", "==1== \n"])
def test_garbage_is_one_clear_error(text):
    """Other text is refused."""
    with pytest.raises(InputError):
        parse_annotation(text)


def test_a_table_without_totals_keeps_its_functions():
    """What was cut off is said; what is there is read."""
    found = parse_annotation("Events shown:  Ir\n\n9 (90.0%)  a.c:f\n")
    assert (found.totals, found.functions[0].costs, found.warnings) == (
        {},
        {"Ir": 9},
        ("it has no PROGRAM TOTALS: it was cut off",),
    )


GROUPED = """\
--------------------------------------------------------------------------------
-- Metadata
--------------------------------------------------------------------------------
Invocation:       /usr/bin/cg_annotate cg.out
Command:          ./moe 1 2
Events recorded:  Ir Bc
Events shown:     Ir Bc
Event sort order: Ir Bc
Threshold:        0.1%
Annotation:       on

--------------------------------------------------------------------------------
-- Summary
--------------------------------------------------------------------------------
Ir_____________ Bc___________

52,100 (100.0%) 310 (100.0%)  PROGRAM TOTALS

--------------------------------------------------------------------------------
-- File:function summary
--------------------------------------------------------------------------------
  Ir_____________________ Bc____________________  file:function

< 40,000 (76.8%, 76.8%) 300 (96.8%, 96.8%)  /src/moe.cpp:
  30,000 (57.6%)        100 (32.3%)           moe::gemm<int, 8>(int)
  10,000 (19.2%)        200 (64.5%)           route

< 12,100 (23.2%, 100.0%)  10  (3.2%, 100.0%)  ./string/memset.S:
  12,100 (23.2%)           10  (3.2%)           memset

--------------------------------------------------------------------------------
-- Function:file summary
--------------------------------------------------------------------------------
  Ir_____________________ Bc____________________  function:file

> 30,000 (57.6%, 57.6%) 100 (32.3%, 32.3%)  moe::gemm<int, 8>(int):/src/moe.cpp
"""


def test_groups_of_new_versions():
    """Functions carry their file, sums of a group are marked, the totals are the program's."""
    found = parse_annotation(GROUPED)
    functions = {(f.name, f.group): f.costs["Ir"] for f in found.functions}
    assert (found.totals, found.command, functions) == (
        {"Ir": 52100, "Bc": 310},
        "./moe 1 2",
        {
            ("/src/moe.cpp", True): 40000,
            ("/src/moe.cpp:moe::gemm<int, 8>(int)", False): 30000,
            ("/src/moe.cpp:route", False): 10000,
            ("./string/memset.S", True): 12100,
            ("./string/memset.S:memset", False): 12100,
            ("moe::gemm<int, 8>(int):/src/moe.cpp", True): 30000,
        },
    )


def test_lines_that_a_page_wrapped():
    """Counts that go on in the next line belong together."""
    text = "Events shown:  Ir Bc Bi\n\n9,000 5\n  7  PROGRAM TOTALS\n\n8 4\n  3  a.c:f\n"
    found = parse_annotation(text)
    assert (found.totals, found.functions[0].name, found.functions[0].costs["Bi"]) == (
        {"Ir": 9000, "Bc": 5, "Bi": 7},
        "a.c:f",
        3,
    )


def test_callers_and_callees_of_a_tree_are_no_functions():
    """With --tree=both only the line with the star has the function's own cost."""
    text = (
        "Profile data file 'cl.out' (creator: callgrind-3.22.0)\nEvents shown:  Ir\n\n"
        "90 (100.0%)  PROGRAM TOTALS\n\n90 (100.0%)  < main.c:main (1x) [moe]\n"
        "80 (88.9%)  * moe.c:gemm [moe]\n10 (11.1%)  >   libc.c:memset (3x) [libc]\n"
    )
    found = parse_annotation(text)
    assert [(f.name, f.costs["Ir"]) for f in found.functions] == [("moe.c:gemm [moe]", 80)]
