"""PerfSpect's four layouts, units from names, cells without a value."""

from __future__ import annotations

import math

import pytest

from moe_prof.collectors.perfspect_format import is_header, parse, unit_of
from moe_prof.errors import InputError
from tests.collectors.fixture_files import recorded


def test_recorded_series() -> None:
    """Times count from the first row; an empty cell is missing, an infinity stays one."""
    values = parse(recorded("corpus/R05.txt")).values
    cpi = [(v.time_s, v.cpu, v.value) for v in values if v.name == "CPI"]

    assert cpi == [(0.0, None, 0.8125), (1.0, None, math.inf), (2.0, "SKT 0 CPU 17", 0.75)]
    assert [v.value for v in values if v.name == "TMA_Retiring(%)"] == [33.5, None, 36.0]


def test_summary_by_socket() -> None:
    """The first column groups; the deviation belongs to the mean."""
    values = parse("SKT,metric,mean,min,max,stddev\n0,CPI,0.9,0.8,NaN,0.1\n").values

    assert [(v.statistic, v.value, v.cpu, v.stddev) for v in values] == [
        ("mean", 0.9, "SKT 0", 0.1), ("min", 0.8, "SKT 0", None), ("max", None, "SKT 0", None),
    ]  # fmt: skip


def test_series_by_process() -> None:
    """Process and command label the rows."""
    values = parse("TS,SKT,CPU,PID,CMD,CID,CPI\n1700000001,,,1234,moe,,0.9\n").values

    assert [(v.thread, v.value) for v in values] == [("moe 1234", 0.9)]


def test_versions_1_and_2() -> None:
    """``metric_`` goes away; a number behind a dot is the socket or CPU."""
    series = parse("time,metric_CPI.0,metric_CPI.1\n5.0,0.9,0.8\n10.0,1,\n").values
    averages = parse("metrics,avg,p95,min,max\nmetric_CPI,0.9,1.0,0.8,1.1\n").values

    assert [(v.name, v.cpu, v.time_s, v.value) for v in series] == [
        ("CPI", "part 0", 0.0, 0.9), ("CPI", "part 1", 0.0, 0.8),
        ("CPI", "part 0", 5.0, 1.0), ("CPI", "part 1", 5.0, None),
    ]  # fmt: skip
    assert [(v.name, v.statistic, v.value) for v in averages] == [
        ("CPI", "mean", 0.9), ("CPI", "p95", 1.0), ("CPI", "min", 0.8), ("CPI", "max", 1.1),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("TMA_..Memory_Bound(%)", "% slots"), ("CPU utilization %", "%"), ("CPI", ""),
        ("CPU operating frequency (in GHz)", "GHz"), ("memory bandwidth read (MB/sec)", "MB/s"),
        ("LLC demand data read miss latency (in ns)", "ns"), ("package power (watts)", "W"),
        ("NUMA %_Reads addressed to local DRAM", "%"),
    ],
)  # fmt: skip
def test_units(name: str, unit: str) -> None:
    """The unit stands in the name."""
    assert unit_of(name) == unit


def test_damage() -> None:
    """A row that is short keeps its values; one that is none is named."""
    report = parse("TS,SKT,CPU,CID,CPI,IPC\n1700000001,,,,0.9\nnoise here\n1700000002,,,,1,2\n")

    assert [v.value for v in report.values if v.name == "CPI"] == [0.9, 1.0]
    assert [warning.partition(":")[0] for warning in report.warnings] == ["line 2"] + ["line 3"] * 2


def test_recognition() -> None:
    """Other CSV is no PerfSpect."""
    assert is_header("TS,SKT,CPU,CID,CPI")
    assert not is_header("time,value")
    assert not is_header("metric,value")
    with pytest.raises(InputError, match="PerfSpect"):
        parse("a,b\n1,2\n")
