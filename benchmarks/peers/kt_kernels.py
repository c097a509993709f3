"""kt-kernel's int8 experts, through the extension that the package kt_kernel chooses for the CPU.

It quantizes bf16 weights by itself and runs tokens in bf16 on a pool of its own. The shared expert
joins the chosen ones with weight 1; the router is PyTorch's.
"""

from __future__ import annotations

import importlib
from importlib.util import find_spec

from benchmarks.contender import F32, Contender
from benchmarks.peers.torch_cpu import Tensor
from moe_prof.errors import UnavailableError
from moe_prof.kernels import Weights

PACKAGES = {"torch": "torch", "kt_kernel": "kt-kernel"}
CLASS = "AMXInt8_MOE"
NEEDED = ("avx512f", "avx512bw")
WIDTH = 64
LEAST_ROWS = 64
"""Rows for which its buffers are made at least."""


class KtKernel(Contender):
    """All experts as one task of its pool."""

    def availability(self) -> str:
        """Whether it is installed and this CPU has what its int8 class needs."""
        absent = [name for module, name in PACKAGES.items() if find_spec(module) is None]
        if absent:
            return f"{' and '.join(absent)} not installed"
        here = importlib.import_module("moe_prof.machine").read().features
        missing = [name for name in NEEDED if name not in here]
        return f"its int8 experts need {', '.join(missing)}" if missing else ""

    def prepare(self, weights: Weights, threads: int, max_tokens: int) -> None:
        """Give it the weights in bf16 and its threads."""
        if weights.d_model % WIDTH or weights.d_ff % WIDTH:
            raise UnavailableError(f"it needs D and H to be multiples of {WIDTH}")
        self._torch = torch = importlib.import_module("torch")
        torch.set_num_threads(threads)
        extension = importlib.import_module("kt_kernel").kt_kernel_ext
        self._w = weights
        self._router = torch.from_numpy(weights.router).T.contiguous()
        self._bias = torch.from_numpy(weights.bias)
        pool = extension.WorkerPoolConfig()
        pool.subpool_count, pool.subpool_numa_map = 1, [0]
        pool.subpool_thread_count = [threads]
        self._pool = extension.CPUInfer(pool)
        self._experts = self._load(extension, max_tokens)
        self._shared = torch.full((max_tokens, 1), weights.num_experts)
        self._one = torch.ones(max_tokens, 1)
        self._count = torch.tensor([max_tokens], dtype=torch.int32)
        self._out = torch.zeros(max_tokens, weights.d_model, dtype=torch.bfloat16)
        self.path = f"int8, {extension.__cpu_variant__}"

    def forward(self, x: F32) -> F32:
        """Router, then one task, then the residual."""
        torch = self._torch
        with torch.inference_mode():
            tokens = torch.from_numpy(x)
            affinity = torch.sigmoid(tokens @ self._router)
            ids = torch.topk(affinity + self._bias, self._w.top_k, dim=1, sorted=False).indices
            gates = affinity.gather(1, ids)
            gates = gates * (self._w.routed_scaling_factor / gates.sum(dim=1, keepdim=True))
            ids = torch.cat((ids, self._shared), dim=1).contiguous()
            gates = torch.cat((gates, self._one), dim=1).contiguous()
            given = tokens.to(torch.bfloat16)
            task = self._experts.forward_task(
                self._count.data_ptr(), ids.shape[1], ids.data_ptr(), gates.data_ptr(),
                given.data_ptr(), self._out.data_ptr(), False,
            )  # fmt: skip
            self._pool.submit(task)
            self._pool.sync()
            y: F32 = (tokens + self._out).numpy()
            return y

    def _load(self, extension: Tensor, max_tokens: int) -> Tensor:
        torch, w = self._torch, self._w
        mask = torch.zeros(w.num_stored, dtype=torch.uint8)
        config = extension.moe.MOEConfig(
            w.num_stored, w.top_k + 1, w.d_model, w.d_ff, mask.data_ptr()
        )
        config.layer_idx, config.pool = 0, self._pool.backend_
        config.max_len = max(max_tokens, LEAST_ROWS)
        config.load = config.save = False
        matrices = [
            (torch.from_numpy(values) * torch.from_numpy(scale)[:, :, None]).to(torch.bfloat16)
            for values, scale in (
                (w.gate, w.gate_scale_per_channel),
                (w.up, w.up_scale_per_channel),
                (w.down, w.down_scale_per_channel),
            )
        ]
        places = [matrix.data_ptr() for matrix in matrices]
        config.gate_proj, config.up_proj, config.down_proj = places
        experts = getattr(extension.moe, CLASS)(config)
        order = torch.arange(w.num_stored)
        self._pool.submit(experts.load_weights_task(order.data_ptr()))
        self._pool.sync()
        self._kept = (mask, order, matrices)
        return experts
