"""A group of one rank, for which no MPI is needed."""

from __future__ import annotations

from types import TracebackType

import numpy as np

from moe_prof.ep.board import NOTICE_BYTES, Board
from moe_prof.ep.cases import Case, Trial
from moe_prof.ep.group import LocalGroup


class OwnNotices:
    """The carrier of a noticeboard that nobody else reads."""

    def __init__(self) -> None:
        self.notices = np.zeros((1, NOTICE_BYTES), np.uint8)

    def publish(self, start: int, stop: int) -> None:
        """Nowhere to bring it."""

    def publish_word(self, at: int) -> None:
        """Nowhere to bring it."""

    def refresh(self) -> None:
        """Nothing comes."""


class SoloGroup(LocalGroup):
    """One rank over a window in plain memory."""

    transport = "local"

    def __init__(self, case: Case, trial: Trial) -> None:
        super().__init__(case.max_tokens, case.h, case.experts, case.top_k)
        self.layout = self.view.layout
        self.board = Board(OwnNotices(), 0, 1, deadline_s=trial.deadline_s, yields=False)

    def check_guards(self) -> None:
        """There are none."""

    def __enter__(self) -> SoloGroup:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Nothing to give back."""
