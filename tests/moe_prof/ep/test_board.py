"""The noticeboard: ranks are threads over one array here, so that nothing depends on MPI."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from moe_prof.ep.board import NOTICE_BYTES, TEXT_BYTES, Board, agree
from moe_prof.errors import InputError, PeerError, UsageError, WorkloadError

DEADLINE_S = 20.0  # only broken code waits for it


class OneArray:
    """A carrier whose copies are all the same memory."""

    def __init__(self, notices):
        self.notices = notices

    def publish(self, start, stop):
        """Nothing to bring anywhere."""

    def publish_word(self, at):
        """Nothing to bring anywhere."""

    def refresh(self):
        """Let other threads run."""
        time.sleep(0)


def boards(size, *, deadline_s=DEADLINE_S):
    """The boards of all ranks."""
    notices = np.zeros((size, NOTICE_BYTES), np.uint8)
    return [
        Board(OneArray(notices), rank, size, deadline_s=deadline_s, yields=True)
        for rank in range(size)
    ]


def on_all(made, work):
    """Run ``work(board)`` on a thread for each; returns results or the errors raised."""
    found = [None] * len(made)

    def run(rank):
        try:
            found[rank] = work(made[rank])
        except Exception as error:  # noqa: BLE001  (it is what the tests look at)
            found[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(len(made))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    return found


def test_all_ranks_read_what_each_told():
    """A meeting gives every rank the texts of all, many times in a row, however they race."""

    def work(board):
        told = []
        for number in range(200):
            told.append([one.text for one in board.meet(f"{board.rank}:{number}")])
        return told

    for told in on_all(boards(3), work):
        assert told == [[f"{rank}:{number}" for rank in range(3)] for number in range(200)]


def test_an_error_of_one_is_raised_on_all():
    """Everybody raises the class and the words of the rank that failed, with its number."""

    def work(board):
        status = InputError.exit_code if board.rank == 1 else 0
        board.meet("id 9 >= E" if status else "", status=status)

    found = on_all(boards(3), work)
    assert [type(one) for one in found] == [InputError] * 3
    assert {str(one) for one in found} == {"rank 1: id 9 >= E"}


def test_the_same_error_everywhere_names_no_rank():
    """What all ranks say alike is said once."""
    found = on_all(boards(2), lambda board: board.meet("no room", status=1))
    assert {str(one) for one in found} == {"no room"}


def test_a_rank_that_does_not_come_is_named_with_what_it_did():
    """After the deadline the error names the missing rank, and what it said last."""
    made = boards(3, deadline_s=0.2)
    made[2].stage("fused, call 7")
    found = on_all(made[:2], lambda board: board.meet())
    assert all(isinstance(one, PeerError) for one in found)
    assert all("rank 2 (last: fused, call 7) did not answer within 0.2 s" in str(e) for e in found)
    assert found[0].peer == 2


def test_who_gives_up_first_alarms_the_others():
    """An alarm ends the waiting of all at once, long before their own deadline, and for good."""
    made = boards(3)

    def work(board):
        if board.rank == 0:
            board.alarm(WorkloadError("rank 2 is gone"))
            return None
        started_s = time.monotonic()
        with pytest.raises(WorkloadError, match="rank 2 is gone"):
            board.meet()
        return time.monotonic() - started_s

    waited = on_all(made[:2], work)[1]
    assert waited < DEADLINE_S / 2
    with pytest.raises(WorkloadError, match="rank 2 is gone"):
        made[1].meet()


def test_a_long_text_is_cut_and_marked():
    """A text that has no room says so."""
    (board,) = boards(1)
    (told,) = board.meet("x" * 2 * TEXT_BYTES)
    assert len(told.text) == TEXT_BYTES
    assert told.text.endswith("x ...")


def test_equal_facts_agree():
    """Nothing happens where all ranks were set up alike."""
    assert on_all(boards(2), lambda board: agree(board, {"E": 8, "h": 512})) == [None, None]


def test_the_differing_rank_and_value_are_named_on_all_ranks():
    """The minority is named, with its value and that of the others."""

    def work(board):
        agree(board, {"E": 8, "h": 1024 if board.rank == 2 else 512})

    found = on_all(boards(4), work)
    assert all(isinstance(one, UsageError) for one in found)
    assert {str(one) for one in found} == {
        "rank 2 was set up differently: h is 1024 there, 512 elsewhere; all ranks need the same "
        "arguments"
    }
