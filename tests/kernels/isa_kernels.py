"""The x86 paths' folders of microkernels: what the tests of all paths need to know of each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from moe_prof.kernels.build import SOURCE_DIR

PACKED = SOURCE_DIR / "cpp" / "packed"


@dataclass(frozen=True)
class IsaKernels:
    """What tells one path's kernels from another's.

    Attributes:
        isa: name of the path.
        flags: what its sources are compiled with.
        folders: its own kernels first, then those of a lower path that it takes over.
        nr / mr: channels of a panel, rows of the largest tile.
        gemms: names of the product's kernels, each with the most rows it is for.
        names: of the other kernels whose names differ between paths.
        step: rows are padded to a multiple of it.
        signs_apart: a row is a sum (`head` bytes), then four sizes and four signs in turn.
        head: bytes in front of a row's values.
        offset: what is added to a quantized value.
        correction: bytes in front of a panel's weights.
        instructions: one of which must be in each tile.
        odd_lines: a row has an odd number of cache lines.
        near: the kernel for one row of weights in L2, where the path has one.
        least_tile_rows: from so many rows on products need the thread's tiles set; 0: never.
    """

    isa: str
    flags: tuple[str, ...]
    folders: tuple[str, ...]
    nr: int
    mr: int
    gemms: tuple[tuple[int, str], ...]
    names: dict[str, str]
    step: int
    signs_apart: bool
    head: int
    offset: int
    correction: int
    instructions: frozenset[str]
    near: str = ""
    odd_lines: bool = False
    least_tile_rows: int = 0

    def gemm(self, rows: int) -> str:
        """The kernel for a product of so many rows."""
        return next(name.format(rows) for most, name in self.gemms if rows <= most)

    def panel_bytes(self, k: int) -> int:
        """Of nr channels of k weights."""
        step = 64 if self.odd_lines else 4
        return self.correction + -(-k // step) * step * self.nr

    def row16_values(self, d: int) -> int:
        """int16 values of a token's row for the candidate router."""
        return 32 * (-(-d // 64) * 2 | 1) if self.odd_lines else -(-d // 32) * 32

    def panel16_values(self, d: int) -> int:
        """int16 values of a panel of nr router rows."""
        step = 64 if self.odd_lines else 2
        return -(-d // step) * step * self.nr

    def sources(self) -> list[Path]:
        """The path's kernels without its tables."""
        found = [
            file for folder in self.folders for file in sorted((PACKED / folder).glob("*.cpp"))
        ]
        return [file for file in found if "table" not in file.name]

    def tables(self) -> list[Path]:
        """The tables that name the kernels."""
        found = sorted((PACKED / self.isa).glob("table*.cpp"))
        if self.isa == "amx_int8":  # begins with another path's
            found.append(PACKED / "avx512_vnni" / "table_candidates__avx512_vnni.cpp")
        return found


PATHS = (
    IsaKernels(
        "avx2", ("-march=x86-64-v3",), ("avx2",), 16, 5, ((5, "qs8_gemm_{}x16c4"),),
        {"pack": "qs8_pack_16c4", "quantize": "f32_qs8_quantize",
         "swiglu": "s32_swiglu_16", "candidates": "qs16_gemm_6x16c2",
         "pack_candidates": "qs16_pack_16c2", "router": "f32_router_6x16"},
        32, True, 32, 0, 0, frozenset({"vpmaddubsw"}),
        "qs8_gemm_near_1x16c4",
    ),
    IsaKernels(
        "avx_vnni", ("-march=x86-64-v3", "-mavxvnni"), ("avx_vnni", "avx2"), 16, 6,
        ((6, "qu8s8_gemm_{}x16c4"),),
        {"pack": "qs8_pack_16c4", "quantize": "f32_qu8_quantize",
         "swiglu": "s32_swiglu_16", "candidates": "qs16_gemm_6x16c2",
         "pack_candidates": "qs16_pack_16c2", "router": "f32_router_6x16"},
        32, False, 0, 128, 64, frozenset({"vpdpbusd"}),
    ),
    IsaKernels(
        "avx512_vnni", ("-march=x86-64-v4", "-mavx512vnni"), ("avx512_vnni", "avx2"), 32, 8,
        ((8, "qu8s8_gemm_{}x32c4"),),
        {"pack": "qs8_pack_32c4", "quantize": "f32_qu8_quantize",
         "swiglu": "s32_swiglu_32", "candidates": "qs16_gemm_8x32c2",
         "pack_candidates": "qs16_pack_32c2", "router": "f32_router_12x16"},
        64, False, 0, 128, 128, frozenset({"vpdpbusd"}),
    ),
    IsaKernels(
        "amx_int8", ("-march=x86-64-v4", "-mavx512vnni", "-mamx-tile", "-mamx-int8"),
        ("amx_int8", "avx512_vnni", "avx2"), 32, 32,
        ((2, "qu8s8_gemm_{}x32c4"), (16, "qu8s8_gemm_{}x32c64"), (32, "qu8s8_gemm_32x32c64")),
        {"pack": "qs8_pack_32c64", "quantize": "f32_qu8_quantize",
         "swiglu": "s32_swiglu_32", "candidates": "qs16_gemm_16x32c64",
         "pack_candidates": "qs16_pack_32c64", "router": "f32_router_12x16"},
        64, False, 0, 128, 128, frozenset({"vpdpbusd", "tdpbusd"}),
        "", True, 3,
    ),
)  # fmt: skip
