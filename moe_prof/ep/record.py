"""What calls of the operator did: times, bytes, waits and spans, as the compute core notes them."""

from __future__ import annotations

import ctypes
from ctypes import byref
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from moe_prof.ep.abi import STAGES, TRAFFICS, CRecord, CSpan

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Span:
    """One stage of one expert on one thread, in seconds of the monotonic clock."""

    stage: str
    expert: int
    thread: int
    peer: int
    begin_s: float
    end_s: float


@dataclass(slots=True)
class Record:
    """What calls did: times and bytes by stage, waits by rank, spans of the last call.

    Attributes:
        ranks: P.
        span_capacity: how many spans to keep, 0: none.
    """

    ranks: int
    span_capacity: int = 0
    _raw: CRecord = field(default_factory=CRecord)
    _waits: Array = field(init=False)
    _spans: Any = field(init=False)

    def __post_init__(self) -> None:
        self._waits = np.zeros((2, self.ranks), np.int64)
        self._spans = (CSpan * self.span_capacity)() if self.span_capacity else None
        self.reset()

    def reset(self) -> None:
        """Begin anew."""
        ctypes.memset(byref(self._raw), 0, ctypes.sizeof(self._raw))
        self._waits[:] = 0
        self._raw.wait_ns = self._waits.ctypes.data
        if self._spans is not None:
            self._raw.spans = self._spans
        self._raw.span_capacity = self.span_capacity
        self._raw.peer = self._raw.stage = -1

    @property
    def total_s(self) -> float:
        """Wall time of the calls."""
        return float(self._raw.total_ns) * 1e-9

    @property
    def stage_s(self) -> dict[str, float]:
        """Seconds by stage, summed over the threads of this rank."""
        return {name: self._raw.stage_ns[i] * 1e-9 for i, name in enumerate(STAGES)}

    @property
    def bytes(self) -> dict[str, dict[str, int]]:
        """Bytes by stage and kind of traffic, as counted by the code that moved them."""
        return {
            name: {kind: int(self._raw.bytes[i][j]) for j, kind in enumerate(TRAFFICS)}
            for i, name in enumerate(STAGES)
        }

    @property
    def wait_s(self) -> npt.NDArray[np.float64]:
        """(2, P): seconds waited for dispatch and for combine, by rank waited for."""
        return self._waits * 1e-9

    @property
    def spans(self) -> tuple[Span, ...]:
        """The spans that were kept, in the order in which they ended on their thread."""
        kept = min(self._raw.span_count, self.span_capacity)
        return tuple(
            Span(STAGES[s.stage], s.expert, s.thread, s.peer, s.begin_ns * 1e-9, s.end_ns * 1e-9)
            for s in (self._spans[i] for i in range(kept))
        )

    @property
    def spans_lost(self) -> int:
        """Spans beyond the capacity."""
        return max(0, int(self._raw.span_count) - self.span_capacity)

    @property
    def raw(self) -> CRecord:
        """The C structure."""
        return self._raw
