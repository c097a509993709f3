"""perf report --stdio of several versions: columns, groups of events, call graphs, damage."""

from __future__ import annotations

import pytest

from moe_prof.collectors.perf_report import PerfReport, parse
from moe_prof.errors import InputError
from tests.collectors.fixture_files import recorded

HEAD = """\
# Samples: 12K of events 'cpu_core/cycles/, cpu_core/instructions/'
# Event count (approx.): 12345678901
#
#         Overhead  Command          Shared Object        Symbol
# ................  ...............  ...................  ..........................
#
"""


def labels_of(report: PerfReport) -> list[dict[str, str]]:
    """Labels of every row."""
    return [dict(row.labels) for section in report.sections for row in section.rows]


def test_recorded_sections() -> None:
    """Two events in one file, each with its own counts and rows."""
    report = parse(recorded("corpus/D03.txt"))
    found = [(s.event, s.samples, s.event_count, s.lost, len(s.rows)) for s in report.sections]

    assert found == [
        ("task-clock:u", 664, 166000000, 0, 22),
        ("page-faults:u", 7, 384, 0, 5),
    ]
    assert report.warnings == ()


def test_recorded_call_graph() -> None:
    """A branch has its percentage and the way to it."""
    nodes = parse(recorded("corpus/D04.txt")).sections[0].nodes

    assert (nodes[0].percent, nodes[0].path) == (68.83, ("main", "moe::gemm_s8<long, 16>"))
    assert nodes[3].path[:2] == ("main", "Expert<int, long>::run")


def test_recorded_refusal() -> None:
    """No samples is an answer of its own."""
    report = parse(recorded("corpus/D05.txt"))

    assert (report.no_samples, report.sections) == (True, ())


def test_group_of_events_and_odd_names() -> None:
    """One percentage an event; commands with colons, objects with blanks, bare addresses."""
    report = parse(
        HEAD + "    60.12%  55.01%  moe: worker      moe                  [.] gemm<char, 16>(int)\n"
        "    10.00%   0.00%  java             [JIT] tid 5737       [k] 0xffffffff81a0008c\n"
    )
    first, second = report.sections[0].rows

    assert dict(first.percents) == {
        "Overhead cpu_core/cycles/": 60.12, "Overhead cpu_core/instructions/": 55.01,
    }  # fmt: skip
    assert (first.labels["Command"], first.symbol, first.mode) == (
        "moe: worker", "gemm<char, 16>(int)", ".",
    )  # fmt: skip
    assert (second.labels["Shared Object"], second.symbol, second.mode) == (
        "[JIT] tid 5737", "0xffffffff81a0008c", "k",
    )  # fmt: skip
    assert (report.sections[0].samples, report.sections[0].rounded) == (12000, True)


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        (
            "    41.53%  lab2     libm.so.6            [.] __expf_fma\n",
            {"Command": "lab2", "Shared Object": "libm.so.6", "Symbol": "[.] __expf_fma"},
        ),
        (
            "# Overhead  Command  Symbol\n    50.00%  moe  [.] f\n",
            {"Command": "moe", "Symbol": "[.] f"},
        ),
        (
            "# Overhead;Command;Symbol\n 50.00%;moe  ;[.] f<a;b>\n",
            {"Command": "moe", "Symbol": "[.] f<a;b>"},
        ),
    ],
    ids=["no titles", "no dots", "separator"],
)
def test_rows_without_aligned_columns(text: str, labels: dict[str, str]) -> None:
    """Titles may be missing, stand without their dotted line, or be separated by a character."""
    assert labels_of(parse(text)) == [labels]


def test_counts_nan_and_a_cut_row() -> None:
    """Samples and periods are counts; nan is no value; a row that was cut off is named."""
    report = parse(
        "# Samples: 100  of event 'cycles'\n#\n"
        "# Children      Self       Samples  Command  Symbol\n"
        "# ........  ........  ............  .......  ......\n#\n"
        "    90.00%    80.00%            80  moe      [.] f\n"
        "    20.00%     1\n"
    )
    first, cut = report.sections[0].rows

    assert (dict(first.percents), dict(first.counts)) == (
        {"Children": 90.0, "Self": 80.0}, {"Samples": 80.0},
    )  # fmt: skip
    assert dict(cut.percents) == {"Children": 20.0}
    assert report.warnings == ("line 7: a row without a name: it was cut off",)


def test_old_header_and_folded_chains() -> None:
    """Versions before 3.3 name events otherwise; -g folded prints chains below the rows."""
    report = parse(
        "# Events: 1K cycles\n#\n# Overhead  Symbol\n# ........  ......\n#\n"
        "    62.14%  [.] work\n62.14% main;work\n"
    )
    (section,) = report.sections

    assert (section.event, section.samples) == ("cycles", 1000)
    assert [(node.percent, node.path) for node in section.nodes] == [(62.14, ("main", "work"))]


def test_other_text_is_refused() -> None:
    """One clear error."""
    with pytest.raises(InputError, match="no output of perf report"):
        parse("hello\n")
