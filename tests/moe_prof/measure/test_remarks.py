"""Warnings about the conditions of a measurement."""

from moe_prof.measure import VariantTiming
from moe_prof.measure.remarks import remarks


def timed(values, *, threads=1, **changes):
    """A trusted timing of one process."""
    samples = {(0, index): value for index, value in enumerate(values)}
    fields = {"variant": "scalar", "status": "ok", "threads": threads} | changes
    return VariantTiming(samples_s=samples, **fields)


QUIET = [1.0, 1.01, 1.02, 1.0, 1.01, 1.02, 1.0]
NOISY = [1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.5]


def test_narrow_intervals_need_no_remark():
    """Nothing to say."""
    assert remarks([timed(QUIET), timed(QUIET, threads=2, variant="openmp")]) == []


def test_wide_interval_is_named():
    """The noisy variant, not the quiet one."""
    (line,) = remarks([timed(QUIET), timed(NOISY, variant="openmp")])
    assert line.startswith("intervals wider than +-10 %: openmp;")


def test_one_sample_is_named():
    """A time without interval is told as such, with what would give one."""
    (line,) = remarks([timed(QUIET), timed([1.0], variant="openmp")])
    assert line.startswith("one sample: no interval for openmp; 6 samples give one")


def test_few_samples_are_named():
    """How few."""
    (line,) = remarks([timed(QUIET[:2]), timed(QUIET[:5], variant="openmp")])
    assert line.startswith("2..5 samples: no interval for scalar, openmp;")


def test_untrusted_timings_are_left_out():
    """A wrong variant's times are nobody's concern."""
    assert remarks([timed(NOISY, status="wrong", threads=8)]) == []
