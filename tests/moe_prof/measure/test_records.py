"""Records of variants, filled from events."""

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
