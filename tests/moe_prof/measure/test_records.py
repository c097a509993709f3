"""Records of variants, filled from events."""

import pytest

from moe_prof.measure import Job
from moe_prof.measure.records import Record


def sampled(count, **info):
    """A record with that many samples."""
    record = Record(Job("packed"))
    record.prepared({"info": info, "prepare_s": 0.1})
    for index in range(count):
        record.sampled({"round": index, "loops": 10, "wall_s": 1.0, "cpu_s": 2.0}, 0)
    return record


def verified(worst_error, *, correct=True):
    """The event of one comparison."""
    return {
        "rel_rmse": worst_error / 2, "worst_error": worst_error, "worst_token": 7,
        "correct": correct,
    }  # fmt: skip


def test_samples_are_per_forward():
    """Ten loops in one second of wall and two of CPU time."""
    timing = sampled(1).timing(1)
    assert timing.samples_s == {(0, 0): 0.1}
    assert timing.cpu_s == {(0, 0): 0.2}


def test_fewer_rounds_are_noted():
    """The note says in how many rounds it was measured."""
    assert sampled(3).timing(10).note == "3 of 10 rounds to fit the time"


def test_all_rounds_need_no_note():
    """Only the plan's own remark is left."""
    assert sampled(3, note="fell back").timing(3).note == "fell back"


def test_notes_are_joined():
    """The plan's remark comes first."""
    assert sampled(3, note="fell back").timing(10).note == (
        "fell back; 3 of 10 rounds to fit the time"
    )


def calibrated(**info):
    """A correct record that was calibrated and has no sample."""
    record = sampled(0, **info)
    record.verified(verified(1e-6))
    record.calibrated(
        {"loops": 4, "forward_s": 0.2, "cpu_s": 0.3, "sample_s": 0.9, "warmups": []}, 1
    )
    return record


@pytest.mark.parametrize("status", ["no_time", "interrupted"])
def test_calibration_is_a_sample_where_time_ran_out(status):
    """A slow baseline still has a time, with a remark where it is from."""
    record = calibrated(note="fell back")
    record.drop(status, "too slow")
    timing = record.timing(5)
    assert timing.trusted
    assert (timing.samples_s, timing.cpu_s) == ({(1, 0): 0.2}, {(1, 0): 0.3})
    assert timing.note == "fell back; one sample, taken while calibrating: too slow"


def test_calibration_is_no_sample_of_what_failed():
    """A variant that crashed has no time."""
    record = calibrated()
    record.drop("crashed", "killed by SIGSEGV")
    assert (record.timing(5).samples_s, record.timing(5).status) == ({}, "crashed")


def test_samples_stand_before_the_calibration():
    """Where there are samples the calibration is left out."""
    record = calibrated()
    record.sampled({"round": 0, "loops": 1, "wall_s": 1.0, "cpu_s": 1.0}, 1)
    record.drop("interrupted", "interrupted")
    assert record.timing(5).samples_s == {(1, 0): 1.0}


def test_worst_check_is_kept():
    """Of several comparisons, the largest error stays."""
    record = sampled(1)
    for error in (1e-6, 3e-6, 2e-6):
        record.verified(verified(error))
    assert record.timing(1).worst_error == 3e-6


def test_later_wrong_result_ends_trust():
    """Samples are kept, the variant is not trusted."""
    record = sampled(2)
    record.verified(verified(1e-6))
    record.verified(verified(0.5, correct=False))
    timing = record.timing(2)
    assert (timing.status, timing.trusted, len(timing.samples_s)) == ("wrong", False, 2)


def test_first_cause_stays():
    """A wrong variant that then crashes is still wrong."""
    record = sampled(0)
    record.drop("wrong", "first")
    record.drop("crashed", "second")
    assert (record.status, record.reason) == ("wrong", "first")
