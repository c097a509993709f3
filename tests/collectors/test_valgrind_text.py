"""valgrind's closing summary and the annotators' tables."""

from __future__ import annotations

import pytest

from moe_prof.collectors.valgrind_annotation import parse_annotation
from moe_prof.collectors.valgrind_text import parse_summary
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


def test_corpus_h07_misses():
    """The ==pid== prefix and the brackets."""
    found = parse_summary(recorded("corpus/H07.txt"))
    assert (found["D1_misses"], found["LL_refs"]) == (10070874, 10072444)


def test_corpus_h07_reads_and_writes():
    """Both parts in the brackets have their own names."""
    found = parse_summary(recorded("corpus/H07.txt"))
    assert found["D1_misses_rd"] + found["D1_misses_wr"] == found["D1_misses"]


def test_callgrinds_summary_has_branches():
    """Branches and mispredictions, conditional and indirect."""
    found = parse_summary(recorded("callgrind/roi.stderr"))
    assert found["Branches_cond"] == 40101


@pytest.mark.parametrize("read", [parse_summary, parse_annotation])
@pytest.mark.parametrize("text", ["", "hello", "Events recorded:  Ir\n", "==1== \n"])
def test_garbage_is_one_clear_error(read, text):
    """Other text is refused."""
    with pytest.raises(InputError):
        read(text)


def test_a_table_without_totals_keeps_its_functions():
    """What was cut off is said; what is there is read."""
    found = parse_annotation("Events shown:  Ir\n\n9 (90.0%)  a.c:f\n")
    assert (found.totals, found.functions[0].costs, found.warnings) == (
        {},
        {"Ir": 9},
        ("it has no PROGRAM TOTALS: it was cut off",),
    )
