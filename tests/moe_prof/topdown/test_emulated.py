"""Counted instructions of another architecture as rows, by phase and kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from moe_prof.collectors import qemu_user
from moe_prof.errors import UsageError
from moe_prof.kernels.build import Build
from moe_prof.kernels.target import target
from moe_prof.scenario import Scenario
from moe_prof.topdown import emulated
from tests.collectors.fixture_files import recorded

BUILT = Build(
    "release", Path("/b"), ("rvv", "portable"), {"ime": "no emulator"}, "c", True, "riscv64"
)
COUNTS = qemu_user.parse(recorded("qemu_user/ime.txt"))


def rows():
    """The rows of recorded counts."""
    return emulated.rows(COUNTS, "S1", "ime", macs=1000, source="emulated")


def test_counts_are_simulated_and_have_no_time():
    """Every row says that it is simulated and how; none is about time."""
    assert {row.provenance for row in rows()} == {"simulated"}
    assert {row.source for row in rows()} == {"emulated"}
    assert not any(row.unit == "s" for row in rows())


def test_instructions_per_mac():
    """All instructions of the region over the useful products."""
    values = {row.metric: row.value for row in rows() if row.phase is None}
    assert values["instructions"] == 96193
    assert values["instructions_per_mac"] == pytest.approx(96.193)
    assert values["instructions.matrix"] == 30720


def test_phases_add_up():
    """Each function serves one phase; the products of gate, up and down are one function."""
    phases = emulated.by_phase(COUNTS.by_symbol)
    assert phases == {"gate_up+down": 92320, "activation": 2360, "router": 409, "other": 1104}
    assert sum(phases.values()) == COUNTS.instructions


def test_variants_of_the_build_are_chosen_in_table_order():
    """``all`` means those that the build has a path for."""
    assert emulated.choose("all", BUILT)[-3:] == ("portable", "rvv", "rvv-dispatched")
    assert emulated.choose("rvv, portable,rvv", BUILT) == ("rvv", "portable")


@pytest.mark.parametrize(
    ("name", "words"),
    [("ime", "ime: no emulator"), ("packed", "avx2: not built"), ("best", "unknown variant")],
)
def test_variant_that_is_not_built_is_refused(name, words):
    """The reason is that of its path."""
    with pytest.raises(UsageError, match=words):
        emulated.choose(name, BUILT)


def test_without_an_emulator_rows_say_so(monkeypatch, tmp_path):
    """Missing counts are missing, with what to install."""
    monkeypatch.setenv("PATH", str(tmp_path))
    run = emulated.Emulation(target("riscv64"), BUILT, Scenario(1, 8, 8, 2, 1), 0, 256, tmp_path)
    found = run.rows("rvv", 1, 60.0)
    assert [row.value for row in found] == [None, None]
    assert all("apt install qemu-user" in row.source for row in found)
