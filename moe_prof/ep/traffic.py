"""Predicted bytes per stage: separate ops, the reference operator's fusion, this CPU fusion.

Every row (one token for one expert) moves through memory between stages. Separate ops and the
reference operator send messages of h + 512 bytes and keep what the stages exchange in global
memory (its workspace is global memory, whatever its name says); the CPU fusion sends h + 4 and
keeps a block's intermediates in caches. Weights are read once per expert by all of them, so that
a decode of few rows gains little: ``saving`` says how much. Source: the stages' inputs and
outputs, added up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from moe_prof.ep.windows import ELEMENT_BYTES, SCALE_BYTES

MESSAGE_EXTRA_BYTES = 512  # of the reference operator's messages: room for the scale
_WORD = 4  # int32, fp32


class Way(Enum):
    """Who carries out the operator."""

    SMALL_OPS = "small_ops"
    NPU_FUSION = "npu_fusion"
    CPU_FUSION = "cpu_fusion"


@dataclass(frozen=True, slots=True)
class StageBytes:
    """Bytes of one row in one stage, through memory."""

    stage: str
    read: int
    written: int


def row_bytes(way: Way, h: int, n: int) -> tuple[StageBytes, ...]:
    """Bytes of one routed row by stage; weights and the token's own x and output are not in it."""
    m, out, message = n // 2, ELEMENT_BYTES * h, h + MESSAGE_EXTRA_BYTES
    if way is Way.CPU_FUSION:
        message = h + SCALE_BYTES
        return (
            StageBytes("dispatch", 0, message), StageBytes("gather", message, 0),
            StageBytes("gmm2", 0, out), StageBytes("combine", out, 0),
        )  # fmt: skip
    arrive = (StageBytes("dispatch", 0, message), StageBytes("gather", message, h))
    if way is Way.NPU_FUSION:
        return (
            *arrive, StageBytes("gmm1", h, _WORD * n),
            StageBytes("swiglu", 2 * _WORD * n, _WORD * n + m),
            StageBytes("gmm2", m, _WORD * h), StageBytes("send", _WORD * h, out),
            StageBytes("combine", out, 0),
        )  # fmt: skip
    return (
        *arrive, StageBytes("gmm1", h, _WORD * n), StageBytes("swiglu", _WORD * n, m),
        StageBytes("gmm2", m, out), StageBytes("send", out, out), StageBytes("combine", out, 0),
    )  # fmt: skip


def total_row_bytes(way: Way, h: int, n: int) -> int:
    """Bytes of one routed row, all stages."""
    return sum(stage.read + stage.written for stage in row_bytes(way, h, n))


def expert_weight_bytes(h: int, n: int) -> int:
    """int8 weights of one expert."""
    return h * n + n // 2 * h


def total_bytes(way: Way, h: int, n: int, rows_by_expert: Sequence[int]) -> int:
    """Rows and the weights of the experts that have rows."""
    used = sum(1 for rows in rows_by_expert if rows > 0)
    return used * expert_weight_bytes(h, n) + sum(rows_by_expert) * total_row_bytes(way, h, n)


def saving(h: int, n: int, rows: int) -> float:
    """Share of the separate ops' bytes that the CPU fusion does not move, for one expert."""
    before = total_bytes(Way.SMALL_OPS, h, n, [rows])
    return 1.0 - total_bytes(Way.CPU_FUSION, h, n, [rows]) / before


@dataclass(frozen=True, slots=True)
class MessageRatio:
    """Bytes of int8 messages over those of 16-bit ones."""

    dispatch: float
    both: float


def message_ratio(h: int) -> MessageRatio:
    """For dispatch alone, and for dispatch with the combine, which stays at 16 bits."""
    row = ELEMENT_BYTES * h
    message = h + MESSAGE_EXTRA_BYTES
    return MessageRatio(message / row, (message + row) / (2 * row))
