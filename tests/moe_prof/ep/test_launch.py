"""What the launcher says became of the ranks, from signs and mpirun's words; nothing is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from moe_prof.ep import launch, mpi, signs
from moe_prof.ep.launch import Watch, argv_for, what_happened
from moe_prof.ep.signs import Sign
from moe_prof.errors import InputError, PeerError, UnavailableError, WorkloadError
from moe_prof.progress import SILENT

HYDRA = """
===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID 101 RUNNING AT node1
=   EXIT CODE: 9
=   CLEANING UP REMAINING PROCESSES
=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES
===================================================================================
YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)
This typically refers to a problem with your application.
"""
OPEN_MPI = (
    "mpirun noticed that process rank 2 with PID 0 on node node1 exited on signal 9 (Killed).\n"
)


def sign(rank, status=None, text="", named=()):
    """A rank's last sign; its process number is 100 + rank."""
    return Sign(rank, 100 + rank, "node1", "fused, call 7", status, text, named)


def watch(tmp_path, ranks=3):
    """A watch over nobody."""
    return Watch(tmp_path, ranks, 5.0, SILENT)


def test_all_finished_is_no_error(tmp_path):
    """Ranks that all ended well are nothing to talk of."""
    found = {rank: sign(rank, 0) for rank in range(3)}
    assert what_happened(found, 3, "", 0, watch(tmp_path)) is None


@pytest.mark.parametrize(("said", "rank"), [(HYDRA, 1), (OPEN_MPI, 2)])
def test_a_rank_that_was_killed_is_named(tmp_path, said, rank):
    """The rank that mpirun tells of, by number or by process, with what it was doing."""
    error = what_happened({r: sign(r) for r in range(3)}, 3, said, 9, watch(tmp_path))
    assert isinstance(error, WorkloadError)
    assert f"rank {rank} of 3 died" in str(error)
    assert "signal 9" in str(error) or "Killed" in str(error)
    assert "(last: fused, call 7)" in str(error)


def test_a_rank_that_left_without_a_word_is_named_by_who_was_gone_first(tmp_path):
    """Where mpirun says nothing, the first process to be gone is the one."""
    seen = watch(tmp_path)
    seen.first_gone = 2
    error = what_happened({r: sign(r) for r in range(3)}, 3, "", 7, seen)
    assert "rank 2 of 3 ended with exit code 7" in str(error)


def test_a_rank_that_left_without_a_word_is_named_by_its_exit_code(tmp_path):
    """MPICH lists the wait statuses; those that it killed itself have 9."""
    said = "[mpiexec@node1] Exit codes: [node1] 9,9 [node2] 1792\n"
    error = what_happened({r: sign(r) for r in range(3)}, 3, said, 7, watch(tmp_path))
    assert "rank 2 of 3 ended with exit code 7" in str(error)


def test_an_error_of_a_rank_keeps_its_class(tmp_path):
    """What ranks raised themselves is raised again, not what mpirun says of its cleaning up."""
    found = {0: sign(0, 1, "rank 1: bad id"), 1: sign(1, 1, "rank 1: bad id"), 2: sign(2)}
    error = what_happened(found, 3, HYDRA, 1, watch(tmp_path))
    assert isinstance(error, InputError)
    assert str(error) == "rank 1: bad id"


def test_who_names_a_lost_rank_is_heard_first(tmp_path):
    """Of several errors the one that names a rank counts."""
    found = {0: sign(0, 6, "something"), 1: sign(1, 6, "rank 2 did not answer", (2,)), 2: sign(2)}
    assert str(what_happened(found, 3, "", 6, watch(tmp_path))) == "rank 2 did not answer"


def test_ranks_that_never_came_are_named(tmp_path):
    """A rank without a sign is named, with mpirun's last words."""
    seen = watch(tmp_path)
    seen.never_came = (1,)
    error = what_happened({0: sign(0)}, 2, "cannot fork\n", 1, seen)
    assert "rank 1 of 2 did not start" in str(error)
    assert "cannot fork" in str(error)


def test_mpirun_that_fails_before_the_ranks_says_why(tmp_path):
    """Its last words stand in the error."""
    error = what_happened({}, 2, "no such option\n", 255, watch(tmp_path))
    assert "code 255 before ranks 0, 1 of 2" in str(error)
    assert "no such option" in str(error)


def test_signs_travel_as_whole_files(tmp_path):
    """What a rank writes is read back; what is not there is left out."""
    writer = signs.Writer(tmp_path, 1)
    writer.stage("fused")
    writer.end(PeerError.exit_code, "rank 0 did not answer", (0,))
    found = signs.read(tmp_path, 2)
    assert set(found) == {1}
    assert (found[1].stage, found[1].status, found[1].named) == ("fused", 6, (0,))


def test_open_mpi_gets_leave_to_outnumber_cpus():
    """Hydra needs no flags, Open MPI does."""
    plain = argv_for(Path("mpirun"), 4, Path("job"), open_mpi=False)
    assert plain[:4] == ["mpirun", "-print-all-exitcodes", "-n", "4"]
    assert "-print-all-exitcodes" in plain
    assert "--oversubscribe" in argv_for(Path("mpirun"), 4, Path("job"), open_mpi=True)


def test_missing_mpi_names_the_line_that_installs_it(monkeypatch, tmp_path):
    """One clear line, exit code 3."""
    monkeypatch.setattr(mpi.sys, "prefix", str(tmp_path))
    monkeypatch.setattr(mpi, "why_no_mpi4py", lambda: "")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnavailableError, match=r"there is no mpirun.*pip install") as caught:
        mpi.require_mpirun()
    assert caught.value.exit_code == 3
    monkeypatch.setattr(mpi, "why_no_mpi4py", lambda: "mpi4py is not installed")
    with pytest.raises(UnavailableError, match=r"mpi4py is not installed.*pip install"):
        mpi.load()


@pytest.mark.parametrize(
    ("known", "place"),
    [
        ({"PMI_RANK": "2", "PMI_SIZE": "4"}, (2, 4)),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}, (1, 2)),
        ({"PMI_RANK": "x", "PMI_SIZE": "4"}, None),
        ({}, None),
    ],
)
def test_the_place_that_a_process_manager_gave(known, place):
    """Rank and size from the variables of MPICH and Open MPI; None without them."""
    found = mpi.launched(known)
    assert (None if found is None else (found.rank, found.size)) == place


def test_an_outer_mpirun_is_hidden_from_an_inner_one():
    """Its variables would make the inner ranks believe that they belong to it."""
    known = {"PMI_RANK": "0", "PMI_FD": "9", "OMPI_X": "1", "PATH": "/bin"}
    assert mpi.own_environment(known) == {"PATH": "/bin"}
    assert "PYTHONPATH" in launch._environment()
