"""Choosing variants and paths from a command's options."""

import argparse

import pytest

from moe_prof import kernels
from moe_prof.commands.workload import choose_variants, isa_for, workload_from
from moe_prof.errors import UsageError
from moe_prof.machine import read


def test_all_is_what_runs_here():
    """``all`` follows the table."""
    names, _ = choose_variants("all", None)
    assert names == kernels.variants()


def test_names_keep_their_order_once():
    """A list is taken as given, without repeats."""
    assert choose_variants("openmp, scalar,openmp", None)[0] == ("openmp", "scalar")


@pytest.mark.parametrize(
    ("text", "words"),
    [("nonsense", "known variants: scalar"), (",", "names no variant"), ("scalar,x", "'x'")],
)
def test_refuses_unknown(text, words):
    """An unknown name lists the known ones."""
    with pytest.raises(UsageError) as caught:
        choose_variants(text, None)
    assert words in str(caught.value)


def test_forced_path_leaves_variants_out_with_reason():
    """On the portable path variants without it are named."""
    names, left_out = choose_variants("all", "portable")
    assert "scalar" in names
    assert "numba-parallel" not in names
    assert "has no path 'portable'" in dict(left_out)["numba-parallel"]


def test_unknown_path_is_refused():
    """A path that does not exist lists the known ones."""
    with pytest.raises(UsageError, match="known paths"):
        choose_variants("all", "mmx")


def test_baseline_keeps_its_path():
    """A forced path does not take the baseline away."""
    assert isa_for("scalar", "avx2") is None
    assert isa_for("autovec", "portable") == "portable"


def test_the_environments_path_is_forced_as_the_options(monkeypatch):
    """MOE_PROF_ISA stands in for --isa."""
    monkeypatch.setenv("MOE_PROF_ISA", "portable")
    args = argparse.Namespace(scenario="S1", variant="all", isa=None, threads=1, seed=0)
    work = workload_from(args, read())
    assert (work.isa, work.variants) == ("portable", choose_variants("all", "portable")[0])


def test_too_large_a_scenario_says_how_much_it_needs():
    """Memory is checked before anything is allocated."""
    args = argparse.Namespace(
        scenario="1,100000,100000,512,2", variant="scalar", isa=None, threads=1, seed=0
    )
    with pytest.raises(UsageError, match=r"needs \d+\.\d GiB of memory"):
        workload_from(args, read())
