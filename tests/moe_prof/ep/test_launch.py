"""What the launcher says became of the ranks, from signs and mpirun's words; nothing is started."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from moe_prof.ep import launch, mpi, signs
from moe_prof.ep.launch import Ended, mpirun_argv, what_happened
from moe_prof.ep.signs import Sign
from moe_prof.errors import InputError, PeerError, UnavailableError, WorkloadError


def sign(rank, status=None, text="", named=()):
    """A rank's last sign; its process number is 100 + rank."""
    return Sign(rank, 100 + rank, "node1", "fused, call 7", status, text, named)


def ended(codes, said="", returncode=9, never_came=()):
    """How mpirun ended."""
    return Ended(returncode, said, codes, never_came)


def test_all_finished_is_no_error():
    """Ranks that all ended well are nothing to talk of."""
    found = {rank: sign(rank, 0) for rank in range(3)}
    assert what_happened(found, 3, ended({0: 0, 1: 0, 2: 0}, returncode=0)) is None


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (137, "rank 1 of 3 died: Killed (signal 9)"),
        (139, "rank 1 of 3 died: Segmentation fault (signal 11)"),
        (7, "rank 1 of 3 ended with exit code 7"),
    ],
)
def test_a_rank_that_died_is_named(code, words):
    """It is the one that ended by itself without a word; those that mpirun killed have no code."""
    error = what_happened({r: sign(r) for r in range(3)}, 3, ended({1: code}))
    assert isinstance(error, WorkloadError)
    assert str(error).startswith(words)
    assert "(last: fused, call 7); the other ranks were ended" in str(error)


def test_an_error_of_a_rank_keeps_its_class():
    """What ranks raised themselves is raised again, though another one was killed then."""
    found = {0: sign(0, 1, "rank 1: bad id"), 1: sign(1, 1, "rank 1: bad id"), 2: sign(2)}
    error = what_happened(found, 3, ended({0: 1, 1: 1}))
    assert isinstance(error, InputError)
    assert str(error) == "rank 1: bad id"


def test_who_names_a_lost_rank_is_heard_first():
    """Of several errors the one that names a rank counts."""
    found = {0: sign(0, 6, "something"), 1: sign(1, 6, "rank 2 did not answer", (2,)), 2: sign(2)}
    assert str(what_happened(found, 3, ended({0: 6, 1: 6}))) == "rank 2 did not answer"


def test_ranks_that_never_came_are_named():
    """A rank without a sign is named, with mpirun's last words."""
    error = what_happened({0: sign(0)}, 2, ended({}, "cannot fork\n", never_came=(1,)))
    assert "rank 1 of 2 did not start" in str(error)
    assert "cannot fork" in str(error)


def test_mpirun_that_fails_before_the_ranks_says_why():
    """Its last words stand in the error."""
    error = what_happened({}, 2, ended({}, "no such option\n", 255))
    assert "code 255 before ranks 0, 1 of 2" in str(error)
    assert "no such option" in str(error)


@pytest.mark.parametrize(("words", "code"), [("exit 7", 7), ("kill -9 $$", 137), ("true", 0)])
def test_the_shell_above_a_rank_keeps_its_code(tmp_path, monkeypatch, words, code):
    """Also of one that was killed, under the number that the process manager gave."""
    monkeypatch.setattr(launch.sys, "executable", "/bin/sh")
    argv = [*launch.argv_for(tmp_path)[:5], "-c", words]
    done = subprocess.run(argv, env={"PMI_RANK": "2"}, check=False, capture_output=True)
    assert done.returncode == code
    assert signs.exit_codes(tmp_path, 3) == {2: code}


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
    plain = mpirun_argv(Path("mpirun"), 4, Path("job"), open_mpi=False)
    assert plain[:4] == ["mpirun", "-n", "4", "/bin/sh"]
    assert "--oversubscribe" in mpirun_argv(Path("mpirun"), 4, Path("job"), open_mpi=True)


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
