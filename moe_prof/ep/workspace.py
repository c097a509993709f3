"""The workspace: segments with offsets, lifetimes and aliases, and the memory behind them.

R = global_bs * min(k, L) rows can arrive at a rank, S = B rows pass through the shared expert (0
without one). Every segment is aligned to 512 bytes. With reuse X1 and X2 are one memory, their
scales another: they do not live at the same time. The reserved segment is the operator's own for
synchronization; here windows hold that, and nothing uses it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from moe_prof.ep import abi
from moe_prof.ep.windows import ELEMENT_BYTES, SCALE_BYTES, round_up

ALIGNMENT = 512
RESERVED_BYTES = 256 * 1024
_PAGE = 4096


@dataclass(frozen=True, slots=True)
class WorkspaceSizes:
    """What the segments follow from.

    Attributes:
        bs, global_bs, k, h, n: B, rows of all ranks together, top-k, hidden size, width.
        n_shared: the shared expert's width, 0 without one.
        ranks, local_experts: P and L.
    """

    bs: int
    global_bs: int
    k: int
    h: int
    n: int
    n_shared: int
    ranks: int
    local_experts: int

    @property
    def routed_rows(self) -> int:
        """R: most rows that can arrive."""
        return self.global_bs * min(self.k, self.local_experts)

    @property
    def shared_rows(self) -> int:
        """S: rows of the shared expert."""
        return self.bs if self.n_shared else 0


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment.

    Attributes:
        name: as in the operator.
        offset: in bytes from the workspace's base.
        size_bytes: what is used of it.
        first, last: stages between which its contents matter.
        alias: the segment whose memory it shares, "" for memory of its own.
    """

    name: str
    offset: int
    size_bytes: int
    first: str
    last: str
    alias: str = ""


@dataclass(frozen=True, slots=True)
class Workspace:
    """All segments, and the total size in bytes."""

    sizes: WorkspaceSizes
    segments: tuple[Segment, ...]
    total_bytes: int

    def __getitem__(self, name: str) -> Segment:
        return next(segment for segment in self.segments if segment.name == name)


def workspace(sizes: WorkspaceSizes, *, reuse: bool = True) -> Workspace:
    """The layout; without ``reuse`` each segment has memory of its own."""
    segments: list[Segment] = []
    at = 0
    for name, size, first, last, alias in _table(sizes, reuse=reuse):
        if alias and reuse:
            owner = next(segment for segment in segments if segment.name == alias)
            segments.append(Segment(name, owner.offset, size, first, last, alias))
            continue
        segments.append(Segment(name, at, size, first, last))
        at = round_up(at + size, ALIGNMENT)
        for _, other_size, *_, other_alias in _table(sizes, reuse=reuse):
            if reuse and other_alias == name:  # memory for the larger one
                at = max(at, round_up(segments[-1].offset + other_size, ALIGNMENT))
    return Workspace(sizes, tuple(segments), at)


def _table(s: WorkspaceSizes, *, reuse: bool) -> tuple[tuple[str, int, str, str, str], ...]:
    """Name, bytes, first and last stage, alias; in the order of their offsets."""
    r, shared, m, m_shared = s.routed_rows, s.shared_rows, s.n // 2, s.n_shared // 2
    c1 = 4 * (r * s.n + shared * s.n_shared)
    c2 = 4 * (r + shared) * s.h
    swap: tuple[tuple[str, int, str, str, str], ...] = (("swap", max(c1, c2), "gmm1", "gmm2", ""),)
    if not reuse:
        swap = (
            ("swap", c1, "gmm1", "swiglu", ""),
            ("swiglu", c1, "swiglu", "quantize", ""),
            ("c2", c2, "gmm2", "gmm2", ""),
        )
    return (
        ("x1", (shared + r) * s.h, "dispatch", "gmm1", ""),
        ("x2", shared * m_shared + r * m, "quantize", "gmm2", "x1"),
        ("x1_scale", SCALE_BYTES * (shared + r), "dispatch", "swiglu", ""),
        ("x2_scale", SCALE_BYTES * (shared + r), "quantize", "gmm2", "x1_scale"),
        *swap,
        ("y2", ELEMENT_BYTES * r * s.h if s.local_experts == 1 else 0, "gmm2", "combine", ""),
        ("group_list", 8 * s.local_experts, "dispatch", "gmm2", ""),
        ("expand_idx", 4 * s.bs * s.k, "dispatch", "combine", ""),
        ("ep_send_count", 4 * s.ranks * s.local_experts, "dispatch", "combine", ""),
        ("reserved", RESERVED_BYTES, "dispatch", "combine", ""),
    )


class WorkspaceMemory:
    """Memory for a workspace, aligned to a page; contents are undefined between calls.

    Args:
        layout: the segments.
        memory: bytes to use instead of new ones, at least ``layout.total_bytes``, 64-aligned.
    """

    def __init__(self, layout: Workspace, memory: npt.NDArray[np.uint8] | None = None) -> None:
        self.layout = layout
        if memory is None:
            memory = aligned_bytes(layout.total_bytes)
        self.memory = memory

    def raw(self) -> abi.CWorkspace:
        """The C structure."""
        offsets: dict[str, Any] = {
            name: self.layout[name].offset
            for name in ("x1", "x1_scale", "swap", "x2", "x2_scale", "y2", "group_list",
                         "expand_idx", "ep_send_count")
        }  # fmt: skip
        return abi.CWorkspace(
            base=self.memory.ctypes.data, bytes=self.layout.total_bytes,
            rows=self.layout.sizes.routed_rows, shared_rows=self.layout.sizes.shared_rows,
            **offsets,
        )  # fmt: skip


def aligned_bytes(size_bytes: int, *, zero: bool = False) -> npt.NDArray[np.uint8]:
    """So many bytes from a page boundary on; ``zero``: zeros, touched only when used."""
    make = np.zeros if zero else np.empty
    memory = make(size_bytes + _PAGE, np.uint8)
    start = -memory.ctypes.data % _PAGE
    return memory[start : start + size_bytes]
