"""Values as people read them."""

import pytest

from moe_prof.units import share_text


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
