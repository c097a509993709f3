"""Counted instructions of another architecture as rows, by phase and kind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from moe_prof.collectors import qemu_user
from moe_prof.collectors.base import Availability
from moe_prof.errors import UnavailableError, UsageError
from moe_prof.kernels.build import Build
from moe_prof.kernels.target import target
from moe_prof.scenario import Scenario
from moe_prof.topdown import emulated
from tests.collectors.fixture_files import recorded

BUILT = Build(
    "release", Path("/b"), ("rvv", "portable"), {"ime": "no emulator"}, "c", True, "riscv64"
)
COUNTS = qemu_user.parse(recorded("qemu_user/ime.txt"))


MACS = {"router": 1024, "gate_up": 49152, "down": 24576}


def rows():
    """The rows of recorded counts."""
    return emulated.rows(COUNTS, "S1", "ime", macs_by_phase=MACS, source="emulated")


def values(phase=None):
    """Their values by metric, of the whole forward or of a phase."""
    return {row.metric: row.value for row in rows() if row.phase == phase}


def test_counts_are_simulated_and_have_no_time():
    """Every row says that it is simulated and how; none is about time."""
    assert {row.provenance for row in rows()} == {"simulated"}
    assert {row.source for row in rows()} == {"emulated"}
    assert not any(row.unit == "s" for row in rows())


def test_instructions_per_mac():
    """All instructions of the region over the useful products; likewise in each phase with some."""
    whole = values()
    assert whole["instructions"] == 19020
    assert whole["instructions_per_mac"] == pytest.approx(19020 / 74752)
    assert whole["instructions.matrix"] == 768
    assert values("down")["instructions_per_mac"] == pytest.approx(5204 / 24576)
    assert "instructions_per_mac" not in values("activation")


def test_phases_add_up():
    """The phases and what is between them are the whole, in the order of the forward."""
    phases = emulated.phases(COUNTS)
    assert list(phases) == [
        "router", "quantize", "bucket", "gate_up", "activation", "down", "combine", "none",
    ]  # fmt: skip
    assert sum(phases.values()) == COUNTS.instructions
    kinds = [values(phase)["instructions.load"] for phase in phases]
    assert sum(kinds) == values()["instructions.load"]


def test_reduction_is_over_the_baseline():
    """Fewer instructions are a ratio of counts; without the baseline's it is missing."""
    base = emulated.rows(COUNTS, "S1", "scalar", macs_by_phase=MACS, source="")
    half = [replace(row, variant="half", value=(row.value or 0) / 2) for row in base]
    found = emulated.reductions([*base, *half], "S1", ("scalar", "half", "gone"))
    assert [(row.variant, row.value) for row in found] == [
        ("scalar", 1.0), ("half", 2.0), ("gone", None),
    ]  # fmt: skip
    alone = emulated.reductions(half, "S1", ("half",))
    assert [row.source for row in alone] == ["the instructions of scalar could not be counted"]


def test_variants_of_the_build_are_chosen_in_table_order():
    """``all`` means those that the build has a path for."""
    assert emulated.choose("all", BUILT)[-3:] == ("portable", "rvv", "rvv-dispatched")
    assert emulated.choose("rvv, portable,rvv", BUILT) == ("rvv", "portable")


@pytest.mark.parametrize(
    ("isas", "bits", "name"),
    [
        (("ime", "rvv", "portable"), 256, "ime"),
        (("ime", "rvv", "portable"), 512, "rvv"),  # tiles are of 256 bits only
        (("rvv", "portable"), 256, "rvv"),  # an installed package has no stand-in for vmadot
        (("portable",), 256, "portable"),
    ],
)
def test_the_best_is_one_that_can_be_counted(isas, bits, name):
    """It follows from the build and the registers, not from a name alone."""
    assert emulated.best(replace(BUILT, isas=isas), bits) == name


@pytest.mark.parametrize(
    ("name", "words"),
    [("ime", "ime: no emulator"), ("packed", "avx2: not built"), ("best", "unknown variant")],
)
def test_variant_that_is_not_built_is_refused(name, words):
    """The reason is that of its path."""
    with pytest.raises(UsageError, match=words):
        emulated.choose(name, BUILT)


def emulation(folder, built=BUILT, vector_bits=256):
    """A small layer's emulation."""
    layer = Scenario(1, 8, 8, 2, 1)
    return emulated.Emulation(target("riscv64"), built, layer, 0, vector_bits, folder)


def test_without_an_emulator_nothing_is_counted(monkeypatch, tmp_path):
    """The error says what to install; the rows of a count that is missing keep it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    run = emulation(tmp_path)
    with pytest.raises(UnavailableError, match="apt install qemu-user") as caught:
        run.count("rvv", 60.0)
    found = run.missing("rvv", str(caught.value))
    assert [row.value for row in found] == [None, None]
    assert all("apt install qemu-user" in row.source for row in found)


@pytest.mark.parametrize("take", ["count", "profile", "sampled"])
def test_tiles_need_registers_of_their_length(monkeypatch, tmp_path, take):
    """Other lengths are unavailable, with the one to choose, before anything is run."""
    usable = Availability("qemu_user", True, "counts")
    monkeypatch.setattr(qemu_user, "availability", lambda: usable)
    run = emulation(tmp_path, replace(BUILT, isas=("ime", "rvv", "portable")), 512)
    with pytest.raises(UnavailableError) as caught:
        getattr(run, take)("ime", 60.0)
    assert str(caught.value) == (
        "path ime needs vector registers of 256 bits, not 512; choose --vector-bits 256"
    )
