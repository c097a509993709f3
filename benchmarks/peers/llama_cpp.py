"""llama.cpp through the libraries of the package llama-cpp-python: Q8_0 and ``mul_mat_id``."""

from __future__ import annotations

from ctypes import c_int64
from importlib.util import find_spec
from pathlib import Path

from benchmarks.peers.ggml import GgmlLayer, Tensor, Types
from moe_prof.errors import UnavailableError
from moe_prof.kernels import Weights

PACKAGE = "llama_cpp"
BLOCK = 32


class LlamaCpp(GgmlLayer):
    """The layer as llama.cpp builds it, with ``swiglu_split`` between the products."""

    def availability(self) -> str:
        """Whether the package is installed and has its libraries."""
        if find_spec(PACKAGE) is None:
            return "llama-cpp-python is not installed"
        missing = [path.name for path in self.libraries() if not path.is_file()]
        return f"llama-cpp-python has no {', '.join(missing)}" if missing else ""

    def libraries(self) -> tuple[Path, Path]:
        """One for graphs, one for the CPU."""
        spec = find_spec(PACKAGE)
        places = list(spec.submodule_search_locations or ()) if spec is not None else []
        folder = Path(places[0]) / "lib" if places else Path()
        return folder / "libggml-base.so", folder / "libggml-cpu.so"

    def types(self, weights: Weights) -> Types:
        """Q8_0 everywhere."""
        if weights.d_model % BLOCK or weights.d_ff % BLOCK:
            raise UnavailableError(f"q8_0 needs D and H to be multiples of {BLOCK}")
        return Types("q8_0", "q8_0")

    def routed(self, ids: Tensor) -> Tensor:
        """Two products of the chosen experts, then SiLU."""
        op, w = self.ggml.op, self.w
        tokens = op("reshape_3d", self.x, c_int64(w.d_model), c_int64(1), c_int64(self.tokens))
        gate = op("mul_mat_id", self.gate, tokens, ids)
        return op("swiglu_split", gate, op("mul_mat_id", self.up, tokens, ids))

    def shared(self) -> Tensor:
        """The same of the shared expert."""
        op = self.ggml.op
        gate = op("mul_mat", self.shared_gate, self.x)
        return op("swiglu_split", gate, op("mul_mat", self.shared_up, self.x))

    def summed(self, outputs: Tensor, weights: Tensor) -> Tensor:
        """A product and K - 1 additions."""
        return self.weighted_views(outputs, weights)
