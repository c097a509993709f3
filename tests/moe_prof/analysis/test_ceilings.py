"""Looking up ceilings, and their rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from moe_prof.analysis import ceilings as module
from moe_prof.analysis.ceilings import Ceiling, Ceilings, missing


def entry(name, threads, value, unit="MAC/s"):
    """A measured entry."""
    return Ceiling(name, threads, value, unit, "measured", "probe")


MACHINE = Ceilings(
    (
        entry("clock", 1, 3e9, "Hz"),
        entry("int8_portable", 2, 10.0),
        entry("int8_avx2", 2, 40.0),
        entry("int8_avx512_vnni", 2, 160.0),
        entry("int8_amx_int8", 2, 900.0),
        entry("fp32_portable", 2, 8.0),
        entry("fp32_avx2", 2, 16.0),
        entry("fp32_avx512", 2, 32.0),
        entry("read_l2", 2, 200.0, "bytes/s"),
        entry("read_l3", 2, 50.0, "bytes/s"),
        missing("read_memory", 2, "bytes/s", "the cache is too large"),
    )
)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (None, "int8_amx_int8"),
        ("native", "int8_avx512_vnni"),
        ("avx2", "int8_avx2"),
        ("portable", "int8_portable"),
        ("amx_int8", "int8_amx_int8"),
    ],
)
def test_best_int8_of_a_path(path, name):
    """A path has its own ceiling; native excludes tiles, None excludes nothing."""
    assert MACHINE.best_int8(2, path).name == name


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (None, "fp32_avx512"),
        ("native", "fp32_avx512"),
        ("amx_int8", "fp32_avx512"),
        ("avx2", "fp32_avx2"),
        ("avx_vnni", "fp32_avx2"),
        ("portable", "fp32_portable"),
    ],
)
def test_best_fp32_of_a_path(path, name):
    """Narrow paths exclude wider fp32 instructions."""
    assert MACHINE.best_fp32(2, path).name == name


def test_nothing_for_a_team_that_was_not_measured():
    """A rate of two threads says nothing of three."""
    assert MACHINE.best_int8(3) is None
    assert MACHINE.value("read_l2", 3) is None


def test_bandwidth_per_thread_divides_the_team():
    """Half of the team's rate for each of two; a missing level stays missing."""
    share = MACHINE.bandwidth_per_thread(2)
    assert (share.l2, share.l3, share.memory) == (100.0, 25.0, None)


def test_clock():
    """The clock is that of one core."""
    assert MACHINE.clock_hz == 3e9


def test_rows_carry_team_and_reason():
    """A missing ceiling is a row without a value, its reason in source."""
    row = module.rows(MACHINE)[-1]
    assert (row.metric, row.value, row.thread, row.provenance, row.source) == (
        "ceiling_read_memory", None, "2", "unavailable", "the cache is too large",
    )  # fmt: skip


def test_rows_can_be_read_back():
    """A saved session gives the same entries."""
    placed = replace(
        module.rows(MACHINE)[0], metric="roofline_fraction", unit="1", variant="packed"
    )
    assert module.from_rows([*module.rows(MACHINE), placed]) == MACHINE
