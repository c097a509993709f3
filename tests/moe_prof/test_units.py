"""Values as people read them."""

import pytest

from moe_prof.units import byte_pair_text, digits_text, named_text, plural_text, share_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.75, "75.0 %"),
        (0.003, "0.3 %"),
        (0.0005, "0.1 %"),
        (0.0004, "0.04 %"),
        (4e-6, "0.0004 %"),
        (0.0, "0.0 %"),
        (None, "-"),
    ],
)
def test_shares_keep_a_significant_digit(value, text):
    """Little is not nothing; nothing is zero, and unknown a dash."""
    assert share_text(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(1234.0, "1234"), (217.4, "217"), (12.34, "12.3"), (1.234, "1.23"), (0.214, "0.21"),
     (0.005, "0.005"), (0.00325, "0.00325"), (0.0, "0.00")],
)  # fmt: skip
def test_digits_of_small_values_stay(value, text):
    """Half a percent is neither one nor none."""
    assert digits_text(value) == text


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [(2 << 20, 1 << 20, "2.00 / 1.00 MiB"), (512, 2048, "0.50 / 2.00 KiB"), (0, 3, "0 / 3 B")],
)
def test_pairs_of_bytes_share_a_unit(first, second, text):
    """That of the larger one."""
    assert byte_pair_text(first, second) == text


def test_one_is_no_plural():
    """Nor is nothing one thing."""
    counts = (0, 1, 2)
    assert [plural_text(count, "token") for count in counts] == ["0 tokens", "1 token", "2 tokens"]


def test_a_name_is_said_once():
    """A reason that begins with it stays as it is."""
    assert named_text("a.so", "a.so: wrong") == named_text("a.so", "wrong") == "a.so: wrong"
