"""Time planning: who gets how many rounds."""

import pytest

from moe_prof.measure.schedule import ROUNDS_PER_PROCESS, Cost, interval_s, is_due, plan, split

FAST, SLOW = Cost("fast", 0.02), Cost("slow", 0.7)


def spent_s(schedule, costs):
    """Seconds that the samples of one process take."""
    return sum(schedule.rounds[cost.variant] * cost.sample_s for cost in costs)


def test_plenty_of_time_gives_the_full_number_of_rounds():
    """No variant gets more rounds than are useful."""
    schedule = plan(1000.0, [FAST, SLOW], setup_s=1.0, processes=3)
    assert schedule.processes == 3
    assert schedule.rounds == {"fast": ROUNDS_PER_PROCESS, "slow": ROUNDS_PER_PROCESS}


def test_slow_baseline_gets_fewer_rounds():
    """The fast variant keeps its rounds, the slow one gets what an interval needs."""
    schedule = plan(8.0, [SLOW, FAST], setup_s=1.0, processes=3)
    assert schedule.rounds["fast"] == ROUNDS_PER_PROCESS
    assert schedule.processes * schedule.rounds["slow"] >= 6
    assert schedule.rounds["slow"] < 10


def test_expensive_setup_reduces_the_processes():
    """Processes that would eat the samples' time are left out."""
    assert plan(10.0, [FAST, SLOW], setup_s=6.0, processes=3).processes == 1


@pytest.mark.parametrize("budget_s", [0.5, 1.0, 3.0, 5.0, 20.0, 60.0])
@pytest.mark.parametrize("setup_s", [0.1, 2.0])
def test_a_limit_is_kept(budget_s, setup_s):
    """Samples and later setups fit the budget whenever it is a limit."""
    costs = [Cost("a", 0.021), Cost("b", 0.035), Cost("c", 0.7), Cost("d", 4.0)]
    schedule = plan(budget_s, costs, setup_s=setup_s, processes=3)
    whole_s = schedule.processes * spent_s(schedule, costs) + (schedule.processes - 1) * setup_s
    assert whole_s <= budget_s + 1e-9


def test_one_sample_of_each_comes_before_intervals():
    """A tight limit still leaves the slow baseline a sample: without it there are no speedups."""
    costs = [Cost("fast", 0.02), Cost("middle", 0.3), Cost("slow", 0.7)]
    schedule = plan(1.5, costs, setup_s=1.0, processes=3)
    assert schedule.rounds == {"fast": 8, "middle": 2, "slow": 1}


def test_no_room_gives_no_rounds():
    """Under a limit, a variant slower than the budget is not measured at all."""
    assert plan(0.5, [FAST, SLOW], setup_s=1.0, processes=3).rounds["slow"] == 0


def test_a_wish_measures_everything_once():
    """Without a limit, the slowest variant is measured however long it takes."""
    schedule = plan(0.5, [FAST, SLOW], setup_s=1.0, processes=3, at_least=1)
    assert schedule.rounds["slow"] == 1


def test_earlier_samples_count():
    """What a former process has measured need not be measured again."""
    assert interval_s([SLOW]) == pytest.approx(6 * 0.7)
    assert interval_s([Cost("slow", 0.7, have=4)]) == pytest.approx(2 * 0.7)


def test_nothing_to_measure():
    """An empty list is a schedule of no rounds."""
    assert plan(5.0, [], setup_s=0.1, processes=2).total == 0


@pytest.mark.parametrize(
    ("repeat", "processes", "parts"),
    [(1, 3, [1]), (2, 3, [1, 1]), (7, 3, [3, 2, 2]), (30, 3, [10, 10, 10])],
)
def test_split(repeat, processes, parts):
    """A forced number of rounds is kept exactly."""
    assert split(repeat, processes) == parts


@pytest.mark.parametrize(("rounds", "total"), [(1, 20), (3, 20), (20, 20), (0, 20), (7, 9)])
def test_due_rounds_are_as_many_as_planned(rounds, total):
    """Every planned sample is taken, once."""
    assert sum(is_due(index, rounds, total) for index in range(total)) == rounds


def test_due_rounds_are_spread():
    """Two samples in 20 rounds stand in the middle of each half."""
    due = [index for index in range(20) if is_due(index, 2, 20)]
    assert due == [4, 14]
