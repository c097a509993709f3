"""Scenarios: names, sizes and what is refused."""

import pytest

from moe_prof.errors import UsageError
from moe_prof.scenario import SCENARIOS, Scenario, parse


def test_presets_have_the_published_shapes():
    """S1..S4 as in the layer's description."""
    assert {name: s.shape for name, s in SCENARIOS.items()} == {
        "S1": (1, 256, 128, 16, 4),
        "S2": (1, 1024, 512, 16, 4),
        "S3": (128, 256, 128, 16, 4),
        "S4": (1024, 512, 128, 512, 2),
    }


@pytest.mark.parametrize("text", ["S3", "s3", " S3 "])
def test_parse_name(text):
    """Names are found whatever their case."""
    assert parse(text) is SCENARIOS["S3"]


def test_parse_sizes():
    """Five sizes make a scenario whose label is the sizes."""
    scenario = parse("7, 9,31,5,2")
    assert (scenario.shape, scenario.label) == ((7, 9, 31, 5, 2), "7,9,31,5,2")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("S9", "use one of S1, S2, S3, S4"),
        ("", "unknown scenario"),
        ("1,2,3", "has 3 sizes; five are needed"),
        ("1,2,3,4,x", "whole number"),
        ("1,2,3,4,1.5", "whole number"),
        ("1,2,3,4,5", "K = 5 is larger than E = 4"),
        ("1,0,3,4,2", "D (d_model) = 0"),
        ("-1,2,3,4,2", "N (num_tokens) = -1"),
        ("1,2,3,4,0", "K (top_k) = 0"),
        ("1,99999999,3,4,2", "D (d_model) = 99999999"),
    ],
)
def test_parse_refuses(text, words):
    """A wrong scenario says what is wrong with it."""
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert words in str(caught.value)


def test_sizes_must_be_integers():
    """A float is no size, even a whole one."""
    with pytest.raises(UsageError, match="must be an integer"):
        Scenario(1.0, 2, 3, 4, 1)
