"""Warnings about the conditions of a measurement."""

from moe_prof.measure import VariantTiming
from moe_prof.measure.crowd import Crowd
from moe_prof.measure.remarks import remarks


def timed(values, *, threads=1, **changes):
    """A trusted timing of one process."""
    samples = {(0, index): value for index, value in enumerate(values)}
    fields = {"variant": "scalar", "status": "ok", "threads": threads} | changes
    return VariantTiming(samples_s=samples, **fields)


QUIET = [1.0, 1.01, 1.02, 1.0, 1.01, 1.02, 1.0]
NOISY = [1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.5]


def test_quiet_machine_needs_no_remark():
    """Narrow intervals, and others used less than the team left free."""
    timings = [timed(QUIET), timed(QUIET, threads=2, variant="openmp")]
    assert remarks(timings, [Crowd(4, 1.9)]) == []


def test_crowded_machine_is_named():
    """Two threads and 1.3 busy CPUs do not fit two CPUs."""
    (line,) = remarks([timed(QUIET, threads=2)], [Crowd(2, 1.2), Crowd(2, 1.4)])
    assert line.startswith("other programs kept 1.3 of 2 CPUs busy")


def test_unknown_crowd_is_no_crowd():
    """Nothing is said where nothing is known."""
    assert remarks([timed(QUIET, threads=64)], []) == []


def test_wide_interval_is_named():
    """The noisy variant, not the quiet one."""
    (line,) = remarks([timed(QUIET), timed(NOISY, variant="openmp")], [])
    assert line.startswith("intervals wider than +-10 %: openmp;")


def test_untrusted_timings_are_left_out():
    """A wrong variant's times are nobody's concern."""
    assert remarks([timed(NOISY, status="wrong", threads=8)], [Crowd(2, 2.0)]) == []
