"""PyTorch on the CPU, eager: grouped products of bf16 weights, or of int8 ones (torch._int_mm)."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import Any, Literal

from benchmarks.contender import F32, Contender
from benchmarks.peers.numpy_blas import buckets
from moe_prof.kernels import Weights

Kind = Literal["bf16", "int8"]
Tensor = Any
"""torch is no dependency, so its types are not known."""


class TorchCpu(Contender):
    """The layer in eager PyTorch: router in f32, tokens grouped by expert, two products each.

    ``bf16``: dequantized weights, products in bf16 (8 bits of precision). ``int8``: W8A8 per token,
    torch._int_mm.
    """

    def __init__(self, kind: Kind) -> None:
        self._kind = kind

    def availability(self) -> str:
        """Whether torch is installed."""
        return "" if find_spec("torch") else "torch is not installed"

    def prepare(self, weights: Weights, threads: int, max_tokens: int) -> None:
        """Weights as tensors, gate and up in one matrix."""
        self._torch = torch = importlib.import_module("torch")
        torch.set_num_threads(threads)
        gate_up = torch.cat((torch.from_numpy(weights.gate), torch.from_numpy(weights.up)), dim=1)
        down = torch.from_numpy(weights.down)
        gate_up_scale = torch.cat(
            (
                torch.from_numpy(weights.gate_scale_per_channel),
                torch.from_numpy(weights.up_scale_per_channel),
            ),
            dim=1,
        )
        down_scale = torch.from_numpy(weights.down_scale_per_channel)
        self._router = torch.from_numpy(weights.router).T.contiguous()
        self._bias = torch.from_numpy(weights.bias)
        self._w = weights
        if self._kind == "bf16":
            self._gate_up = (gate_up * gate_up_scale[:, :, None]).to(torch.bfloat16)
            self._down = (down * down_scale[:, :, None]).to(torch.bfloat16)
        else:
            self._gate_up, self._down = gate_up, down
        self._gate_up_scale, self._down_scale = gate_up_scale, down_scale
        self.path = f"torch {torch.__version__}, {self._kind}"

    def forward(self, x: F32) -> F32:
        """Router, buckets, experts, sum."""
        torch = self._torch
        with torch.inference_mode():
            tokens = torch.from_numpy(x)
            affinity = torch.sigmoid(tokens @ self._router)
            ids = torch.topk(affinity + self._bias, self._w.top_k, dim=1, sorted=False).indices
            gates = affinity.gather(1, ids)
            gates = gates * (self._w.routed_scaling_factor / gates.sum(dim=1, keepdim=True))
            ffn = self._ffn_bf16 if self._kind == "bf16" else self._ffn_int8
            first = tokens.to(torch.bfloat16) if self._kind == "bf16" else tokens
            y = tokens + ffn(self._w.num_experts, first)
            for expert, rows, slots in buckets(ids.numpy()):
                index = torch.from_numpy(rows)
                weight = gates[index, torch.from_numpy(slots)]
                y.index_add_(0, index, ffn(expert, first[index]) * weight[:, None])
            result: F32 = y.numpy()
            return result

    def _ffn_bf16(self, expert: int, x: Tensor) -> Tensor:
        functional = self._torch.nn.functional
        gate, up = functional.linear(x, self._gate_up[expert]).chunk(2, dim=1)
        return functional.linear(functional.silu(gate) * up, self._down[expert]).float()

    def _ffn_int8(self, expert: int, x: Tensor) -> Tensor:
        functional = self._torch.nn.functional
        x_q, scale = self._quantized(x)
        products = self._torch._int_mm(x_q, self._gate_up[expert].T)
        gate, up = (products * (scale * self._gate_up_scale[expert])).chunk(2, dim=1)
        h_q, h_scale = self._quantized(functional.silu(gate) * up)
        out = self._torch._int_mm(h_q, self._down[expert].T)
        return out * (h_scale * self._down_scale[expert])

    def _quantized(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        scale = rows.abs().amax(dim=1, keepdim=True).clamp(min=2.0**-100) / 127
        return (rows / scale).round().to(self._torch.int8), scale
