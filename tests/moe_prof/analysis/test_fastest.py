"""Which variants lead, read from rows."""

from moe_prof.analysis.fastest import SLOWER, Leaders, leaders, too_early_to_tell
from moe_prof.analysis.query import RowIndex
from moe_prof.rows import unavailable
from tests.moe_prof.topdown.made import row


def timed(name, time_s, slower, *, width=0.1, n=9):
    """Rows of a timed variant; ``width`` is that of its interval over its time."""
    return [
        row("time", time_s, name, n=n), row(SLOWER, float(slower), name),
        row("time_ci_low", time_s * (1 - width / 2), name),
        row("time_ci_high", time_s * (1 + width / 2), name),
    ]  # fmt: skip


def test_a_separable_winner_stands_alone():
    """The runner-up is told from it by the samples."""
    index = RowIndex([*timed("a", 2.0, True), *timed("b", 1.0, False)])
    assert leaders(index, ["a", "b"]) == Leaders(("b",), 1.0, noisy=False)


def test_equals_lead_together():
    """The lowest median first, the clearly slower one not at all."""
    rows = [*timed("a", 1.1, False), *timed("b", 1.0, False), *timed("c", 9.0, True)]
    assert leaders(RowIndex(rows), ["a", "b", "c"]) == Leaders(("b", "a"), 1.0, noisy=False)


def test_an_interval_wider_than_its_value_is_noise():
    """Nobody is called the fastest by it."""
    found = leaders(RowIndex(timed("a", 1.0, False, width=2.5)), ["a"])
    assert found is not None
    assert found.noisy


def test_nothing_timed():
    """No leaders."""
    index = RowIndex([unavailable("time", "s", "wrong", collector="t", variant="a")])
    assert leaders(index, ["a"]) is None


def test_single_samples_are_said():
    """Not an interval that does not exist."""
    index = RowIndex([*timed("a", 1.1, False, n=1), *timed("b", 1.0, False, n=1)])
    assert too_early_to_tell(index, ["a", "b"]).startswith("one sample each")
