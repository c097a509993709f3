"""llvm-mca's reports of versions 14 and 19, as text and JSON."""

from __future__ import annotations

import json

import pytest

from moe_prof.collectors.llvm_mca_format import parse, parse_bottleneck
from moe_prof.errors import InputError
from tests.collectors.fixture_files import recorded

TEXT_14, JSON_14 = "llvm_mca/dot-14.txt", "llvm_mca/dot-14.json"
TEXT_19, JSON_19 = "llvm_mca/dot-19-znver4.txt", "llvm_mca/dot-19-znver4.json"


def test_corpus_h05_summary():
    """Instructions, cycles, uops and IPC of a text report."""
    found = parse(recorded("corpus/H05.txt"))
    assert (found.instructions, found.cycles, found.uops, found.ipc) == (500, 518, 700, 0.97)


def test_corpus_h05_listing():
    """Loads are told apart from plain operations."""
    found = parse(recorded("corpus/H05.txt"))
    assert [(i.uops, i.latency, i.may_load) for i in found.listing] == [
        (2, 8, True), (2, 12, True), (1, 1, False), (1, 1, False), (1, 1, False),
    ]  # fmt: skip


def test_corpus_h06_ipc():
    """JSON has the unrounded figures."""
    assert parse(recorded("corpus/H06.txt")).ipc == pytest.approx(0.965250965, abs=1e-9)


def test_corpus_h06_latency():
    """By instruction, from the nested view."""
    found = parse(recorded("corpus/H06.txt"))
    assert [i.latency for i in found.listing if i.text.startswith("vpdpbusd")] == [12]


@pytest.mark.parametrize(("text", "exact"), [(TEXT_14, JSON_14), (TEXT_19, JSON_19)])
def test_both_forms_say_the_same(text, exact):
    """Text and JSON of one run, apart from rounding and the bottleneck."""
    one, other = parse(recorded(text)), parse(recorded(exact))
    assert (one.cycles, one.uops, one.dispatch_width) == (
        other.cycles, other.uops, other.dispatch_width,
    )  # fmt: skip
    assert [i.text for i in one.listing] == [i.text for i in other.listing]
    assert one.block_rthroughput == round(other.block_rthroughput, 1)


def test_the_resources_tell_the_model():
    """LLVM 19 has its own tables of Zen 4."""
    assert parse(recorded(JSON_19)).resources[0] == "Zn4AGU0"


def test_a_bottleneck_is_read():
    """Shares in percent, and the ports behind them."""
    found = parse_bottleneck(recorded(TEXT_14))
    assert found is not None
    assert (found.pressure_pct, found.resource_pct, found.dependency_pct) == (21.23, 8.9, 21.23)
    assert found.resources == {"ICXPort0": 0.68, "ICXPort1": 8.22, "ICXPort6": 0.68}


def test_no_bottleneck_is_none():
    """llvm-mca says so in words."""
    assert parse(recorded(TEXT_19)).bottleneck is None


def test_stores_and_side_effects_are_flags():
    """The three flag columns of the text."""
    table = (
        "[1]    [2]    [3]    [4]    [5]    [6]    Instructions:\n"
        " 4      140   1.00    *      *      U     pause\n"
        " 1      1     1.00           *            movl\t%eax, (%rdi)\n"
        " 1      5     0.50                        {vex}\tvpdpbusd\t%ymm0, %ymm1, %ymm2\n"
    )
    head = recorded("corpus/H05.txt").split("[1]    [2]")[0]
    found = parse(head + table).listing
    assert [(i.may_load, i.may_store, i.side_effects) for i in found] == [
        (True, True, True), (False, True, False), (False, False, False),
    ]  # fmt: skip


def test_a_placeholder_is_recognised():
    """A latency of 100 and more means that the model has no data."""
    table = (
        "[1]    [2]    [3]    [4]    [5]    [6]    Instructions:\n"
        " 1      100   0.25                  U     tdpbssd\t%tmm0, %tmm1, %tmm2\n"
    )
    head = recorded("corpus/H05.txt").split("[1]    [2]")[0]
    assert parse(head + table).listing[0].is_placeholder


@pytest.mark.parametrize("name", [TEXT_14, JSON_14])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.5])
def test_a_cut_off_report_is_an_error(name, share):
    """What is missing is not made up: either the summary is there, or nothing."""
    text = recorded(name)
    cut = text[: int(len(text) * share)]
    if share == 0.5 and name == TEXT_14:
        assert parse(cut).cycles == 146  # the text's summary stands at its beginning
    else:
        with pytest.raises(InputError, match="llvm-mca"):
            parse(cut)


@pytest.mark.parametrize(
    "text", ["", "garbage", "{", "{}", "[]", '{"CodeRegions": []}', '{"CodeRegions": [{"x": 1}]}']
)
def test_garbage_is_one_clear_error(text):
    """Other text and other JSON."""
    with pytest.raises(InputError, match="llvm-mca"):
        parse(text)


@pytest.mark.parametrize("key", ["SummaryView", "Instructions", "Iterations", "IPC"])
@pytest.mark.parametrize("value", [None, "many", [], {}])
def test_odd_json_is_one_clear_error(key, value):
    """A field of another type, wherever it is."""
    data = json.loads(recorded(JSON_14))
    region = data["CodeRegions"][0]
    place = region if key in region else region["SummaryView"]
    place[key] = value
    with pytest.raises(InputError, match="llvm-mca"):
        parse(json.dumps(data))


def test_a_report_of_nothing_is_an_error():
    """Zero iterations are no measurement."""
    text = recorded("corpus/H05.txt").replace("Iterations:        100", "Iterations:        0")
    with pytest.raises(InputError, match="simulated nothing"):
        parse(text)
