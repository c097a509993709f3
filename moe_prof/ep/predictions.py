"""Bytes of a call by stage that a rank's plan predicts, to be held against those counted. Pure.

The stages' bytes of a row are the plan's (``traffic.row_bytes``), with this operator's messages of
h + 4 bytes in place of the reference operator's h + 512. Added are what belongs to no row: tokens
read and outputs written once, and an expert's weights once for every block of rows that share a
walk over them. ``MPI_Alltoallv`` reads its send buffer and writes its receive buffer once, each
way.

Bytes that stay in caches are counted only: the plan says nothing of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from moe_prof.ep.cases import OVERLAP_ONLY, SMALL_OPS
from moe_prof.ep.traffic import MESSAGE_EXTRA_BYTES, Way, row_bytes
from moe_prof.ep.windows import ELEMENT_BYTES, SCALE_BYTES

READ, WRITTEN = "memory_read", "memory_written"
Bytes = dict[str, dict[str, int]]


@dataclass(frozen=True, slots=True)
class Rows:
    """What one rank handles in a call.

    Attributes:
        tokens: of this rank.
        sent: rows that it sends to experts.
        received: rows that its experts get.
        walks: how often an expert's weights are read, over all of its experts.
        local_experts: L.
    """

    tokens: int
    sent: int
    received: int
    walks: int
    local_experts: int


def predicted(variant: str, h: int, n: int, rows: Rows, *, alltoallv: bool) -> Bytes:
    """Bytes through memory by stage.

    Args:
        variant: of the case.
        h / n: hidden size, columns of the first weight.
        rows: of this rank.
        alltoallv: small ops exchange rows by MPI.
    """
    small = variant == SMALL_OPS
    way = Way.SMALL_OPS if small or variant == OVERLAP_ONLY else Way.CPU_FUSION
    found: Bytes = {}
    extra = 0 if way is Way.CPU_FUSION else MESSAGE_EXTRA_BYTES - SCALE_BYTES
    for stage in row_bytes(way, h, n):
        if stage.stage == "send" and not small:
            continue  # into the window at once, but for the shallow path
        count = rows.sent if stage.stage in ("dispatch", "combine") else rows.received
        read = stage.read - (extra if stage.stage == "gather" else 0)
        written = stage.written - (extra if stage.stage == "dispatch" else 0)
        _add(found, stage.stage, count * read, count * written)
    row = ELEMENT_BYTES * h
    if rows.local_experts == 1 and not small:
        _add(found, "send", rows.received * row, rows.received * row)
    if small and alltoallv:
        message = h + SCALE_BYTES
        _add(found, "wait_dispatch", rows.sent * message, rows.received * message)
        _add(found, "wait_combine", rows.received * row, rows.sent * row)
    _add(found, "dispatch", rows.tokens * row, 0)
    _add(found, "combine", 0, rows.tokens * row)
    _add(found, "gmm1", rows.walks * h * n, 0)
    _add(found, "gmm2", rows.walks * (n // 2) * h, 0)
    return found


def _add(found: Bytes, stage: str, read: int, written: int) -> None:
    kinds = found.setdefault(stage, {READ: 0, WRITTEN: 0})
    kinds[READ] += read
    kinds[WRITTEN] += written
