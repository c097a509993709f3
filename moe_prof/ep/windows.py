"""Where things lie in the windows: the memory of each rank into which all ranks store.

One layout for all ranks of a group, fixed when the group is made. A window begins with a page of
words (the abort word; the rest belongs to whoever made the window), then come the cells that say
how many rows a source has sent for a local expert, the completion flags of the owners, the slots
of received rows (dispatch) and the rows that come back (combine). ``kernels/include/moe_ep.h``
says what a cell and a slot hold.
"""

from __future__ import annotations

from dataclasses import dataclass

HEADER_BYTES = 4096
ABORT_OFFSET = 0
OWN_WORDS_OFFSET = 64  # to HEADER_BYTES: free for who made the window
CELL_BYTES = 16
LINE_BYTES = 64
PAGE_BYTES = 4096
SLOT_ALIGNMENT = 512
ELEMENT_BYTES = 2  # bf16, fp16
SCALE_BYTES = 4


@dataclass(frozen=True, slots=True)
class WindowLayout:
    """Offsets of a window in bytes, and the sizes that they follow from.

    Attributes:
        ranks, experts, max_bs, h: P, E, most tokens of any rank, hidden size.
        cells, cells_stride: cells of source ``src`` begin at ``cells + src * cells_stride``.
        done, done_stride: completion flag of owner ``r`` at ``done + r * done_stride``.
        dispatch, slot_bytes: slot ``i`` of (src, l) at
            ``dispatch + ((src * L + l) * max_bs + i) * slot_bytes``.
        combine, row_bytes: row ``i`` of expert e at ``combine + (e * max_bs + i) * row_bytes``.
        size_bytes: of the window.
    """

    ranks: int
    experts: int
    max_bs: int
    h: int
    cells: int
    cells_stride: int
    done: int
    done_stride: int
    dispatch: int
    slot_bytes: int
    combine: int
    row_bytes: int
    size_bytes: int

    @property
    def local_experts(self) -> int:
        """L = E / P."""
        return self.experts // self.ranks

    def cell(self, source: int, local_expert: int) -> int:
        """Offset of the cell of what ``source`` sent for a local expert."""
        return self.cells + source * self.cells_stride + local_expert * CELL_BYTES

    def done_flag(self, owner: int) -> int:
        """Offset of the word with the last epoch that ``owner`` has completed for this rank."""
        return self.done + owner * self.done_stride

    def slots(self, source: int, local_expert: int) -> int:
        """Offset of the first slot of what ``source`` sends for a local expert."""
        index = source * self.local_experts + local_expert
        return self.dispatch + index * self.max_bs * self.slot_bytes

    def rows(self, expert: int) -> int:
        """Offset of the first row that comes back from a (global) expert."""
        return self.combine + expert * self.max_bs * self.row_bytes


def slot_bytes(h: int) -> int:
    """Bytes of a row's message: h int8 and an fp32 scale, in whole 512."""
    return round_up(h + SCALE_BYTES, SLOT_ALIGNMENT)


def window_layout(ranks: int, experts: int, max_bs: int, h: int) -> WindowLayout:
    """The layout for P ranks with E experts, at most ``max_bs`` tokens each.

    Args:
        ranks: P >= 1, divides ``experts``.
        experts: E.
        max_bs: most tokens of any rank, at least 0.
        h: hidden size.
    """
    local = experts // ranks
    cells_stride = round_up(local * CELL_BYTES, LINE_BYTES)
    done = HEADER_BYTES + ranks * cells_stride
    dispatch = round_up(done + ranks * LINE_BYTES, PAGE_BYTES)
    slot = slot_bytes(h)
    row = h * ELEMENT_BYTES
    combine = round_up(dispatch + ranks * local * max_bs * slot, PAGE_BYTES)
    size = round_up(combine + experts * max_bs * row, PAGE_BYTES)
    return WindowLayout(
        ranks=ranks, experts=experts, max_bs=max_bs, h=h,
        cells=HEADER_BYTES, cells_stride=cells_stride, done=done, done_stride=LINE_BYTES,
        dispatch=dispatch, slot_bytes=slot, combine=combine, row_bytes=row, size_bytes=size,
    )  # fmt: skip


def round_up(size: int, step: int) -> int:
    """The least multiple of ``step`` that is not below ``size``."""
    return (size + step - 1) // step * step
