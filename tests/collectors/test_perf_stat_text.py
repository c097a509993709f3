"""The text form of perf stat: locales, scopes, metrics, marks, intervals, damage."""

from __future__ import annotations

import pytest

from moe_prof.collectors.perf_parse import parse
from moe_prof.collectors.perf_reading import Reading, Report

HEAD = "\n Performance counter stats for './bench 1 2':\n\n"
FOOT = "\n       0.813383550 seconds time elapsed\n"


def body(*lines: str) -> Report:
    """A report of the given lines."""
    return parse(HEAD + "\n".join(lines) + "\n" + FOOT)


def only(*lines: str) -> Reading:
    """The only reading of the given lines."""
    (reading,) = body(*lines).readings
    return reading


def test_header_and_footer() -> None:
    """Command, repetitions and times are the run's totals."""
    report = parse(
        " Performance counter stats for './bench 'a b'' (5 runs):\n\n"
        "         1,000      cycles\n\n"
        "           0.10583 +- 0.00158 seconds time elapsed  ( +-  1.49% )\n"
        "           0.10100 seconds user\n           0,00200 seconds sys\n"
    )

    block = report.blocks[0]
    assert (block.command, block.runs) == ("./bench 'a b'", 5)
    assert (block.elapsed_s, block.elapsed_error_s) == (0.10583, 0.00158)
    assert (block.user_s, block.sys_s) == (0.101, 0.002)


def test_command_wrapped_in_the_header() -> None:
    """A long command broken over two lines is one command."""
    report = parse(
        " Performance counter stats for './bench --alpha\n --beta' (3 runs):\n\n   5   cycles:u\n"
    )

    assert (report.command, report.blocks[0].runs) == ("./bench --alpha --beta", 3)
    assert report.warnings == ()


@pytest.mark.parametrize(
    ("line", "event", "value", "unit"),
    [
        ("     5,812,345,678      cycles:u", "cycles:u", 5812345678.0, ""),
        ("     5.812.345.678      cycles", "cycles", 5812345678.0, ""),
        ("     5 812 345 678      cycles", "cycles", 5812345678.0, ""),
        ("          1.234,56 msec task-clock", "task-clock", 1234.56, "msec"),
        ("       1823.406513      task-clock (msec)", "task-clock", 1823.406513, "msec"),
        ("           859,772      task-clock", "task-clock", 859772.0, "ns"),
        ("     1,006,356,120      duration_time", "duration_time", 1006356120.0, "ns"),
        ("            123.45 MiB  uncore_imc/reads/", "uncore_imc/reads/", 123.45, "MiB"),
        ("             12.50 Joules power/energy-pkg/", "power/energy-pkg/", 12.5, "Joules"),
        ("                 7      cycles [cpu_atom]", "cycles [cpu_atom]", 7.0, ""),
        ("               7      cpu/event=0x3c,umask=1/u", "cpu/event=0x3c,umask=1/u", 7.0, ""),
        ("               7      sched:sched_switch", "sched:sched_switch", 7.0, ""),
    ],
)
def test_count(line: str, event: str, value: float, unit: str) -> None:
    """Count, unit and name, in any locale and of any version."""
    reading = only(line)

    assert (reading.event, reading.value, reading.unit) == (event, value, unit)


def test_hybrid_events_name_their_pmu() -> None:
    """The same event on two PMUs stays apart."""
    report = body(
        "       117,997,016      cpu_atom/instructions/u     (0.05%)",
        "    10,854,098,969      cpu_core/instructions/u     (99.95%)",
    )

    assert [(r.pmu, r.value) for r in report.readings] == [
        ("cpu_atom", 117997016.0),
        ("cpu_core", 10854098969.0),
    ]


@pytest.mark.parametrize("mark", ["(83.33%)", "[83.33%]", "(83,33%)", "( +-  1.50% )  (83.33%)"])
def test_multiplexing_is_kept(mark: str) -> None:
    """The share of time counted, in the brackets of old and new versions."""
    reading = only(f"     1,000      cycles     #    3.1 GHz    {mark}")

    assert (reading.running_pct, reading.status) == (83.33, "multiplexed")


def test_marks_behind_the_last_metric_are_the_counts() -> None:
    """perf prints an event's marks after its last metric, possibly on another line."""
    report = body(
        "    12,345,678,901      instructions              #    2.12  insns per cycle",
        "                                                  #    0.08  stalled cycles per insn"
        "  ( +-  0.01% ) [83.33%]",
    )

    assert [(r.running_pct, r.stddev_pct) for r in report.readings] == [(83.33, 0.01)] * 2
    assert report.readings[0].status == "multiplexed"


@pytest.mark.parametrize(
    ("comment", "value", "unit"),
    [
        ("#    0.994 CPUs utilized", 0.994, "CPUs utilized"),
        ("#    0,994 CPUs utilized", 0.994, "CPUs utilized"),
        ("#    1.02% of all branches", 1.02, "% of all branches"),
        ("#     13.9 %  branch_miss_rate", 13.9, "%  branch_miss_rate"),
        ("#     -0.1 %  tma_frontend_bound", -0.1, "%  tma_frontend_bound"),
        ("#      nan CPUs  CPUs_utilized", None, "CPUs  CPUs_utilized"),
        ("#  399.312 M/sec", 399.312, "M/sec"),
    ],
)
def test_metric_comment(comment: str, value: float | None, unit: str) -> None:
    """perf's own metric keeps its value and text; nan is no value."""
    reading = only(f"     1,000      branch-misses     {comment}")

    assert (reading.metric_value, reading.metric_unit) == (value, unit)


def test_metric_of_an_event_that_was_not_counted_is_no_value() -> None:
    """perf prints 0.00 % beside an event it could not count."""
    reading = only("   <not supported>      LLC-load-misses     #    0.00% of all LLC accesses")

    assert (reading.value, reading.metric_value, reading.status) == (None, None, "not_supported")


def test_metric_group_with_its_pmu() -> None:
    """Metrics below a group's name belong to the group and its PMU."""
    report = body(
        "             TopdownL1 (cpu_core)                 #     27.2 %  tma_backend_bound",
        "                                                  #     42.5 %  tma_retiring     (99.95%)",
    )

    assert [(r.group, r.pmu, r.metric_value, r.running_pct) for r in report.readings] == [
        ("TopdownL1", "cpu_core", 27.2, 99.95),
        ("TopdownL1", "cpu_core", 42.5, 99.95),
    ]


@pytest.mark.parametrize(
    ("prefix", "scope", "cpus", "thread"),
    [
        ("CPU3        ", "CPU3", None, None),
        ("S0        2 ", "S0", 2, None),
        ("S0-D0           2 ", "S0-D0", 2, None),
        ("S1-D0-C12         2 ", "S1-D0-C12", 2, None),
        ("S0-D0-L3-ID8        16 ", "S0-D0-L3-ID8", 16, None),
        ("N1        8 ", "N1", 8, None),
        ("            bash-3000 ", "", None, "bash-3000"),
        ("   Web Content-31 ", "", None, "Web Content-31"),
    ],
)
def test_aggregation_column(prefix: str, scope: str, cpus: int | None, thread: str | None) -> None:
    """CPU, socket, die, core, cache, node or thread before the count."""
    reading = only(f"{prefix}              12,345      cache-misses")

    assert (reading.scope, reading.cpus, reading.thread) == (scope, cpus, thread)
    assert reading.value == 12345.0


def test_cgroup_column() -> None:
    """A control group stands behind the event."""
    reading = only(
        "            222.92 msec cpu-clock          /user.slice #    2.000 CPUs utilized"
    )

    assert (reading.event, reading.cgroup) == ("cpu-clock", "/user.slice")


def test_intervals_and_summary() -> None:
    """Totals after the intervals are marked, so that nobody adds them to the intervals."""
    report = parse(
        "#           time             counts unit events\n"
        "     1.000000001                 10      page-faults\n"
        "     2.000000001                  5      page-faults\n"
        "\n Performance counter stats for './bench':\n\n"
        "                15      page-faults\n\n       2.000100000 seconds time elapsed\n"
    )

    assert [(r.time_s, r.value, r.summary, r.block) for r in report.readings] == [
        (1.000000001, 10.0, False, 0),
        (2.000000001, 5.0, False, 0),
        (None, 15.0, True, 0),
    ]
    assert report.elapsed_s == 2.0001


def test_two_reports_in_one_file_stay_apart() -> None:
    """Each header begins a new run; the program's text between them is not read."""
    report = parse(
        f"{HEAD}    5      cycles:u\n{FOOT}\nresult 12 tokens\n{HEAD}    7      cycles:u\n{FOOT}"
    )

    assert [(r.block, r.value) for r in report.readings] == [(0, 5.0), (1, 7.0)]
    assert report.warnings == ()


def test_interval_clock_that_jumps_back_begins_a_new_run() -> None:
    """Two interval runs appended to one file."""
    report = parse(
        "#           time             counts unit events\n"
        "     1.000000001   10      page-faults\n     0.500000001   20      page-faults\n"
    )

    assert [r.block for r in report.readings] == [0, 1]


def test_program_output_before_the_report_is_skipped() -> None:
    """Lines of the program that look like counts are not counts."""
    report = parse(f"processed 640 tokens\n   640 tokens\n{HEAD}   5      cycles:u\n{FOOT}")

    assert [r.event for r in report.readings] == ["cycles:u"]


def test_damaged_line_is_named_and_the_rest_is_kept() -> None:
    """A torn line becomes a warning with its number."""
    report = body("   1,2x4,5   cycles", "                62      page-faults")

    assert [r.event for r in report.readings] == ["page-faults"]
    assert report.warnings == ("line 4: not a row of perf stat: '1,2x4,5   cycles'",)


def test_many_damaged_lines_are_counted() -> None:
    """The list of warnings is limited and says how many it leaves out."""
    report = body(*["?? broken ??"] * 30)

    assert len(report.warnings) == 21
    assert report.warnings[-1] == "10 further lines could not be read"


def test_name_wrapped_after_its_count() -> None:
    """A terminal broke the line between number and name."""
    report = body(
        "     5,812,345,678", "      mem_load_retired.l3_miss:u     # 3.1 M/sec   (50.00%)"
    )

    assert [(r.event, r.value, r.running_pct) for r in report.readings] == [
        ("mem_load_retired.l3_miss:u", 5812345678.0, 50.0)
    ]


def test_fragment_without_header() -> None:
    """Rows pasted without their header are found; prose around them is not."""
    report = parse(
        "I measured this:\n     5,812,345,678      cycles                    #    3.188 GHz\n"
        "Hello 5 worlds\n    12,345,678,901      instructions\n"
    )

    assert [r.event for r in report.readings] == ["cycles", "instructions"]


def test_top_down_table_without_header() -> None:
    """A pasted table is known by its titles."""
    report = parse(
        "       retiring  bad speculat  FE bound  BE bound\n"
        "S0-C0    30.8%      41.8%        8.8%      18.6%  <==\n"
    )

    assert [(r.scope, r.metric_unit, r.metric_value) for r in report.readings] == [
        ("S0-C0", "%  retiring", 30.8),
        ("S0-C0", "%  bad speculat", 41.8),
        ("S0-C0", "%  FE bound", 8.8),
        ("S0-C0", "%  BE bound", 18.6),
    ]


def test_colours_carriage_returns_and_byte_order_mark() -> None:
    """What terminals and editors add is removed."""
    plain = HEAD + "     1,000      cycles     #    3.1 GHz\n" + FOOT
    coloured = "\ufeff" + plain.replace("1,000", "\x1b[31m1,000\x1b[m").replace("\n", "\r\n")

    assert parse(coloured) == parse(plain)


def test_table_of_repetitions_is_no_row() -> None:
    """``--table`` prints the single times, which are no counts."""
    report = parse(
        " Performance counter stats for './bench' (2 runs):\n\n        117.80 msec task-clock\n\n"
        "           # Table of individual measurements:\n"
        "           0.11619 (-0.00194) #\n           0.11960 (+0.00148) #\n\n"
        "           # Final result:\n"
        "           0.11812 +- 0.00101 seconds time elapsed  ( +-  0.86% )\n"
    )

    assert [r.event for r in report.readings] == ["task-clock"]
    assert report.warnings == ()


def test_columns_that_come_twice_are_kept_apart() -> None:
    """A hybrid CPU's table has each column twice without its PMU."""
    report = parse(
        " Performance counter stats for 't':\n\n"
        " %  tma_retiring  %  tma_retiring\n            40.1             22.5\n"
    )

    assert [(r.pmu, r.metric_value) for r in report.readings] == [("pmu-1", 40.1), ("pmu-2", 22.5)]
    assert "comes twice" in report.warnings[0]
