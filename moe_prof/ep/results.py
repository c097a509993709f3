"""What a case gave, from all ranks together: plain data that travels as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from moe_prof.ep.cases import Case

WAITS = ("wait_dispatch", "wait_combine")
EXPOSED = ("wait_dispatch", "send", "wait_combine")
"""Stages in which a thread waits for other ranks' data or only moves rows, without computing."""

Bytes = dict[str, dict[str, int]]
"""Bytes of a call by stage and traffic, all ranks together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantResult:
    """One variant of a case.

    Attributes:
        samples_s: by round, seconds a call of each rank; the slowest rank is the call's time.
        cpu_s: CPU seconds a call, all ranks together.
        calls: calls per sample.
        sha256: of the gathered output.
        threads: of each rank.
        stage_s: by rank and stage, seconds a call, summed over the rank's threads.
        wall_s: by rank, seconds of the calls whose stages were recorded.
        counted / predicted: bytes by stage, see Bytes.
        waits_s: by stage of WAITS, [waiting rank][rank waited for]; empty where not known.
        rel_rmse / worst_token: against the float64 oracle, None when not verified.
        wrong: why its result is wrong, "" when it is right or was not checked.
        note: what a reader should know, e.g. a fallback.
    """

    variant: str
    samples_s: tuple[tuple[float, ...], ...] = ()
    cpu_s: float | None = None
    calls: int = 1
    sha256: str = ""
    isa: str = ""
    microkernel: str = ""
    threads: int = 1
    stage_s: tuple[Mapping[str, float], ...] = ()
    wall_s: tuple[float, ...] = ()
    counted: Bytes = field(default_factory=dict)
    predicted: Bytes = field(default_factory=dict)
    waits_s: Mapping[str, tuple[tuple[float, ...], ...]] = field(default_factory=dict)
    rel_rmse: float | None = None
    worst_token: float | None = None
    wrong: str = ""
    note: str = ""

    @property
    def call_s(self) -> tuple[float, ...]:
        """By round, the seconds of a call: those of the slowest rank."""
        return tuple(max(sample) for sample in self.samples_s)

    @property
    def exposed_s(self) -> float | None:
        """Communication that is not hidden, a call: mean over threads and ranks."""
        if not self.stage_s:
            return None
        total = sum(one.get(stage, 0.0) for one in self.stage_s for stage in EXPOSED)
        return total / (self.threads * len(self.stage_s))

    @property
    def recorded_s(self) -> float | None:
        """Mean over ranks of the recorded calls' wall time."""
        return sum(self.wall_s) / len(self.wall_s) if self.wall_s else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """All variants of a case.

    Attributes:
        transport: how rows travelled: ``local``, ``shared`` or ``put``.
        mpi: the library's own words, "" for one process.
        expert_rows: rows of each expert.
        workspace_bytes / workspace_apart_bytes: of the rank that has most, with segments that share
            memory, and without.
        window_bytes: of each rank.
        interrupted: why fewer rounds were measured than asked for, "".
        others_cpus / cpus: CPUs' worth that other programs used, of so many; None when unknown.
    """

    case: Case
    variants: tuple[VariantResult, ...]
    transport: str = "local"
    mpi: str = ""
    expert_rows: tuple[int, ...] = ()
    workspace_bytes: int | None = None
    workspace_apart_bytes: int | None = None
    window_bytes: int | None = None
    interrupted: str = ""
    others_cpus: float | None = None
    cpus: int | None = None

    def variant(self, name: str) -> VariantResult | None:
        """The result of a variant, None when it did not run."""
        return next((one for one in self.variants if one.variant == name), None)

    def to_json(self) -> dict[str, Any]:
        """As JSON types."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> CaseResult:
        """The inverse of :meth:`to_json`."""
        made = {
            "case": Case(**data["case"]),
            "variants": tuple(_variant(one) for one in data["variants"]),
            "expert_rows": tuple(data["expert_rows"]),
        }
        return cls(**{**data, **made})


def _variant(data: Mapping[str, Any]) -> VariantResult:
    made = {
        "samples_s": tuple(tuple(one) for one in data["samples_s"]),
        "stage_s": tuple(data["stage_s"]),
        "wall_s": tuple(data["wall_s"]),
        "waits_s": {
            name: tuple(tuple(row) for row in matrix) for name, matrix in data["waits_s"].items()
        },
    }
    return VariantResult(**{**data, **made})
