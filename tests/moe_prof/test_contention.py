"""CPU time taken by others, from two readings of the counters."""

import pytest

from moe_prof.machine.contention import Moment, now, remark, taken_by_others

START = Moment(wall_s=100.0, busy_s=50.0, stolen_s=1.0, own_s=10.0)


def after(busy_s, own_s, stolen_s=0.0, wall_s=10.0):
    """Ten seconds later."""
    return Moment(100.0 + wall_s, 50.0 + busy_s, 1.0 + stolen_s, 10.0 + own_s)


@pytest.mark.parametrize(
    ("moment", "share"),
    [
        (after(10, 10), 0.0),
        (after(15, 10), 0.25),
        (after(10, 10, stolen_s=4), 0.2),
        (after(9, 10), 0.0),
        (after(40, 10), 1.0),
    ],
)
def test_share_of_two_cpus(moment, share):
    """Busy time that is not ours, and stolen time, over two CPUs for ten seconds."""
    assert taken_by_others(START, moment, 2) == pytest.approx(share)


def test_no_time_no_share():
    """Two readings at once say nothing."""
    assert taken_by_others(START, START, 2) is None


def test_counters_advance():
    """Real readings grow with work."""
    first = now()
    sum(i * i for i in range(300_000))
    assert now().own_s >= first.own_s


def test_remark_names_the_share():
    """A quiet machine gives no remark, a busy one its share."""
    assert remark(0.05) == ""
    assert "took 25% of" in remark(0.25)
