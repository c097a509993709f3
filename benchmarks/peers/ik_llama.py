"""ik_llama.cpp through the library of the package ik-llama-cpp-python: fused experts, interleaved
8-bit rows.

``q8_0_r8``: blocks of 32 with one scale. ``q8_k_r8``: blocks of 256. ``q8_KV_r8``: one scale a row,
activations with one scale a token, so the same numbers as ours. What refuses an inner width (rows
of ``down``) leaves ``down`` to q8_0_r8.
"""

from __future__ import annotations

from ctypes import c_int, c_int64
from importlib.util import find_spec
from pathlib import Path

from benchmarks.peers.ggml import GgmlLayer, Tensor, Types
from moe_prof.errors import UnavailableError
from moe_prof.kernels import Weights

PACKAGE = "ik_llama_cpp"
WIDTHS = {"q8_0_r8": 32, "q8_k_r8": 256, "q8_KV_r8": 256}
"""Rows must be multiples of this."""


class IkLlama(GgmlLayer):
    """The layer with ``moe_up_gate``, ``fused_up_gate`` and ``mul_multi_add``."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def availability(self) -> str:
        """Whether the package is installed and has its library."""
        if find_spec(PACKAGE) is None:
            return "ik-llama-cpp-python is not installed"
        library = self.libraries()[0]
        return "" if library.is_file() else f"ik-llama-cpp-python has no {library.name}"

    def libraries(self) -> tuple[Path, Path]:
        """One library has both."""
        spec = find_spec(PACKAGE)
        folder = Path(spec.origin or "").parent if spec is not None else Path()
        library = folder / "lib" / "libggml.so"
        return library, library

    def types(self, weights: Weights) -> Types:
        """The kind asked for, where the sizes fit."""
        width = WIDTHS[self._kind]
        if weights.d_model % width:
            raise UnavailableError(f"{self._kind} needs D to be a multiple of {width}")
        if weights.d_ff % WIDTHS["q8_0_r8"]:
            raise UnavailableError("q8_0_r8 needs H to be a multiple of 32")
        return Types(self._kind, "q8_0_r8" if weights.d_ff % width else self._kind)

    def routed(self, ids: Tensor) -> Tensor:
        """Gate, up and SiLU of the chosen experts in one operation."""
        op = self.ggml.op
        tokens = op("reshape_3d", self.x, c_int64(self.w.d_model), c_int64(1), c_int64(self.tokens))
        return op("moe_up_gate", self.up, self.gate, tokens, ids, self._silu())

    def shared(self) -> Tensor:
        """Gate, up and SiLU of the shared expert in one operation."""
        return self.ggml.op("fused_up_gate", self.shared_up, self.shared_gate, self.x, self._silu())

    def summed(self, outputs: Tensor, weights: Tensor) -> Tensor:
        """One operation where the library has it."""
        if self.ggml.has("ggml_mul_multi_add"):
            return self.ggml.op("mul_multi_add", outputs, weights)
        return self.weighted_views(outputs, weights)

    def _silu(self) -> c_int:
        return c_int(self.ggml.unary_number("silu"))
