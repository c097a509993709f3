"""How near a variant comes to the machine's ceilings, from hand-made ceilings."""

from __future__ import annotations

import pytest

from moe_prof.analysis.ceilings import Ceiling, Ceilings
from moe_prof.analysis.roofline import LayerWork
from moe_prof.topdown.machine_rows import floor_rows

# 1e6 products at 1e9 a second, at 4e9 with the machine's best path; the rest costs nothing
WORK = LayerWork(router_macs=0, router_bytes=0, expert_macs=1_000_000, expert_bytes=0)
CEILINGS = Ceilings(
    tuple(
        Ceiling(name, 1, value, "MAC/s", "measured", "test")
        for name, value in (("int8_avx2", 1e9), ("int8_amx_int8", 4e9), ("fp32_avx2", 1e9))
    )
)


def floors(time_s, *, ceilings=CEILINGS, isa="avx2", threads=1):
    """Rows by metric, and the path's floor."""
    rows, own = floor_rows(
        "s", "packed", time_s=time_s, work=WORK, ceilings=ceilings, threads=threads, isa=isa
    )
    return {row.metric: row for row in rows}, own


def test_fractions_of_both_floors():
    """4 ms: a sixteenth of what the machine could do, a quarter of what the path could."""
    rows, own = floors(4e-3)
    values = (rows["roofline_fraction"].value, rows["roofline_fraction_path"].value)
    assert values == pytest.approx((1 / 16, 1 / 4))
    assert own.time_s == pytest.approx(1e-3)


def test_fractions_are_modelled_and_name_their_ceilings():
    """The floor in seconds, what sets it, and by which measured rates."""
    row = floors(4e-3)[0]["roofline_fraction"]
    assert (row.provenance, row.status, row.variant) == ("modelled", "ok", "packed")
    assert row.source.startswith("floor / time, floor 0.00025 s by compute: int8_amx_int8")


def test_the_ceiling_is_named_in_words():
    """A row of text for reports."""
    row = floors(4e-3)[0]["roofline_ceiling"]
    assert (row.value, row.source) == (None, "this machine's best exact int8 rate, by amx_int8")


def test_faster_than_the_floor_is_marked():
    """A fraction above one stays visible as impossible."""
    row = floors(0.5e-3)[0]["roofline_fraction_path"]
    assert (row.value, row.status) == (pytest.approx(2.0), "out_of_bounds")


def test_without_a_time_there_is_a_reason():
    """Both rows are there, without a value."""
    rows, _ = floors(None)
    assert {(r.value, r.provenance, r.source) for r in rows.values()} == {
        (None, "unavailable", "the variant has no time")
    }


def test_without_a_ceiling_there_is_a_reason():
    """A team size that was not measured."""
    rows, own = floors(4e-3, threads=2)
    assert rows["roofline_fraction"].value is None
    assert "no int8 ceiling" in rows["roofline_fraction"].source
    assert own.time_s is None
