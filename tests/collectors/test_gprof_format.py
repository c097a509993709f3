"""gprof's flat profile and call graph: recorded ones and every difficult form."""

from __future__ import annotations

from pathlib import Path

import pytest

from moe_prof.collectors.gprof_format import FlatRow, GprofProfile, function_times, parse
from moe_prof.errors import InputError

CORPUS = Path(__file__).parents[1] / "fixtures" / "corpus"
FLAT_HEADER = """Flat profile:

Each sample counts as 0.01 seconds.
  %   cumulative   self              self     total
 time   seconds   seconds    calls  {unit}/call  {unit}/call  name
"""


def recorded(name: str) -> GprofProfile:
    """A recorded output."""
    return parse((CORPUS / name).read_text(encoding="utf-8"))


def test_recorded_templates_and_cycle() -> None:
    """Names with blanks and commas, the cycle's members and its calls are read."""
    profile = recorded("F01.txt")
    gemm = next(row for row in profile.flat if "gemm_s8<long, 16>" in row.name)
    cycle = next(entry for entry in profile.graph if entry.whole_cycle)
    members = {entry.name: entry.cycle for entry in profile.graph if entry.cycle}
    assert (profile.total_s, gemm.self_s, gemm.calls) == (0.20, 0.11, 600)
    assert gemm.self_per_call_s == pytest.approx(183.47e-6)
    assert cycle.calls == "600+600000"
    assert members["even(int)"] == 1
    assert profile.notes == ()


def test_recorded_without_time() -> None:
    """Without a sample there are calls, but no shares; they are missing, not 0."""
    profile = recorded("F02.txt")
    (row,) = profile.flat
    assert (profile.accumulated, row.calls, row.percent) == (False, 1, None)
    assert row.self_per_call_s is None


@pytest.mark.parametrize(
    ("unit", "scale"), [("ms", 1e-3), ("us", 1e-6), ("Ks", 1e3), ("s", 1.0), ("Ts", 1e12)]
)
def test_units_per_call(unit: str, scale: float) -> None:
    """Times per call are in the unit that the header names."""
    profile = parse(
        FLAT_HEADER.format(unit=unit)
        + " 50.00      0.05     0.05        5     2.50     3.50  f(int, char)\n"
    )
    assert profile.flat == (FlatRow("f(int, char)", 0.05, 50.0, 5, 2.5 * scale, 3.5 * scale),)


def test_row_without_calls_and_share_above_100() -> None:
    """Functions that were not compiled with -pg have no calls; shares are taken as printed."""
    profile = parse(
        FLAT_HEADER.format(unit="ms")
        + "100.20      0.05     0.05                             munmap\n"
    )
    assert profile.flat == (FlatRow("munmap", 0.05, 100.2, None, None, None),)


def test_decimal_comma() -> None:
    """Another locale's decimal comma."""
    profile = parse(
        FLAT_HEADER.format(unit="ms") + " 50,00      0,05     0,05        5     2,50     3,50  f\n"
    )
    assert profile.flat[0].self_s == 0.05


def test_totals_come_from_the_call_graph() -> None:
    """Self from the flat profile, total from the graph, None where the graph lacks it."""
    times = {name: (own, total) for name, own, total in function_times(recorded("F01.txt"))}
    gemm = next(name for name in times if "gemm_s8" in name)
    assert times[gemm] == (0.11, pytest.approx(0.17))
    flat_only = parse(
        FLAT_HEADER.format(unit="ms") + " 50.00      0.05     0.05        5     2.50     3.50  f\n"
    )
    assert list(function_times(flat_only)) == [("f", 0.05, None)]


def test_spontaneous_callers_and_recursion() -> None:
    """Entries without a known caller, and calls of a function by itself, stand in the graph."""
    profile = parse(
        "index % time    self  children    called     name\n"
        "                                                 <spontaneous>\n"
        "[1]    100.0    0.10    0.20                 main [1]\n"
        "                0.20    0.00       1/1           f [2]\n"
        "-----------------------------------------------\n"
        "                                   5             f [2]\n"
        "                0.20    0.00       1/1           main [1]\n"
        "[2]     66.7    0.20    0.00       1+5       f [2]\n"
        "                                   5             f [2]\n"
        "-----------------------------------------------\n"
    )
    first, second = profile.graph
    assert [arc.name for arc in first.callers] == ["<spontaneous>"]
    assert (first.callees[0].self_s, second.calls) == (0.2, "1+5")
    assert [(arc.name, arc.self_s) for arc in second.callees] == [("f", None)]


def test_damaged_lines_are_named() -> None:
    """A line that cannot be read is told with its number, the rows around it are kept."""
    good = " 50.00      0.05     0.05        5     2.50     3.50  f\n"
    profile = parse(
        FLAT_HEADER.format(unit="ms") + good + " 50.0x 1\n" + good.replace("f\n", "g\n")
    )
    assert [row.name for row in profile.flat] == ["f", "g"]
    assert profile.notes == ("line 7: '50.0x 1' cannot be read",)


def test_another_text() -> None:
    """Text of another tool is refused with the command that makes the right one."""
    with pytest.raises(InputError, match="gprof PROGRAM"):
        parse("Events: 5\n")
