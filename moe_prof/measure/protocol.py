"""What the parent and a worker process say to each other: one JSON object a line.

Parent to worker: a :class:`WorkerRequest`, then, after ``ready``, a :class:`Rounds`. Worker to
parent: events, each with ``event`` and, where it is about one, ``variant``:

=============  ===================================================================================
``starting``   a step of a variant begins: step (prepare, verify, calibrate, renew, sample, close,
               phases)
``prepared``   info (the plan's own words), prepare_s
``verified``   rel_rmse, worst_error, worst_token, correct
``failed``     the plan raised: error (class name), message
``late``       the time for setting up is over before this variant's turn
``calibrated`` loops, forward_s, cpu_s (of one forward), sample_s (with warm-up and preparing anew),
               warmups [(loops, seconds per forward)]
``ready``      all variants are set up; the rounds are awaited
``sampled``    round, loops, wall_s, cpu_s (of all loops, by the median of its pieces)
``crowd``      cpus, others: use of the machine by other programs meanwhile
``timed``      phase timers: forwards, wall_s, phases_s (threads x phases), busy_s, wait_s, timeline
``done``       everything asked for has been done
``fatal``      the request itself cannot be met: error, message
=============  ===================================================================================

The last ``starting`` says which variant is to blame when the worker dies or falls silent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from moe_prof import errors
from moe_prof.errors import MoeProfError
from moe_prof.kernels.build import Kind
from moe_prof.presets import PLAIN, LayerOptions
from moe_prof.scenario import Checkpoint, Scenario

Mode = Literal["time", "phases"]


@dataclass(frozen=True, slots=True)
class WorkerJob:
    """One variant for a worker; ``loops`` is None when it is still to be calibrated."""

    variant: str
    isa: str | None
    threads: int
    rel_rmse: float
    worst_token: float
    loops: int | None = None


@dataclass(frozen=True, slots=True)
class Rounds:
    """The samples to take: how many of each variant.

    Attributes:
        samples: number by variant.
        limit_s: no round begins later than this, None without limit. Rounds that take longer than
            calibration promised (a busy machine) then cost samples and not the time of others.
    """

    samples: Mapping[str, int]
    limit_s: float | None

    def to_json(self) -> dict[str, object]:
        """As JSON types."""
        return {"samples": dict(self.samples), "limit_s": self.limit_s}


@dataclass(frozen=True, slots=True)
class WorkerRequest:
    """Everything a worker needs.

    Attributes:
        mode: ``time``: samples of the release build; ``phases``: timers of the phases build.
        shape: (N, D, H, E, K).
        options / distinct_experts / checkpoint: see Scenario.
        expected: .npz with the oracle's answer: ``rows`` (R,) and ``y`` (R, D) f64.
        jobs: variants in the order in which they are set up.
        build: of the kernels.
        build_folder: where the parent found it, None where no kernel needs one; sources that change
            meanwhile change nothing.
        setup_limit_s: no variant but the first is set up later than this, None without limit.
    """

    mode: Mode
    shape: tuple[int, int, int, int, int]
    seed: int
    min_sample_s: float
    plan_factory: str
    expected: str
    jobs: tuple[WorkerJob, ...]
    build: Kind = "release"
    options: LayerOptions = PLAIN
    distinct_experts: int = 0
    checkpoint: Checkpoint | None = None
    setup_limit_s: float | None = None
    build_folder: str | None = None

    def to_json(self) -> dict[str, object]:
        """As JSON types."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> WorkerRequest:
        """The inverse of :meth:`to_json`."""
        jobs = tuple(WorkerJob(**job) for job in data["jobs"])
        n, d, h, e, k = data["shape"]
        options = LayerOptions(**data.get("options", {}))
        checkpoint = data.get("checkpoint")
        parts = {
            "shape": (n, d, h, e, k), "options": options, "jobs": jobs,
            "checkpoint": None if checkpoint is None else Checkpoint(**checkpoint),
        }  # fmt: skip
        return cls(**{**data, **parts})

    @property
    def scenario(self) -> Scenario:
        """The layer and its tokens."""
        return Scenario(
            *self.shape,
            options=self.options,
            distinct_experts=self.distinct_experts,
            checkpoint=self.checkpoint,
        )


def error_of(event: Mapping[str, Any]) -> MoeProfError:
    """The error that a worker reported, as its own class."""
    kind = getattr(errors, event["error"], MoeProfError)
    found: MoeProfError = kind(event["message"])
    return found
