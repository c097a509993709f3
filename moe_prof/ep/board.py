"""The noticeboard of a group: where ranks meet, tell errors, and learn who is missing.

Each rank has one notice: the number of its last meeting, what it is doing, and a text with a status
that is an error's exit code. Everybody has a copy of all notices. A meeting ends when every rank
has come to it; then all have seen the same texts, so that an error of one is raised on all. Whoever
waits longer than the deadline raises an error that names those that have not come and what they did
last, and alarms the others, which then stop waiting as well.

A notice has two bodies, used in turn: a rank that has come to meeting m + 1 may write there while a
slow one still reads that of m, and nobody can be two ahead. A third one holds the alarm. Numbers
are written after the body that they announce, as one aligned 64-bit word.

How the bytes travel is the carrier's concern.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from moe_prof.errors import (
    InputError,
    MoeProfError,
    PeerError,
    UnavailableError,
    UsageError,
    WorkloadError,
)

U8 = npt.NDArray[np.uint8]

HEAD_BYTES = 64
_MEETING_AT, _ALARM_AT, _STAGE_AT = 0, 8, 16
BODY_BYTES = 976
_TEXT_AT = 16
TEXT_BYTES = BODY_BYTES - _TEXT_AT
_ALARM_BODY = 2
NOTICE_BYTES = HEAD_BYTES + 3 * BODY_BYTES + 16
"""A multiple of 64, so that no two ranks write into one cache line."""
_PEER_STEP = 256
"""An alarm's status is an exit code, and that many times one more than the rank it is about."""
_SPINS = 200
"""Looks before the first yield where every rank has a CPU: some tens of microseconds."""
_NAP_AFTER_S, _NAP_S = 0.02, 0.0005


class Carrier(Protocol):
    """How notices travel. ``notices`` is (ranks, NOTICE_BYTES) uint8, this rank's copy of all."""

    notices: U8

    def publish(self, start: int, stop: int) -> None:
        """Bring bytes start..stop of this rank's notice to all, before what is published next."""

    def publish_word(self, at: int) -> None:
        """The same for one aligned 64-bit word, which nobody sees half."""

    def refresh(self) -> None:
        """Let what others published become visible here."""


@dataclass(frozen=True, slots=True)
class Notice:
    """What one rank told: status 0, or the exit code of its error, and a text."""

    rank: int
    status: int
    text: str


class Board:
    """One rank's view of the noticeboard.

    Args:
        yields: give the CPU away while waiting at once, since ranks outnumber CPUs.
    """

    def __init__(
        self, carrier: Carrier, rank: int, size: int, *, deadline_s: float, yields: bool
    ) -> None:
        self._carrier, self.rank, self.size = carrier, rank, size
        self.deadline_s = deadline_s
        self._yields = yields
        self._meeting = 0
        words = carrier.notices.view(np.int64)
        self._meetings = words[:, _MEETING_AT // 8]
        self._alarms = words[:, _ALARM_AT // 8]
        self.lost: MoeProfError | None = None

    def stage(self, text: str) -> None:
        """Tell what this rank does next, without waiting for anybody."""
        body = text.encode()[: HEAD_BYTES - _STAGE_AT]
        own = self._carrier.notices[self.rank]
        own[_STAGE_AT:HEAD_BYTES] = 0
        own[_STAGE_AT : _STAGE_AT + len(body)] = np.frombuffer(body, np.uint8)
        self._carrier.publish(_STAGE_AT, HEAD_BYTES)

    def stage_of(self, rank: int) -> str:
        """What a rank said that it does."""
        raw = self._carrier.notices[rank, _STAGE_AT:HEAD_BYTES].tobytes()
        return raw.partition(b"\0")[0].decode("utf-8", "replace")

    def refresh(self) -> None:
        """Let what others published become visible here."""
        self._carrier.refresh()

    def meet(
        self, text: str = "", *, status: int = 0, deadline_s: float | None = None
    ) -> list[Notice]:
        """Wait for all ranks; returns what each told.

        Raises:
            PeerError: some have not come before the deadline.
            MoeProfError: a rank told an error; the lowest rank's is raised on all.
        """
        if self.lost is not None:
            raise self.lost
        self._meeting += 1
        self._write(self._meeting % 2, text, status)
        self._carrier.notices[self.rank].view(np.int64)[_MEETING_AT // 8] = self._meeting
        self._carrier.publish_word(_MEETING_AT)
        self.wait_until(
            lambda: bool((self._meetings >= self._meeting).all()),
            lambda: [r for r in range(self.size) if self._meetings[r] < self._meeting],
            deadline_s=deadline_s,
        )
        notices = [self._read(rank, self._meeting % 2) for rank in range(self.size)]
        raise_first(notices, self.size)
        return notices

    def wait_until(
        self,
        done: Callable[[], bool],
        missing: Callable[[], Sequence[int]],
        *,
        deadline_s: float | None = None,
    ) -> None:
        """Look until ``done``.

        Raises:
            PeerError: the deadline has passed; it names the ranks that are ``missing``.
            MoeProfError: another rank gave the alarm.
        """
        limit_s = self.deadline_s if deadline_s is None else deadline_s
        start_s = time.monotonic()
        looks = 0
        while not done():
            self._carrier.refresh()
            self.heed_alarms()
            looks += 1
            if not self._yields and looks < _SPINS:
                continue
            waited_s = time.monotonic() - start_s
            if waited_s > limit_s:
                raise self.lose(missing(), limit_s)
            if waited_s > _NAP_AFTER_S:
                time.sleep(_NAP_S)
            else:
                os.sched_yield()

    def lose(self, ranks: Sequence[int], limit_s: float) -> PeerError:
        """The error that names ranks that did not come; gives the alarm and closes the board."""
        who = [f"rank {r} (last: {self.stage_of(r) or 'starting'})" for r in ranks]
        error = PeerError(
            f"{', '.join(who) or 'an unknown rank'} did not answer within {limit_s:g} s: it died, "
            "hangs, or is too slow for the deadline; the run was ended",
            ranks[0] if ranks else -1,
        )
        self.alarm(error)
        return error

    def alarm(self, error: MoeProfError) -> None:
        """Make all ranks raise this error wherever they wait; the board is closed for good."""
        self.lost = error
        peer = error.peer if isinstance(error, PeerError) else -1
        self._write(_ALARM_BODY, str(error), error.exit_code + (peer + 1) * _PEER_STEP)
        self._carrier.notices[self.rank].view(np.int64)[_ALARM_AT // 8] = 1
        self._carrier.publish_word(_ALARM_AT)

    def heed_alarms(self) -> None:
        """Raises the error of a rank that has given the alarm."""
        if self.lost is not None:
            raise self.lost
        if not self._alarms.any():
            return
        first = self._read(int(np.flatnonzero(self._alarms)[0]), _ALARM_BODY)
        peer, status = divmod(first.status, _PEER_STEP)
        lost = status == PeerError.exit_code
        self.lost = PeerError(first.text, peer - 1) if lost else error_of(status, first.text)
        raise self.lost

    def _write(self, body: int, text: str, status: int) -> None:
        start = HEAD_BYTES + body * BODY_BYTES
        words = text.encode()
        if len(words) > TEXT_BYTES:
            words = words[: TEXT_BYTES - 4] + b" ..."
        own = self._carrier.notices[self.rank]
        own[start : start + _TEXT_AT].view(np.int64)[:] = (status, len(words))
        stop = start + _TEXT_AT + len(words)
        own[start + _TEXT_AT : stop] = np.frombuffer(words, np.uint8)
        self._carrier.publish(start, stop)

    def _read(self, rank: int, body: int) -> Notice:
        start = HEAD_BYTES + body * BODY_BYTES
        other = self._carrier.notices[rank]
        status, length = (int(word) for word in other[start : start + _TEXT_AT].view(np.int64))
        raw = other[start + _TEXT_AT : start + _TEXT_AT + length].tobytes()
        return Notice(rank, status, raw.decode("utf-8", "replace"))


def agree(board: Board, facts: Mapping[str, object]) -> None:
    """Raise on all ranks where their facts differ, naming the ranks and what differs.

    Args:
        facts: few and short: they travel as one text, with a hash of it in front.

    Raises:
        UsageError: a rank has other facts than most.
    """
    text = "; ".join(f"{name} = {value}" for name, value in facts.items())
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    told = [one.text for one in board.meet(f"{digest}; {text}")]
    usual, _ = Counter(told).most_common(1)[0]
    others = [rank for rank, one in enumerate(told) if one != usual]
    if not others:
        return
    ours, theirs = _facts(usual), _facts(told[others[0]])
    differ = [
        f"{name} is {theirs.get(name, 'missing')} there, {ours.get(name, 'missing')} elsewhere"
        for name in dict.fromkeys((*ours, *theirs))
        if ours.get(name) != theirs.get(name)
    ]
    raise UsageError(
        f"rank {', '.join(map(str, others))} was set up differently: {'; '.join(differ)}; all "
        "ranks need the same arguments"
    )


def _facts(text: str) -> dict[str, str]:
    pairs = (part.split(" = ", 1) for part in text.split("; ")[1:])
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def raise_first(notices: Sequence[Notice], size: int) -> None:
    """Raise the error of the lowest rank that told one.

    Raises:
        MoeProfError: of the class of that exit code.
    """
    failed = [one for one in notices if one.status]
    if not failed:
        return
    first = failed[0]
    same = [str(one.rank) for one in failed if one.text == first.text]
    who = "" if size == 1 or len(same) == size else f"rank {', '.join(same)}: "
    raise error_of(first.status, f"{who}{first.text}")


def error_of(status: int, message: str) -> MoeProfError:
    """The error of that exit code."""
    return _CLASSES.get(status, WorkloadError)(message)


_CLASSES: dict[int, type[MoeProfError]] = {
    InputError.exit_code: InputError,
    UsageError.exit_code: UsageError,
    UnavailableError.exit_code: UnavailableError,
    WorkloadError.exit_code: WorkloadError,
}
