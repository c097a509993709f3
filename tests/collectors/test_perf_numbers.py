"""Numbers of every locale: what perf's printf writes is what the reader returns."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moe_prof.collectors.perf_numbers import parse_grouped, parse_plain

# (digit grouping, decimal mark) of glibc locales: C, en_US, de_DE, fr_FR, fr_CH, de_CH, pl_PL...
LOCALES = [
    ("", "."), (",", "."), (".", ","), ("\u202f", ","), ("\u00a0", ","), (" ", ","),
    ("\u2019", "."), ("'", "."), ("\u2009", "."), ("", ","),
]  # fmt: skip


def grouped(digits: str, mark: str) -> str:
    """Digits in groups of three."""
    head = len(digits) % 3
    parts = [digits[:head]] if head else []
    parts += [digits[i : i + 3] for i in range(head, len(digits), 3)]
    return mark.join(parts)


def lakh(digits: str) -> str:
    """Digits as in India: the last three, then groups of two."""
    head, tail = digits[:-3], digits[-3:]
    parts = []
    while head:
        parts.insert(0, head[-2:])
        head = head[:-2]
    return ",".join([*parts, tail])


@settings(deadline=None)
@given(st.integers(0, 2**53), st.sampled_from(LOCALES))
def test_counts_round_trip(value: int, locale: tuple[str, str]) -> None:
    """A count printed in any locale is read back exactly."""
    assert parse_grouped(grouped(str(value), locale[0])) == value


@settings(deadline=None)
@given(st.integers(0, 2**50), st.sampled_from(LOCALES))
def test_scaled_values_round_trip(cents: int, locale: tuple[str, str]) -> None:
    """A value with two decimals printed in any locale is read back exactly."""
    text = f"{grouped(str(cents // 100), locale[0])}{locale[1]}{cents % 100:02d}"

    assert parse_grouped(text) == float(f"{cents // 100}.{cents % 100:02d}")


@settings(deadline=None)
@given(st.integers(0, 2**53))
def test_indian_grouping_round_trips(value: int) -> None:
    """Groups of two before the last three digits."""
    assert parse_grouped(lakh(str(value))) == value


@settings(deadline=None)
@given(st.floats(0, 1e12), st.sampled_from([".", ","]))
def test_plain_numbers_round_trip(value: float, mark: str) -> None:
    """A number without grouping keeps its decimals under either decimal mark."""
    text = f"{value:.6f}"

    assert parse_plain(text.replace(".", mark)) == float(text)


@settings(deadline=None)
@given(st.integers(1, 2**40))
def test_negative_counts_keep_their_sign(value: int) -> None:
    """A counter that was set back can be negative."""
    assert parse_grouped(f"-{value:,}") == -value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,234", 1234.0),
        ("1.234", 1234.0),
        ("0.123", 0.123),
        ("0,859772", 0.859772),
        ("1234.567891", 1234.567891),
        ("100,00", 100.0),
        ("12,34,567.89", 1234567.89),
        ("1 234,5", 1234.5),
        ("-0.5", -0.5),
    ],
)
def test_one_mark_groups_only_before_three_digits(text: str, expected: float) -> None:
    """A lone mark groups before exactly three digits, otherwise it is the decimal mark."""
    assert parse_grouped(text) == expected


@pytest.mark.parametrize("text", ["", "-", "1,2,3", "1.23.4", "12a", "1,234,56", "’123", "1..2"])
def test_malformed_numbers_are_refused(text: str) -> None:
    """What no locale prints is no number."""
    with pytest.raises(ValueError, match="is not a"):
        parse_grouped(text)


@pytest.mark.parametrize("read", [parse_plain, parse_grouped])
@pytest.mark.parametrize("text", ["nan", "-nan", "NaN"])
def test_nan_is_read_as_nan(read: object, text: str) -> None:
    """perf prints nan for a division by zero."""
    assert math.isnan(read(text))  # type: ignore[operator]


@pytest.mark.parametrize("text", ["1 234", "1,234,567", "0x10", "<not counted>", "1_000"])
def test_plain_numbers_have_no_grouping(text: str) -> None:
    """Where grouping cannot occur it is refused instead of guessed at."""
    with pytest.raises(ValueError, match="is not a number"):
        parse_plain(text)
