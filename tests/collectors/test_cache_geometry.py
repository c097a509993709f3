"""Cache sizes that valgrind's simulator accepts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moe_prof.collectors.cache_geometry import (
    CacheGeometry,
    CacheSizes,
    cache_sizes,
    nearest_valid,
    simulated_caches,
)
from moe_prof.errors import InputError, UnavailableError
from moe_prof.machine.cpu import Cache


@pytest.mark.parametrize(
    "geometry",
    [
        CacheGeometry(32 << 10, 8, 64),
        CacheGeometry(48 << 10, 12, 64),
        CacheGeometry(2 << 20, 16, 64),
        CacheGeometry(64 << 10, 4, 128),
    ],
)
def test_a_valid_geometry_is_kept(geometry):
    """What the simulator accepts is not changed."""
    assert nearest_valid(geometry) == geometry


@pytest.mark.parametrize(
    ("asked", "simulated"),
    [
        (CacheGeometry(480 << 20, 16, 64), CacheGeometry(480 << 20, 15, 64)),
        (CacheGeometry(36 << 20, 12, 64), CacheGeometry(36 << 20, 9, 64)),
        (CacheGeometry(5 << 18, 20, 64), CacheGeometry(5 << 18, 20, 64)),
    ],
)
def test_the_size_is_kept_before_the_ways(asked, simulated):
    """With a number of sets that is no power of two, ways give way to size."""
    assert nearest_valid(asked) == simulated


@given(
    ways=st.integers(1, 64), sets=st.integers(1, 1 << 20), line=st.sampled_from([32, 64, 128, 256])
)
def test_every_result_has_a_power_of_two_of_sets(ways, sets, line):
    """The simulator's condition holds for any cache."""
    found = nearest_valid(CacheGeometry(ways * sets * line, ways, line))
    assert found.sets == int(found.sets)
    assert int(found.sets) & (int(found.sets) - 1) == 0


@given(ways=st.integers(1, 64), sets=st.integers(64, 1 << 20))
def test_the_size_changes_by_little(ways, sets):
    """At most by one way of the nearest power of two of sets."""
    asked = CacheGeometry(ways * sets * 64, ways, 64)
    found = nearest_valid(asked)
    assert abs(found.size_bytes - asked.size_bytes) <= asked.size_bytes / 2


def test_a_change_is_noted():
    """The note says what was asked for and what was simulated."""
    valid = CacheGeometry(32 << 10, 8, 64)
    sizes = CacheSizes(valid, valid, CacheGeometry(480 << 20, 16, 64), "L3")
    assert simulated_caches(sizes).notes == (
        "L3 cache of 503316480 B, 16-way, 64 B lines was simulated as "
        "503316480 B, 15-way, 64 B lines",
    )


def test_nothing_is_noted_for_valid_caches():
    """No change, no note."""
    valid = CacheGeometry(32 << 10, 8, 64)
    assert simulated_caches(CacheSizes(valid, valid, valid)).notes == ()


@pytest.mark.parametrize("sizes", [(0, 8, 64), (32768, 0, 64), (32768, 8, 0), (64, 8, 64)])
def test_impossible_caches_are_refused(sizes):
    """Zero, and a cache smaller than one set, are errors."""
    with pytest.raises(InputError, match="cache geometry"):
        CacheGeometry(*sizes)


def test_a_machines_caches_are_taken_over():
    """Level 1 is split, the chosen level stands for the last one."""
    caches = [
        Cache(1, "Data", 48 << 10, 12, 64, (0,)),
        Cache(1, "Instruction", 32 << 10, 8, 64, (0,)),
        Cache(2, "Unified", 2 << 20, 16, 64, (0,)),
        Cache(3, "Unified", 32 << 20, 16, 64, (0, 1)),
    ]
    assert cache_sizes(caches, last_level=2) == CacheSizes(
        CacheGeometry(32 << 10, 8, 64),
        CacheGeometry(48 << 10, 12, 64),
        CacheGeometry(2 << 20, 16, 64),
        "L2",
    )


@pytest.mark.parametrize("caches", [[], [Cache(1, "Instruction", 32 << 10, None, None, (0,))]])
def test_an_unknown_cache_is_unavailable(caches):
    """What the system does not tell is not made up."""
    with pytest.raises(UnavailableError, match="level 1 instruction"):
        cache_sizes(caches, last_level=2)
