"""Where a rank's results come together, and how its group is made: over MPI, or alone."""

from __future__ import annotations

from typing import Any, Protocol

from moe_prof.ep.cases import Case, Trial
from moe_prof.ep.mpi import load
from moe_prof.ep.mpi_group import EpGroup
from moe_prof.ep.solo import SoloGroup


class Gathering(Protocol):
    """One rank's end."""

    @property
    def rank(self) -> int:
        """This rank."""

    @property
    def library(self) -> str:
        """The MPI library's name and version, "" for none."""

    def group(self, case: Case, trial: Trial) -> Any:  # noqa: ANN401
        """The group of a case, a context manager; collective."""

    def gather(self, value: Any) -> list[Any]:  # noqa: ANN401
        """The values of all ranks on rank 0, nothing elsewhere; collective."""


class MpiGathering:
    """Over a communicator."""

    def __init__(self, comm: Any) -> None:  # noqa: ANN401
        self._comm = comm
        self._group: EpGroup | None = None
        self.rank = int(comm.Get_rank())

    @property
    def library(self) -> str:
        """Name and version, the first words of what the library says."""
        words = " ".join(str(load().Get_library_version()).split())
        return " ".join(words.replace("Version:", "").split()[:2])

    def group(self, case: Case, trial: Trial) -> EpGroup:
        """MPI ranks."""
        self._group = EpGroup(
            self._comm, case.max_tokens, case.h, case.experts, case.top_k,
            transport=trial.transport, threads=trial.threads, deadline_s=trial.deadline_s,
        )  # fmt: skip
        self._group.agree({"case": case.label, "n": case.n, "seed": case.seed})
        return self._group

    def gather(self, value: Any) -> list[Any]:  # noqa: ANN401
        """Meets first, so that a rank that is gone is named instead of waited for."""
        if self._group is not None and self._group.board.lost is None:
            self._group.board.meet("gather", deadline_s=max(600.0, self._group.deadline_s))
        return self._comm.gather(value, root=0) or []


class LocalGathering:
    """One process without MPI."""

    rank = 0
    library = ""

    def group(self, case: Case, trial: Trial) -> SoloGroup:
        """One rank."""
        return SoloGroup(case, trial)

    def gather(self, value: Any) -> list[Any]:  # noqa: ANN401
        """This one's."""
        return [value]
