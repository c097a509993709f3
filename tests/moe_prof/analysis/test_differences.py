"""What two measurements differ in, one thing at a time."""

from dataclasses import replace

import pytest

from moe_prof import session as sessions
from moe_prof.analysis.differences import (
    NAMES,
    Identity,
    VariantFacts,
    differences,
    identity,
    remarks,
    weights_text,
)
from tests.moe_prof.report import made_sessions
from tests.moe_prof.topdown.made import row

MACHINE = {
    "architecture": "x86_64", "vendor": "V", "model_name": "CPU 1", "family": 6, "model": 1,
    "stepping": 2, "features": ["avx", "avx2"], "caches": [], "usable_cpus": 2, "governors": [],
    "turbo": None,
}  # fmt: skip
PLAIN = Identity(
    scenario="S1", shape=(1, 256, 128, 16, 4), seed=0, imported=False, machine=MACHINE,
    tools={"c++": "g++ 12", "build": "release", "kernel sources": "aa"}, environment={},
    variants={"packed": VariantFacts(2, "avx2"), "scalar": VariantFacts(1, "portable")},
    program="mine --size 3",
)  # fmt: skip
PAIRS = [("scalar", "scalar"), ("packed", "packed")]
CHANGES = {
    "scenario": {"scenario": "S2"},
    "program": {"program": "other --size 3"},
    "weights": {"weights": "weights of /w.safetensors, layer 1"},
    "seed": {"seed": 1},
    "machine": {"machine": MACHINE | {"model_name": "CPU 2"}},
    "build": {"tools": PLAIN.tools | {"build": "portable"}},
    "compiler": {"tools": PLAIN.tools | {"c++": "clang 15"}},
    "threads": {"variants": {"packed": VariantFacts(4, "avx2")}},
    "path": {"variants": {"packed": VariantFacts(2, "avx512_vnni")}},
}


def names(new, old=PLAIN):
    """Names of what differs."""
    return [one.name for one in differences(old, new, PAIRS)]


def test_equals_differ_in_nothing():
    """Also with tuples on one side, as a machine read now has them, and other sources."""
    now = MACHINE | {"features": ("avx", "avx2"), "caches": ()}
    same = replace(PLAIN, machine=now, tools=PLAIN.tools | {"kernel sources": "bb"})
    assert names(same) == []
    assert remarks(PLAIN, same) == ("built-in C++ kernels: different sources in both sessions",)


@pytest.mark.parametrize("name", NAMES)
def test_each_difference_is_named(name):
    """Alone, in both directions, with both values."""
    other = replace(PLAIN, **CHANGES[name])
    assert names(other) == [name]
    assert names(PLAIN, other) == [name]
    (found,) = differences(PLAIN, other, PAIRS)
    assert found.old != found.new


@pytest.mark.parametrize("flags", ["CXX", "CXXFLAGS", "LDFLAGS"])
def test_compiler_flags_count(flags):
    """By the variables that choose them."""
    other = replace(PLAIN, environment={flags: "-O1"})
    (found,) = differences(PLAIN, other, PAIRS)
    assert found.text == f"compiler (no {flags}; {flags}=-O1)"
    assert remarks(PLAIN, other) == remarks(PLAIN, PLAIN)


@pytest.mark.parametrize("fact", ["features", "usable_cpus", "governors", "turbo", "caches"])
def test_a_machine_is_more_than_its_name(fact):
    """Another hypervisor, another CPU set, another clock control."""
    one = replace(PLAIN, machine=MACHINE | {fact: ["a"] if fact != "turbo" else True})
    other = replace(PLAIN, machine=MACHINE | {fact: ["b"] if fact != "turbo" else False})
    assert names(one, other) == ["machine"]


def test_a_fact_that_one_side_lacks_is_no_difference():
    """Sessions of older versions know less."""
    older = replace(PLAIN, machine={"model_name": "CPU 1"}, tools={})
    assert names(older) == []


def test_settings_of_libraries_are_told():
    """OMP_WAIT_POLICY may be what is tried: no refusal."""
    other = replace(PLAIN, environment={"OMP_WAIT_POLICY": "passive"})
    assert names(other) == []
    assert "OMP_WAIT_POLICY differs: unset; passive" in remarks(PLAIN, other)


def test_imported_figures_are_of_an_unknown_machine():
    """Not comparable with one measured here; with each other, but the reader is told."""
    imported = replace(PLAIN, imported=True, machine=MACHINE | {"model_name": "any"}, seed=3)
    assert names(imported) == ["machine"]
    assert names(imported, imported) == []
    assert any("check them" in text for text in remarks(imported, imported))


def test_an_unknown_scenario_is_a_difference():
    """A log that does not tell its sizes."""
    (found,) = differences(PLAIN, replace(PLAIN, scenario=""), PAIRS)
    assert found.text == "scenario (S1; unknown)"


def test_other_variants_may_run_on_other_paths():
    """openmp's native against packed's avx2 is what is compared."""
    new = replace(PLAIN, variants={"dispatched": VariantFacts(2, "avx512_vnni")})
    assert differences(PLAIN, new, [("packed", "dispatched")]) == ()


def test_weights_of_a_file_are_known_by_their_row(tmp_path):
    """A preset's row, and no row, are of seeded weights."""
    saved = sessions.load(made_sessions.save(tmp_path / "s", "bench", []))
    origin = f"{weights_text('/w.safetensors', 1)}; plain sizes; softmax scores"
    found = [
        identity(saved.manifest, [row("layer", None, "", source=text)]).weights
        for text in (origin, "a model's config.json: softmax scores")
    ]
    assert found == ["weights of /w.safetensors, layer 1", ""]
    assert identity(saved.manifest, []).weights == ""
