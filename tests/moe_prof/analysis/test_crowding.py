"""Other programs on the CPUs that a team wanted."""

import pytest

from moe_prof.analysis.crowding import OTHERS, SHARED, is_crowded, used_by_others, warning
from moe_prof.analysis.query import RowIndex
from tests.moe_prof.topdown.made import row


@pytest.mark.parametrize(
    ("threads", "cpus", "others", "crowded"),
    [
        (2, 2, 0.1, False),
        (2, 2, 0.5, True),
        (1, 2, 0.9, False),
        (1, 2, 1.9, True),
        (64, 64, 0.5, True),
        (99, 2, 0.1, False),
        (2, None, 1.0, False),
        (2, 2, None, False),
    ],
)
def test_a_team_is_crowded_where_others_take_its_cpus(threads, cpus, others, crowded):
    """Free CPUs are no crowd, unknown ones neither, and own surplus threads are not others."""
    assert is_crowded(threads, cpus, others) == crowded


def crowd(others, variant="", **more):
    """Rows of two shared CPUs."""
    return [row(OTHERS, others, variant, **more), row(SHARED, 2.0, variant, **more)]


def test_the_worst_stretch_counts():
    """Idle while the times were taken, crowded while the waiting was."""
    index = RowIndex([*crowd(0.1), *crowd(1.3, "openmp"), row("threads", 2.0, "openmp")])
    assert used_by_others(index, "openmp") == 1.3
    assert warning(index, ["openmp"]).startswith("other programs kept 1.3 of 2 CPUs busy")


def test_phases_alone_tell_of_a_crowd():
    """Where nothing but a calibration was timed, others were seen during the phases only."""
    index = RowIndex([*crowd(1.3, "openmp"), row("threads", 2.0, "openmp")])
    assert warning(index, ["scalar", "openmp"]).startswith("other programs kept 1.3 of 2 CPUs busy")


def test_an_idle_machine_needs_no_warning():
    """Nor one whose other programs left enough CPUs."""
    index = RowIndex([*crowd(0.9), row("threads", 1.0, "scalar")])
    assert warning(index, ["scalar"]) == ""
    assert warning(RowIndex([row("threads", 2.0)]), ["scalar"]) == ""
