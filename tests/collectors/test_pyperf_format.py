"""pyperf's JSON: units, several benchmarks, what is damaged."""

from __future__ import annotations

import json

import pytest

from moe_prof.collectors.pyperf_format import looks_like, parse
from moe_prof.errors import InputError

FILE = {
    "version": "1.0",
    "metadata": {"unit": "second", "command": "moe_bench 1 2"},
    "benchmarks": [
        {
            "metadata": {"name": "gemm"},
            "runs": [{"warmups": [[1, 0.5]]}, {"values": [0.25, 0.5]}, {"values": [1]}],
        },
        {"metadata": {"name": "peak", "unit": "byte"}, "runs": [{"values": [1024]}]},
    ],
}


def test_benchmarks() -> None:
    """Calibration runs have no values; a benchmark's own unit wins."""
    gemm, peak = parse(json.dumps(FILE))

    assert (gemm.name, gemm.unit, gemm.values, gemm.flat) == (
        "gemm", "s", ((0.25, 0.5), (1.0,)), (0.25, 0.5, 1.0),
    )  # fmt: skip
    assert (peak.name, peak.unit, gemm.command) == ("peak", "bytes", "moe_bench 1 2")


@pytest.mark.parametrize(
    "text",
    ["{", json.dumps(FILE)[:-20], '{"benchmarks": 3}',
     '{"benchmarks": [{"runs": [{"values": ["x"]}]}]}',
     '{"benchmarks": [{"runs": [{"values": [true]}]}]}', "[" * 100_000],
    ids=["brace", "cut", "number", "text", "bool", "nested"],
)  # fmt: skip
def test_damage(text: str) -> None:
    """One clear error."""
    with pytest.raises(InputError):
        parse(text)


def test_recognition() -> None:
    """Other JSON is not taken for pyperf's."""
    assert looks_like(json.dumps(FILE))
    assert not looks_like('{"a": 1}')
    assert not looks_like("benchmarks runs")
