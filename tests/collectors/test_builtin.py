"""Rows of the built-in collector."""

from dataclasses import replace

import pytest

from moe_prof.collectors.builtin import availability, phase_rows, timing_rows
from moe_prof.measure import Measurement, PhaseTimes, ThreadTimes, VariantTiming
from moe_prof.measure.crowd import Crowd
from moe_prof.scenario import SCENARIOS, Scenario

S3 = SCENARIOS["S3"]
S3_MACS = 63_438_848  # 128 * (256 * 16 + 3 * 256 * 128 * 5)


def timed(variant, forward_s, *, rounds=4, **changes):
    """A correct variant, timed in two processes without noise."""
    samples = {(p, r): forward_s for p in range(2) for r in range(rounds)}
    values = {
        "variant": variant, "status": "ok", "isa": "native", "threads": 2, "loops": 8,
        "info": {"microkernel": "mk"}, "rel_rmse": 1e-7, "worst_error": 2e-7, "worst_token": 5,
        "prepare_s": 0.1, "samples_s": samples, "cpu_s": {k: 2 * v for k, v in samples.items()},
    }  # fmt: skip
    return VariantTiming(**(values | changes))


def rows_of(*timings, scenario=S3, usable_cpus=2, crowd=None):
    """Summary rows by (variant, metric), and single samples by the same keys."""
    measurement = Measurement(
        timings=timings, processes=2, interrupted=False, checked_tokens=128, notes=(),
        elapsed_s=1.0, crowd=crowd,
    )  # fmt: skip
    rows = timing_rows(measurement, scenario, usable_cpus=usable_cpus)
    return {(r.variant, r.metric): r for r in rows if r.repeat is None}, [
        r for r in rows if r.repeat is not None
    ]


def test_it_is_always_usable():
    """A clock is everywhere."""
    assert availability().usable


def test_time_is_the_median_with_its_samples():
    """A summary with n and deviation, and one row a sample."""
    summary, samples = rows_of(timed("scalar", 1e-3))
    time = summary["scalar", "time"]
    assert (time.value, time.unit, time.n, time.stddev) == (1e-3, "s", 8, 0.0)
    assert [r.repeat for r in samples] == list(range(8))
    assert {r.metric for r in samples} == {"time"}


def test_time_interval_has_two_ends():
    """Without noise, both ends are the value."""
    summary, _ = rows_of(timed("scalar", 1e-3))
    ends = [summary["scalar", f"time_ci_{end}"].value for end in ("low", "high")]
    assert ends == [1e-3, 1e-3]


def test_cpu_time_counts_all_threads():
    """Twice the wall time on two busy threads."""
    summary, _ = rows_of(timed("scalar", 1e-3))
    assert summary["scalar", "cpu_time"].value == 2e-3


def test_speedups_name_their_baselines():
    """Over scalar and over autovec, with intervals."""
    summary, _ = rows_of(timed("scalar", 8e-3), timed("autovec", 4e-3), timed("packed", 1e-3))
    assert summary["packed", "speedup"].value == 8.0
    assert summary["packed", "speedup_ci_low"].value == 8.0
    assert summary["packed", "speedup_over_autovec"].value == 4.0
    assert summary["packed", "speedup_over_autovec_ci_high"].value == 4.0


def test_rate_counts_useful_macs():
    """S3 has 63.4 million of them."""
    summary, _ = rows_of(timed("scalar", 1e-3))
    assert summary["scalar", "macs_per_second"].value == pytest.approx(S3_MACS / 1e-3)


def test_no_tokens_have_no_rate():
    """Without work there is no rate, and nothing divides by it."""
    summary, _ = rows_of(timed("scalar", 1e-8), scenario=Scenario(0, 8, 8, 2, 1))
    assert ("scalar", "macs_per_second") not in summary


@pytest.mark.parametrize("status", ["wrong", "crashed", "hung", "failed", "no_time"])
def test_untrusted_variant_has_no_time_and_no_speedup(status):
    """Samples taken before it failed are not shown as its time; the reason is."""
    bad = timed("packed", 1e-3, status=status, reason="the reason")
    summary, samples = rows_of(timed("scalar", 8e-3), bad)
    for metric in ("time", "speedup", "macs_per_second"):
        row = summary["packed", metric]
        assert (row.value, row.provenance, row.source) == (None, "unavailable", "the reason")
    assert [r for r in samples if r.variant == "packed"] == []


def test_missing_baseline_is_named():
    """No scalar: no speedup, and why."""
    summary, _ = rows_of(timed("packed", 1e-3))
    assert summary["packed", "speedup"].source == "the baseline was not measured"


def test_baseline_without_time_passes_its_reason():
    """The speedup's reason is the baseline's."""
    scalar = timed("scalar", 1.0, status="no_time", reason="too slow", samples_s={})
    summary, _ = rows_of(scalar, timed("packed", 1e-3))
    assert summary["packed", "speedup"].source == "the baseline scalar has no time: too slow"


def test_few_samples_have_no_interval():
    """A median of four, and the reason why it has no interval."""
    summary, _ = rows_of(timed("scalar", 1e-3, rounds=2))
    assert summary["scalar", "time"].value == 1e-3
    low = summary["scalar", "time_ci_low"]
    assert (low.value, low.source) == (None, "4 samples; an interval needs at least 6")


def test_errors_against_the_oracle():
    """Both figures, the token and how many were compared."""
    summary, _ = rows_of(timed("scalar", 1e-3))
    assert summary["scalar", "rel_rmse"].value == 1e-7
    worst = summary["scalar", "worst_token"]
    assert (worst.value, worst.source) == (2e-7, "token 5; float64 oracle, 128 tokens")


def test_result_that_is_not_finite_is_out_of_bounds():
    """No number, but not unknown either."""
    bad = timed("packed", 1.0, status="wrong", reason="nan", rel_rmse=None, worst_error=None)
    row = rows_of(bad)[0]["packed", "rel_rmse"]
    assert (row.value, row.status) == (None, "out_of_bounds")


def test_identity_is_text():
    """ISA and microkernel are in ``source``."""
    summary, _ = rows_of(timed("packed", 1e-3))
    assert summary["packed", "isa"].source == "native"
    assert summary["packed", "microkernel"].source == "mk"
    assert summary["packed", "threads"].value == 2


def test_more_threads_than_cpus_are_out_of_bounds():
    """The row itself says that the machine was oversubscribed."""
    summary, _ = rows_of(timed("openmp", 1e-3, threads=99), timed("scalar", 1e-3, threads=1))
    row = summary["openmp", "threads"]
    assert (row.value, row.status) == (99, "out_of_bounds")
    assert row.source == "oversubscribed: 99 threads on 2 usable CPUs"
    assert summary["scalar", "threads"].status == "ok"


def test_use_by_other_programs_is_a_row():
    """A saved session says how crowded the machine was; unknown is no row, not 0."""
    summary, _ = rows_of(timed("scalar", 1e-3), crowd=Crowd(2, 1.3))
    assert summary["", "cpus_used_by_others"].value == 1.3
    assert summary["", "cpus_shared"].value == 2
    assert ("", "cpus_used_by_others") not in rows_of(timed("scalar", 1e-3))[0]


def test_a_noisy_speedup_is_below_the_threshold():
    """No value, a status of its own, and the width as the reason."""
    wild = {(0, r): (1e-3 if r % 2 else 9e-3) for r in range(9)}
    summary, _ = rows_of(timed("scalar", 1e-3), timed("packed", 1e-3, samples_s=wild))
    row = summary["packed", "speedup"]
    assert (row.value, row.status) == (None, "below_threshold")
    assert row.source.startswith("too noisy: the interval of the ")


def test_distance_from_the_fastest():
    """Twice its time without noise: separable; the fastest is not from itself."""
    summary, _ = rows_of(timed("scalar", 2e-3), timed("packed", 1e-3))
    assert summary["scalar", "time_over_fastest"].value == 2.0
    found = [summary[name, "slower_than_fastest"].value for name in ("scalar", "packed")]
    assert found == [1.0, 0.0]


TWO_THREADS = PhaseTimes(
    "openmp",
    threads=(
        ThreadTimes(3e-3, 1e-3, {"router": 1e-3, "down": 2e-3}),
        ThreadTimes(1e-3, 3e-3, {"router": 0.0, "down": 1e-3}),
    ),
    wall_s=4e-3,
    forwards=10,
)


def phase_values(times):
    """Values by (metric, phase, thread)."""
    return {(r.metric, r.phase, r.thread): r.value for r in phase_rows(times, S3)}


def test_phase_times_per_thread_and_summed():
    """Each thread's and the sum over threads."""
    values = phase_values(TWO_THREADS)
    assert values["phase_time", "router", "0"] == 1e-3
    assert values["phase_time", "down", "1"] == 1e-3
    assert values["phase_time", "down", None] == 3e-3


def test_phases_sum_to_the_busy_time():
    """Conserved: every busy second belongs to a phase."""
    values = phase_values(TWO_THREADS)
    phases = sum(v for (m, p, t), v in values.items() if m == "phase_time" and t is None)
    assert phases == pytest.approx(values["busy_time", None, None])


def test_spin_fraction_is_the_share_of_waiting():
    """4 ms of 8 thread-milliseconds."""
    assert phase_values(TWO_THREADS)["spin_fraction", None, None] == 0.5


def test_use_by_others_while_waiting_was_measured():
    """A row of the variant, beside its waiting."""
    values = phase_values(replace(TWO_THREADS, crowd=Crowd(2, 0.7)))
    assert values["cpus_used_by_others", None, None] == 0.7


def test_no_timers_give_reasons():
    """Every metric is there, without a value."""
    rows = phase_rows(PhaseTimes("numba-parallel", reason="no such build"), S3)
    assert {r.metric for r in rows} == {"phase_time", "busy_time", "wait_time", "spin_fraction"}
    assert {(r.value, r.provenance, r.source) for r in rows} == {
        (None, "unavailable", "no such build")
    }
