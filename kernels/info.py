"""What a plan says about itself: the proof of which variant and path really ran."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

PHASES: tuple[str, ...] = (
    "router", "quantize", "bucket", "gate_up", "activation", "down", "combine",
)  # fmt: skip
"""The steps of a forward, in the order of ``moe_phase`` in moe_prof.h."""


@dataclass(frozen=True, slots=True)
class PlanInfo:
    """What really runs (mirrors ``moe_info`` of moe_prof.h).

    Attributes:
        variant: name of the variant.
        isa: instruction-set path.
        threads: threads in the team.
        max_tokens: tokens the workspace is made for; more are computed in slices.
        microkernel: name of the inner kernel, "" when there is none.
        note: a fallback that was taken and why, or "".
        mr / nr / kr: tile of the inner kernel, 0 when there is none.
        weight_bytes: bytes of weights that a forward can touch, as the plan lays them out.
        workspace_bytes: bytes of buffers that the plan holds.
        path: the way that a forward of max_tokens takes where the variant chooses by shape, else
            "" (``Plan.path`` tells it for other numbers of tokens).
    """

    variant: str
    isa: str
    threads: int
    max_tokens: int
    microkernel: str = ""
    note: str = ""
    mr: int = 0
    nr: int = 0
    kr: int = 0
    weight_bytes: int = 0
    workspace_bytes: int = 0
    path: str = ""


@dataclass(frozen=True, slots=True)
class Spans:
    """What each thread did in one forward; between its spans it waited.

    Attributes:
        wall_s: the forward's time.
        threads: by thread (phase, begin, end), the times in seconds after the forward's begin.
        left_out: how many more there were.
    """

    wall_s: float
    threads: tuple[tuple[tuple[int, float, float], ...], ...]
    left_out: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class PhaseTimes:
    """Times of the ``phases`` build, accumulated over forwards since the last reset.

    Attributes:
        phase_s: (threads, len(PHASES)) f64, seconds of each thread in each step.
        busy_s: (threads,) f64, seconds in any step.
        wait_s: (threads,) f64, the rest of the forwards' wall time.
        wall_s: seconds inside forward.
        last: the steps of the last forward, None where a library does not tell them.
    """

    phase_s: npt.NDArray[np.float64]
    busy_s: npt.NDArray[np.float64]
    wait_s: npt.NDArray[np.float64]
    wall_s: float
    last: Spans | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ChosenExperts:
    """The routing of the last forward.

    Attributes:
        ids: (N, K) int32, experts in the order in which they are summed.
        gates: (N, K) f32.
    """

    ids: npt.NDArray[np.int32]
    gates: npt.NDArray[np.float32]
