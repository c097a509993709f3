"""Weighted stacks: sums are conserved, the folded form comes back as it was written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moe_prof.collectors.stacks import (
    Frame,
    Profile,
    Stack,
    by_function,
    integer_weights,
    merged,
    parse_folded,
    read_folded,
    write_folded,
)
from moe_prof.errors import InputError


def stack(names: str, weight: float, thread: str = "") -> Stack:
    """A stack from ``a;b``."""
    return Stack(tuple(Frame(name) for name in names.split(";")), weight, 1, thread)


def profile(*stacks: Stack) -> Profile:
    """A profile of those stacks."""
    return Profile("test", "cycles", "samples", stacks)


def test_merging_conserves_weight_and_samples() -> None:
    """Equal stacks of one thread are added up, those of another thread are not."""
    found = merged([stack("a;b", 1), stack("a;b", 2), stack("a;b", 4, "1")])
    assert [(s.weight, s.samples) for s in found] == [(3, 2), (4, 1)]


def test_self_and_total_of_functions() -> None:
    """A recursive function's total counts each stack once."""
    found = by_function([stack("a;b;a", 3), stack("a;b", 2), stack("c", 1)])
    assert found == {("a", ""): (3, 5), ("b", ""): (2, 5), ("c", ""): (1, 1)}


def test_folded_comes_back() -> None:
    """Names with blanks, commas and templates survive, semicolons become colons."""
    text = write_folded(profile(stack("main;f<int, 4>(char const*)", 5, "0"), stack("g", 2)))
    assert text == "thread 0;main;f<int, 4>(char const*) 5\ng 2\n"
    again = parse_folded(text)
    assert [(s.thread, s.weight) for s in again.stacks] == [("0", 5), ("", 2)]
    assert write_folded(again) == text
    assert write_folded(profile(Stack((Frame("a;b"),), 1))) == "a:b 1\n"


def test_damaged_folded_lines_are_named() -> None:
    """Lines without a weight are told with their number; the rest is read."""
    complaints: list[tuple[int, str]] = []
    lines = ["a;b 3", "# comment", "a;c", "", "d 1.5"]
    found = list(read_folded(lines, lambda *what: complaints.append(what)))
    assert [s.weight for s in found] == [3, 1.5]
    assert [number for number, _ in complaints] == [3]


def test_no_folded_file() -> None:
    """A text without one weighted line is refused."""
    with pytest.raises(InputError, match="no folded profile"):
        parse_folded("hello\n")


@given(st.lists(st.floats(0, 1e6, allow_nan=False)))
def test_whole_weights_conserve_the_sum(weights: list[float]) -> None:
    """Whole weights differ by less than one from the exact ones and add up to their sum."""
    whole = integer_weights(weights)
    assert abs(sum(whole) - sum(weights)) <= 0.5 + 1e-6
    assert all(abs(a - b) <= 1.0 + 1e-6 for a, b in zip(whole, weights, strict=True))
