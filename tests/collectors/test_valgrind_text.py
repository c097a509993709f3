"""valgrind's closing summary on stderr."""

from __future__ import annotations

import pytest

from moe_prof.collectors.valgrind_text import parse_summaries, parse_summary
from moe_prof.errors import InputError
from tests.collectors.fixture_files import recorded


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


@pytest.mark.parametrize("text", ["", "hello", "Events recorded:  Ir\n", "==1== \n"])
def test_garbage_is_one_clear_error(text):
    """Other text is refused."""
    with pytest.raises(InputError):
        parse_summary(text)


def test_processes_are_kept_apart():
    """Two processes of one log, with the program's own lines in between."""
    log = (
        "==7== Cachegrind, a cache\n==7== Command: ./a\nhello\n==8== I   refs:      12,34,567\n"
        "==7== I   refs:      1\u202f234\n"
    )
    found = parse_summaries(enumerate(log.splitlines(), 1))
    assert [(one.pid, one.command, one.counts) for one in found if one.pid] == [
        ("7", "./a", {"I_refs": 1234}),
        ("8", "", {"I_refs": 1234567}),
    ]


def test_callgrinds_own_events():
    """The line of collected counts follows the line of event names."""
    found = parse_summaries([(1, "==3== Events    : Ir Dr"), (2, "==3== Collected : 40 2")])
    assert found[0].counts == {"Ir": 40, "Dr": 2}
