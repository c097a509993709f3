"""Any text: readers of profiles answer, or refuse in one line; they never fail otherwise."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moe_prof.collectors import gprof_format, symbols, vtune_csv
from moe_prof.collectors.perf_script import read_samples
from moe_prof.collectors.stacks import parse_folded
from moe_prof.errors import InputError
from tests.collectors.fixture_files import recorded


def script(text):
    """Samples of perf script, complaints unheard."""
    return list(read_samples(text.splitlines(keepends=True), lambda *_: None))


READERS = {
    "script": (script, "corpus/E01.txt"),
    "gprof": (gprof_format.parse, "corpus/F01.txt"),
    "vtune": (vtune_csv.parse_table, "corpus/R04.txt"),
    "summary": (vtune_csv.parse_summary, "vtune/summary.tsv"),
    "folded": (parse_folded, "corpus/E01.txt"),
    "symbols": (symbols.parse, "corpus/E01.txt"),
}
WORDS = st.sampled_from(
    ["9" * 5000, "nan", "-", "\t", '"', "\0", "<cycle 1>", "[1]", "0x", "(", ")", ":", "1/0", "\r"]
)


def answers(read, text):
    """The reader answers, or refuses by the one error that it may raise."""
    with contextlib.suppress(InputError):
        read(text)


@pytest.mark.parametrize("name", READERS)
@given(text=st.text(max_size=300))
def test_any_text(name, text):
    """Text of no kind."""
    answers(READERS[name][0], text)


@pytest.mark.parametrize("name", READERS)
@given(data=st.data())
def test_damaged_files(name, data):
    """Real files, cut off and with foreign words in the middle."""
    read, file = READERS[name]
    text = recorded(file)[:6000]
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.integers(0, 40))
        text = text[:at] + data.draw(WORDS | st.text(max_size=8)) + text[at + cut :]
    answers(read, text[: data.draw(st.integers(0, len(text)))])
