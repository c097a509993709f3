"""Recognising cores from numbers and feature flags."""

from __future__ import annotations

import pytest

from moe_prof.machine import microarchitecture as table
from moe_prof.machine.tree import cpu_list

AVX512 = frozenset({"avx2", "avx512f", "avx512_vnni"})


@pytest.mark.parametrize(
    ("vendor", "numbers", "features", "name"),
    [
        (table.INTEL, (6, 85, 4), frozenset({"avx512f"}), "skylake-server"),
        (table.INTEL, (6, 85, 7), AVX512, "cascadelake"),
        (table.INTEL, (6, 85, 11), AVX512 | {"avx512_bf16"}, "cooperlake"),
        (table.INTEL, (6, 106, 6), AVX512 | {"avx512_vbmi2"}, "icelake-server"),
        (table.INTEL, (6, 143, 8), AVX512 | {"amx_int8"}, "sapphirerapids"),
        (table.INTEL, (6, 207, 2), AVX512 | {"amx_int8"}, "emeraldrapids"),
        (table.INTEL, (6, 173, 1), AVX512 | {"amx_int8", "amx_fp16"}, "graniterapids"),
        (table.INTEL, (6, 9999, 0), AVX512 | {"avx512_vbmi2"}, "icelake-server"),
        (table.INTEL, (6, 9999, 0), frozenset({"avx2"}), None),
        (table.AMD, (25, 1, 1), frozenset({"avx2", "vaes"}), "zen3"),
        (table.AMD, (25, 17, 1), AVX512, "zen4"),
        (table.AMD, (25, 97, 2), AVX512, "zen4"),
        (table.AMD, (26, 2, 1), AVX512 | {"avx_vnni"}, "zen5"),
        (table.AMD, (23, 49, 0), frozenset({"avx2", "clwb"}), "zen2"),
        (table.AMD, (25, 1, 1), frozenset({"avx2"}), "zen3"),
        ("HygonGenuine", (24, 1, 1), frozenset({"avx2"}), None),
        ("", (None, None, None), frozenset(), None),
    ],
)
def test_x86_cores(vendor, numbers, features, name):
    """Listed models, masked models and unknown ones."""
    family, model, stepping = numbers
    found = table.identify_x86(
        vendor, family, model, stepping=stepping, features=features, l1i_bytes=32 << 10
    )
    assert (found.core.name if found.core else None) == name


@pytest.mark.parametrize(
    ("implementer", "part", "name"),
    [
        ("0x41", 0xD0C, "neoverse-n1"),
        ("0x41", 0xD40, "neoverse-v1"),
        ("0x41", 0xD49, "neoverse-n2"),
        ("0x41", 0xD4F, "neoverse-v2"),
        ("0x41", 0x1, None),
        ("0xc0", 0xD0C, None),
    ],
)
def test_arm_cores(implementer, part, name):
    """Only Arm's own implementer code gives its part numbers their meaning."""
    found = table.identify_arm(implementer, part)
    assert (found.core.name if found.core else None) == name


def test_unknown_says_what_was_seen():
    """The reason names the numbers, so that a row can be added."""
    assert table.identify_arm("0xc0", 0xAC3).basis == (
        "unknown: implementer 0xc0 part 0xac3 is not listed"
    )


def test_every_row_has_a_source_and_a_unique_name():
    """A figure without a source has no place in the table."""
    assert all(core.source for core in table.CORES)
    assert len(table.BY_NAME) == len(table.CORES)


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("0-3,8", (0, 1, 2, 3, 8)), ("5", (5,)), ("", ()), ("0-", ()), ("a", ()), ("0, 2", (0, 2))],
)
def test_cpu_lists(text, cpus):
    """The kernel's list format; malformed text gives no CPUs."""
    assert cpu_list(text) == cpus
