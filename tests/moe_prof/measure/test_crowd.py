"""Use of the machine by other programs."""

from moe_prof.measure.crowd import Crowd, Reading, average, between, parse_stat, read

STAT = """\
cpu  300 0 100 1600 40 0 0 20 50 0
cpu0 100 0 50 800 40 0 0 10 50 0
cpu1 200 0 50 800 0 0 0 10 0 0
intr 12345
ctxt 678
"""


def test_busy_time_leaves_out_idle_and_guest():
    """100+50+10 and 200+50+10 ticks; guest time is part of user time already."""
    assert parse_stat(STAT, 100, {0, 1}) == (4.2, 2)


def test_cpus_of_others_do_not_count():
    """A process bound to CPU 1 shares that one only, however busy the rest of the machine is."""
    assert parse_stat(STAT, 100, {1}) == (2.6, 1)


def test_no_cpu_lines():
    """Another system's file is no answer."""
    assert parse_stat("something else\n", 100, {0}) is None


def test_others_are_what_this_process_did_not_use():
    """Ten seconds, 15 CPU seconds in use, 9 of them by this process."""
    start, end = Reading(0.0, 100.0, 1.0, 2), Reading(10.0, 115.0, 10.0, 2)
    assert between(start, end) == Crowd(cpus=2, others=0.6)


def test_coarse_ticks_do_not_go_below_zero():
    """The process clock is finer than the machine's."""
    assert between(Reading(0.0, 0.0, 0.0, 2), Reading(1.0, 0.99, 1.0, 2)) == Crowd(2, 0.0)


def test_missing_reading_gives_nothing():
    """None, never 0."""
    assert between(None, Reading(1.0, 1.0, 1.0, 2)) is None


def test_a_moment_is_too_short():
    """Ticks of 10 ms say nothing about a tenth of a second."""
    assert between(Reading(0.0, 0.0, 0.0, 2), Reading(0.1, 0.2, 0.0, 2)) is None


def test_several_processes_are_averaged():
    """Each worker saw its own stretch; none seen is unknown, not 0."""
    assert average([Crowd(2, 0.5), Crowd(2, 1.5)]) == Crowd(2, 1.0)
    assert average([]) is None


def test_this_machine_can_be_read():
    """Linux has the file."""
    assert read().cpus >= 1
