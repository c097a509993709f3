"""callgrind.out and cachegrind.out: names, positions, calls, parts, and files that were cut off."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moe_prof.collectors.callgrind_format import CallgrindProfile, FunctionKey, parse
from moe_prof.errors import InputError
from tests.collectors.fixture_files import recorded

ROI = "callgrind/roi.out"
THREADS = "callgrind/threads.out"
DOT = FunctionKey("/build/roi", "/build/roi.c", "dot")
HEAD = "version: 1\npositions: instr line\nevents: Ir Dr\nob=(1) /o\nfl=(1) f.c\nfn=(1) f\n"


@pytest.fixture
def roi() -> CallgrindProfile:
    """A recorded profile: 10 forwards of 4 dot products of length 1000."""
    return parse(recorded(ROI))


def small(body: str) -> CallgrindProfile:
    """A profile with one function and the given cost lines."""
    return parse(HEAD + body)


def test_totals_are_the_files_own(roi):
    """Counts of the recorded run, trailing zeros left out in the file."""
    assert roi.totals == {
        "Ir": 280746, "Dr": 80052, "Dw": 41, "I1mr": 2, "D1mr": 0, "D1mw": 0, "ILmr": 2,
        "DLmr": 0, "DLmw": 0, "Bc": 40101, "Bcm": 71, "Bi": 0, "Bim": 0,
    }  # fmt: skip


def test_a_whole_file_is_complete(roi):
    """The lines add up to the totals."""
    assert (roi.complete, roi.incomplete_reason, roi.body) == (True, "", roi.totals)


def test_self_cost_leaves_callees_out(roi):
    """280320 instructions in dot, 426 in main: those of the two calls= lines are not main's own."""
    names = {key.name: cost for key, cost in roi.self_cost("Ir").items()}
    assert names == {"dot": 280320, "main": 426}


def test_inclusive_cost_takes_callees_in(roi):
    """main holds everything."""
    names = {key.name: cost for key, cost in roi.inclusive_cost("Ir").items()}
    assert names == {"main": 280746, "dot": 280320}


def test_calls_are_counted(roi):
    """Two call sites, 10 and 30 calls, are one edge."""
    assert [(c.caller.name, c.callee.name, c.count) for c in roi.calls] == [("main", "dot", 40)]


def test_instructions_add_up_over_blocks(roi):
    """The loop's first instruction is in two basic blocks: 40 + 39960 executions."""
    cost = roi.instructions[("/build/roi", 0x1550)].cost
    assert (cost[0], cost[1]) == (40000, 40000)


def test_an_instruction_knows_its_function(roi):
    """Addresses lead back to the function."""
    assert roi.instructions[("/build/roi", 0x1567)].function == DOT


def test_the_header_is_kept(roi):
    """The simulated cache is part of the result."""
    assert roi.header["D1 cache"] == "32768 B, 64 B, 8-way associative"


def test_threads_are_added_up():
    """The totals of the two parts in one file make one sum."""
    profile = parse(recorded(THREADS))
    totals = [
        int(line.split()[1])
        for line in recorded(THREADS).splitlines()
        if line.startswith("totals:")
    ]
    assert (profile.parts, profile.totals["Ir"]) == (2, sum(totals))


def test_jump_lines_cost_nothing():
    """A file with --collect-jumps adds up to its totals."""
    assert parse(recorded(THREADS)).complete


def test_inlined_code_belongs_to_the_function_around_it():
    """fi= and fe= change the file, not the function."""
    profile = small("1 1 5\nfi=(2) inlined.h\n2 9 7\nfe=(1)\n3 2 1\ntotals: 13\n")
    assert {k.file: c[0] for k, c in profile.functions.items()} == {"f.c": 13}


def test_recursion_is_not_added_to_itself():
    """A function that calls itself has its own cost as inclusive cost."""
    profile = small("1 1 5\ncfn=(1)\ncalls=3 1 1\n1 1 50\ntotals: 5\n")
    assert list(profile.inclusive_cost("Ir").values()) == [5]


def test_a_callee_without_object_is_in_the_callers():
    """cob= holds for one call only."""
    profile = small(
        "cob=(2) /lib\ncfi=(9) l.c\ncfn=(2) g\ncalls=1 0 \n1 1 4\n"
        "cfn=(3) h\ncalls=1 0 \n1 1 6\n1 1 2\ntotals: 2\n"
    )
    assert [(c.callee.object, c.callee.file, c.callee.name) for c in profile.calls] == [
        ("/lib", "l.c", "g"),
        ("/o", "f.c", "h"),
    ]


def test_a_relative_position_follows_the_line_before():
    """+, - and * refer to the last line, in hexadecimal too."""
    profile = small("0x10 5 1\n+2 * 1\n-0x1 +3 1\n* -8 1\ntotals: 4\n")
    assert sorted(address for _, address in profile.instructions) == [0x10, 0x11, 0x12]


@given(
    st.lists(
        st.tuples(st.integers(0, 1 << 40), st.integers(0, 9999), st.integers(1, 1 << 40)),
        min_size=1,
        max_size=30,
    ),
    st.data(),
)
def test_compressed_positions_read_like_absolute_ones(costs, data):
    """Whatever form each position is written in, the addresses and sums are the same."""
    absolute, compressed = [], []
    last = (0, 0)
    for address, line, count in costs:
        absolute.append(f"{address:#x} {line} {count}")
        words = [
            data.draw(st.sampled_from(forms))
            for forms in (_forms(address, last[0]), _forms(line, last[1]))
        ]
        compressed.append(f"{' '.join(words)} {count}")
        last = (address, line)
    total = f"\ntotals: {sum(count for _, _, count in costs)}\n"
    plain = small("\n".join(absolute) + total)
    short = small("\n".join(compressed) + total)
    assert short.instructions == plain.instructions
    assert short.complete


def _forms(value: int, last: int) -> list[str]:
    step = value - last
    forms = [str(value), hex(value), f"{step:+d}", f"{'-' if step < 0 else '+'}{abs(step):#x}"]
    return [*forms, "*"] if step == 0 else forms


def test_names_survive_blanks_and_brackets():
    """A C++ signature is one name, and is found again by its number."""
    name = "long moe::gemm<long, 16>(std::vector<long> const&, int) [clone .constprop.0]"
    profile = small(f"fn=(7) {name}\n1 1 2\nfn=(1)\n2 1 1\nfn=(7)\n3 1 2\ntotals: 5\n")
    assert {k.name: c[0] for k, c in profile.functions.items()} == {name: 4, "f": 1}


def test_names_without_compression_are_read():
    """--compress-strings=no writes each name out; a leading bracket is part of the name."""
    text = "events: Ir\nfl=a.c\nfn=(below main)\n3 7\ntotals: 7\n"
    assert [key.name for key in parse(text).functions] == ["(below main)"]


@pytest.mark.parametrize("share", [0.3, 0.5, 0.7, 0.9, 0.97])
def test_a_cut_off_file_is_incomplete(share):
    """At whatever place it ends, the totals are missing."""
    text = recorded(ROI)
    assert not parse(text[: int(len(text) * share)]).complete


def test_a_file_cut_within_a_line_says_so():
    """Half a name line at the end is no error, but no complete file either."""
    assert small("1 1 5\nca").incomplete_reason == "the file ends in the middle of a line"


def test_lines_that_do_not_add_up_are_incomplete():
    """Both sums are in the reason."""
    profile = small("1 1 5\ntotals: 9\n")
    assert "add up to 5 Ir, the file states 9" in profile.incomplete_reason


def test_corpus_h03_head_of_a_file():
    """The header's summary stands for the totals, the body is known to be cut off."""
    profile = parse(recorded("corpus/H03.txt"))
    assert (profile.summary["Ir"], profile.complete) == (1009441737, False)


def test_corpus_h03_names_by_number():
    """A function that is named once and used by its number later."""
    names = {key.name for key in parse(recorded("corpus/H03.txt")).functions}
    assert "std::error_category::~error_category()" in names


def test_corpus_h04_cachegrind_summary():
    """cachegrind's closing summary line is the total; the body was shortened."""
    profile = parse(recorded("corpus/H04.txt"))
    assert (profile.totals["Ir"], profile.complete) == (1009442925, False)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello world",
        "\x00\x01\x02",
        '{"a": 1}',
        "5 1 2\n",
        "events: \n",
        HEAD + "1\n1 1 1\n",
        HEAD + "1 1 1 1 1 1\n1 1 1\n",
        HEAD + "1 1 -5\n1 1 1\n",
        HEAD + "1 1 1e3\n1 1 1\n",
        HEAD + "fn=(99)\n1 1 1\n",
        HEAD + "calls=1 1 1\n1 1 1\n",
        HEAD + "what is this\n1 1 1\n",
        HEAD + "events: Ir Other\n1 1 1\n",
    ],
)
def test_garbage_is_one_clear_error(text):
    """Another kind of text, or a line that breaks the format, is refused."""
    with pytest.raises(InputError, match="callgrind"):
        parse(text)


@given(st.text(max_size=300))
def test_any_text_is_a_profile_or_one_error(text):
    """No text makes the parser fail in another way."""
    try:
        message = parse(HEAD + text).incomplete_reason
    except InputError as error:
        message = str(error)
    assert "\n" not in message
