"""What commands share."""

import pytest
from rich.text import Text

from moe_prof.commands.base import Result, with_trouble


@pytest.mark.parametrize(("before", "after"), [(0, 1), (3, 3), (6, 6)])
def test_trouble_is_an_error_beside_the_result(before, after):
    """The exit code that is an answer stays; the rows stay in any case."""
    result = Result((), Text("x"), {}, exit_code=before, errors=("first",))
    told = with_trouble(result, "the session is incomplete")
    assert (told.exit_code, told.errors) == (after, ("first", "the session is incomplete"))


def test_no_trouble_changes_nothing():
    """The result as it was."""
    result = Result((), Text("x"), {})
    assert with_trouble(result, "") is result
