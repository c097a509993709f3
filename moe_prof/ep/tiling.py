"""The tiling record of a call, and the reference operator's tile shapes with their rules.

Source: the operator's tiling data. On a CPU every thread has both roles, matrix products (AIC) and
communication with epilogues (AIV), so both counts are the threads; totalUbSize is a thread's
block of intermediates, totalWinSize one rank's window.
"""

from __future__ import annotations

from dataclasses import dataclass

L1_BYTES, L0A_BYTES, L0B_BYTES, L0C_BYTES, UB_BYTES = (
    512 * 1024, 64 * 1024, 64 * 1024, 128 * 1024, 192 * 1024,
)  # fmt: skip
SWIZZLE = (3, 0)  # offset, direction
PRELOAD_STAGES = 1


@dataclass(frozen=True, slots=True)
class Tile:
    """Tiles of one product of the reference operator.

    Attributes:
        m, n, k: tile in L1.
        k0: k of a tile in L0.
        epilogue_m: rows of an epilogue.
        l1a, l1b, l0a, l0b, l0c: stages of each buffer.
    """

    m: int
    n: int
    k: int
    k0: int
    epilogue_m: int
    l1a: int
    l1b: int
    l0a: int
    l0b: int
    l0c: int

    @property
    def l1_bytes(self) -> int:
        """What int8 operands take of L1."""
        return self.l1a * self.m * self.k + self.l1b * self.n * self.k


GMM1_TILE = Tile(256, 128, 512, 128, 64, l1a=2, l1b=2, l0a=2, l0b=2, l0c=1)
GMM2_TILE = Tile(128, 256, 512, 128, 32, l1a=4, l1b=2, l0a=4, l0b=2, l0c=1)


@dataclass(frozen=True, slots=True)
class TilingRecord:
    """The operator's tiling data, by its field names in this language's spelling."""

    ep_rank_size: int
    ep_rank_id: int
    moe_expert_num: int
    moe_expert_num_per_rank: int
    quant_mode: int
    global_bs: int
    bs: int
    k: int
    h: int
    aic_num: int
    aiv_num: int
    total_ub_size: int
    total_win_size: int
    gmm1_h_len: int
    share_gmm1_h_len: int
    is_tensor_list: bool
    workspace_offsets: tuple[tuple[str, int], ...]


def k_tiles(k: int, tile: Tile) -> int:
    """Tiles of the reduction."""
    return -(-k // tile.k)


def keeps_a(k: int, tile: Tile, *, same_block: bool) -> bool:
    """Whether the A block need not be loaded again: all of its k tiles lie in L1's stages."""
    return same_block and k_tiles(k, tile) == tile.l1a


def first_k_tile(block: int, k: int, tile: Tile) -> int:
    """Where a core begins its walk over k, so that cores read different parts of memory."""
    return block % k_tiles(k, tile)
