"""The table of kernel variants: one row a variant, in the order in which stages build up.

Everything that names variants follows from this table: ``list``, ``doctor``, ``--variant``, the
tests and the labels of reports. A new variant is one source file plus one row here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Language = Literal["c++", "numba"]
Order = Literal["reference", "free"]


@dataclass(frozen=True, slots=True)
class VariantSpec:
    """What the table says of one variant.

    Attributes:
        name: as used on the command line.
        language: ``c++`` (behind the plan API) or ``numba``.
        isas: instruction-set paths it is built for, best first; ``native`` means the compiler's
            flags for this machine.
        order: ``reference``: keeps the reference's fp32 order and is bit-equal to ``scalar``;
            ``free``: equal within ``rel_rmse`` and ``worst_token``.
        rel_rmse / worst_token: largest accepted relative RMSE over all values / one token.
        threads: ``False`` for a variant that always runs on one thread.
        token_linear: its work is exactly proportional to the number of tokens, so that counts taken
            on some tokens may be scaled (no grouping, no packing per batch).
        idea: one line for ``list`` and for reports.
        next_step: what to try after this stage.
    """

    name: str
    language: Language
    isas: tuple[str, ...]
    order: Order
    rel_rmse: float
    worst_token: float
    threads: bool
    token_linear: bool
    idea: str
    next_step: str


_PACKED_ISAS = ("amx_int8", "avx512_vnni", "avx_vnni", "avx2")

VARIANTS: tuple[VariantSpec, ...] = (
    VariantSpec(
        "scalar", "c++", ("portable",), "reference", 1e-3, 5e-3, False, True,
        "token by token, expert by expert, -O2 without vectorizer: the baseline of every speedup",
        "let the compiler vectorize (autovec), then share tokens among threads (openmp)",
    ),
    VariantSpec(
        "autovec", "c++", ("native", "avx2", "portable"), "reference", 1e-3, 5e-3, False, True,
        "the same source at -O3 with the machine's flags: a fair baseline for free",
        "share tokens among threads (openmp), or pack the weights for int8 dot products (packed)",
    ),
    VariantSpec(
        "numba-parallel", "numba", ("native",), "free", 1e-3, 5e-3, True, True,
        "Python compiled by numba, prange over tokens",
        "group tokens by expert (numba-matricized)",
    ),
    VariantSpec(
        "numba-matricized", "numba", ("native",), "free", 1e-3, 5e-3, True, False,
        "numba: one bucket of tokens per expert, grouped products, scatter in top-K order",
        "leave Python for packed int8 microkernels (packed)",
    ),
    VariantSpec(
        "openmp", "c++", ("native", "avx2", "portable"), "reference", 1e-3, 5e-3, True, True,
        "OpenMP over tokens (static); nothing to gain at N = 1",
        "group tokens by expert so that weights are read once per bucket (matricized)",
    ),
    VariantSpec(
        "matricized", "c++", ("native", "avx2", "portable"), "reference", 1e-3, 5e-3, True, False,
        "router, top-K and quantization first, one contiguous bucket per expert, grouped products",
        "pack the weights for int8 dot-product instructions (packed)",
    ),
    VariantSpec(
        "portable", "c++", ("portable",), "reference", 1e-3, 5e-3, True, False,
        "the way of packed in standard C++, for any architecture: bit-equal to scalar",
        "write the int8 products in the machine's vector instructions (packed, rvv, ime)",
    ),
    VariantSpec(
        "packed", "c++", _PACKED_ISAS, "free", 1e-3, 5e-3, True, False,
        "weights packed at prepare, exact int8 microkernels, several tokens per weight load",
        "choose the path by shape and keep an expert's weights on one core (dispatched)",
    ),
    VariantSpec(
        "dispatched", "c++", _PACKED_ISAS, "free", 1e-3, 5e-3, True, False,
        "packed kernels on the path that was measured best for the shape and the threads",
        "measure the thresholds on the machine at hand",
    ),
    VariantSpec(
        "rvv", "c++", ("rvv",), "free", 1e-3, 5e-3, True, False,
        "RISC-V vectors of any length: 16 outputs wide, a weight load serves up to 8 tokens",
        "multiply tiles by the matrix extension where there is one (ime)",
    ),
    VariantSpec(
        "ime", "c++", ("ime",), "free", 1e-3, 5e-3, True, False,
        "SpacemiT's matrix extension: tiles of 4 x 4 x 8 products, 8 tokens x 16 outputs at once",
        "choose ime or rvv by matrix (MOE_IME_GATE_UP, MOE_IME_DOWN) on the board at hand",
    ),
    VariantSpec(
        "rvv-dispatched", "c++", ("rvv",), "free", 1e-3, 5e-3, True, False,
        "the kernels of rvv on a path chosen by the shape, as dispatched does",
        "measure the thresholds of the choice on the board at hand",
    ),
)  # fmt: skip

BY_NAME: dict[str, VariantSpec] = {spec.name: spec for spec in VARIANTS}
