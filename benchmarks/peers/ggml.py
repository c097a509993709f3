"""The layer as a ggml graph, through the C functions that llama.cpp and its forks share.

Only declarations that have long been the same in all of them are used; types and operations are
looked up by their names, because their numbers differ. A graph is built once for a number of
tokens and computed on every forward, as an inference engine does. Source of the graph's shape: the
mixture-of-experts block of llama.cpp (``mul_mat_id`` on experts chosen by sigmoid scores with bias,
normalized weights, a sum of views).
"""

from __future__ import annotations

import ctypes
from abc import abstractmethod
from ctypes import c_char_p, c_float, c_int, c_int32, c_int64, c_size_t, c_void_p
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.contender import F32, Contender
from moe_prof.errors import UnavailableError, WorkloadError
from moe_prof.kernels import Weights
from moe_prof.kernels import build as kernel_build

MOST_TYPES = 1024
GRAPH_NODES = 512
SLACK_BYTES = 64 << 20
INSTRUCTIONS = (
    "amx_int8",
    "avx512_vnni",
    "avx512",
    "avx_vnni",
    "avx2",
    "sve",
    "matmul_int8",
    "neon",
)
"""What a library can be compiled for, the widest first."""
PLAN_WORDS = 30
"""More than any version's ``ggml_cplan`` has behind its first two members."""
Tensor = int
"""The address of a ggml_tensor."""
Function = Any
"""A function of ctypes, whose class has no public name."""


class _Parameters(ctypes.Structure):
    _fields_ = (("mem_size", c_size_t), ("mem_buffer", c_void_p), ("no_alloc", ctypes.c_bool))


class _Plan(ctypes.Structure):
    """``ggml_cplan``, returned by value; the rest is the library's own."""

    _fields_ = (("work_size", c_size_t), ("work_data", c_void_p), ("rest", c_int64 * PLAN_WORDS))


@dataclass(frozen=True, slots=True)
class Types:
    """Names of ggml types for gate and up, and for down."""

    gate_up: str
    down: str


class Ggml:
    """A ggml library: its functions, and a context with memory for one layer."""

    def __init__(self, graph_library: Path, compute_library: Path, bytes_needed: int) -> None:
        self._graph = ctypes.CDLL(str(graph_library), mode=ctypes.RTLD_GLOBAL)
        self._compute = ctypes.CDLL(str(compute_library), mode=ctypes.RTLD_GLOBAL)
        self._declare()
        if hasattr(self._compute, "ggml_cpu_init"):
            self._compute.ggml_cpu_init()
        self._context = self._graph.ggml_init(_Parameters(bytes_needed, None, False))
        if not self._context:
            raise UnavailableError(f"ggml could not allocate {bytes_needed} bytes")

    def has(self, name: str) -> bool:
        """Whether the library has that function."""
        return hasattr(self._graph, name)

    def type_number(self, name: str) -> int:
        """The type of that name; raises UnavailableError where the library has none."""
        return self._numbered("ggml_type_name", name)

    def unary_number(self, name: str) -> int:
        """The unary operation of that name; raises UnavailableError where there is none."""
        return self._numbered("ggml_unary_op_name", name)

    def block_size(self, number: int) -> int:
        """Values of one block of a type: rows must be multiples of it."""
        return int(self._graph.ggml_blck_size(number))

    def new(self, number: int, *sizes: int) -> Tensor:
        """A tensor, the innermost size first."""
        shape = (c_int64 * len(sizes))(*sizes)
        return int(self._graph.ggml_new_tensor(c_void_p(self._context), number, len(sizes), shape))

    def op(self, name: str, *arguments: object) -> Tensor:
        """Add ``ggml_<name>`` to the graph; tensors are ints, sizes must be wrapped."""
        function = getattr(self._graph, f"ggml_{name}")
        function.restype = c_void_p
        wrapped = [c_void_p(a) if isinstance(a, int) else a for a in arguments]
        return int(function(c_void_p(self._context), *wrapped))

    def data(self, tensor: Tensor) -> int:
        """Where its values are."""
        return int(self._graph.ggml_get_data(c_void_p(tensor)))

    def array(self, tensor: Tensor, shape: tuple[int, ...]) -> F32:
        """The values of an f32 tensor as an array, outermost size first."""
        count = int(np.prod(shape))
        return np.ctypeslib.as_array((c_float * count).from_address(self.data(tensor))).reshape(
            shape
        )

    def row_bytes(self, number: int, length: int) -> int:
        """Bytes of a row of that type."""
        return int(self._graph.ggml_row_size(number, length))

    def quantize(self, number: int, rows: F32, tensor: Tensor, first_row: int) -> None:
        """Write rows (R, C) f32 into a tensor of a quantized type, from ``first_row`` on."""
        count, length = rows.shape
        place = self.data(tensor) + first_row * self.row_bytes(number, length)
        self._graph.ggml_quantize_chunk(number, rows.ctypes.data, place, 0, count, length, None)

    def graph_of(self, result: Tensor) -> int:
        """The graph that computes a tensor."""
        graph = self._graph.ggml_new_graph_custom(
            c_void_p(self._context), c_size_t(GRAPH_NODES), ctypes.c_bool(False)
        )
        self._graph.ggml_build_forward_expand(c_void_p(graph), c_void_p(result))
        return int(graph)

    def plan(self, graph: int, threads: int) -> tuple[_Plan, npt.NDArray[np.uint8]]:
        """A plan with its workspace, which must live as long."""
        made = self._compute.ggml_graph_plan(c_void_p(graph), threads, None)
        work = np.zeros(made.work_size + 64, np.uint8)
        made.work_data = work.ctypes.data + -work.ctypes.data % 64
        return made, work

    def instructions(self) -> str:
        """The widest instructions that this library was compiled for."""
        for name in INSTRUCTIONS:
            has = getattr(self._compute, f"ggml_cpu_has_{name}", None)
            if has is not None and has():
                return name
        return "portable"

    @property
    def compute(self) -> Function:
        """``ggml_graph_compute(graph, plan)``, 0 when all went well."""
        return self._compute.ggml_graph_compute

    def _declare(self) -> None:
        graph, compute = self._graph, self._compute
        graph.ggml_init.restype, graph.ggml_init.argtypes = c_void_p, (_Parameters,)
        graph.ggml_new_tensor.restype = c_void_p
        graph.ggml_new_graph_custom.restype = c_void_p
        graph.ggml_get_data.restype = c_void_p
        graph.ggml_blck_size.restype = c_int64
        graph.ggml_row_size.restype = c_size_t
        graph.ggml_row_size.argtypes = (c_int, c_int64)
        graph.ggml_quantize_chunk.restype = c_size_t
        graph.ggml_quantize_chunk.argtypes = (
            c_int, c_void_p, c_void_p, c_int64, c_int64, c_int64, c_void_p,
        )  # fmt: skip
        compute.ggml_graph_plan.restype = _Plan
        compute.ggml_graph_plan.argtypes = (c_void_p, c_int, c_void_p)
        compute.ggml_graph_compute.restype = c_int
        compute.ggml_graph_compute.argtypes = (c_void_p, c_void_p)

    def _numbered(self, function: str, name: str) -> int:
        name_of = getattr(self._graph, function)
        name_of.restype, name_of.argtypes = c_char_p, (c_int,)
        most = MOST_TYPES
        for number in range(most):
            found = name_of(number)
            if found is not None and found.decode(errors="replace").lower() == name.lower():
                return number
        raise UnavailableError(f"this ggml has no {name}")


class GgmlLayer(Contender):
    """The layer as a graph; subclasses say which library, which types, which fused operations."""

    @abstractmethod
    def libraries(self) -> tuple[Path, Path]:
        """The libraries with the graph functions and with the CPU's compute functions."""

    @abstractmethod
    def types(self, weights: Weights) -> Types:
        """The types of the weights; raises UnavailableError for sizes that they do not fit."""

    @abstractmethod
    def routed(self, ids: Tensor) -> Tensor:
        """silu(gate x) * (up x) of the chosen experts: (H, K, N)."""

    @abstractmethod
    def shared(self) -> Tensor:
        """The same of the shared expert: (H, N)."""

    @abstractmethod
    def summed(self, outputs: Tensor, weights: Tensor) -> Tensor:
        """The sum over the chosen experts of (D, K, N) times (1, K, N): (D, N)."""

    def prepare(self, weights: Weights, threads: int, max_tokens: int) -> None:
        """Quantize the weights into ggml's types, build the graph and its plan."""
        self.w, self.tokens = weights, max_tokens
        kinds = self.types(weights)
        self.ggml = Ggml(*self.libraries(), _bytes_needed(weights, max_tokens))
        self._load_weights(kinds)
        self.x = self.ggml.new(0, weights.d_model, max_tokens)
        self._graph = self.ggml.graph_of(self._layer())
        self._plan, self._work = self.ggml.plan(self._graph, threads)
        self._in = self.ggml.array(self.x, (max_tokens, weights.d_model))
        self._out = self.ggml.array(self._y, (max_tokens, weights.d_model))
        other = "" if kinds.gate_up == kinds.down else f", down {kinds.down}"
        self.path = f"{self.ggml.instructions()}, {kinds.gate_up}{other}"

    def forward(self, x: F32) -> F32:
        """Copy the tokens in, compute, copy the result out."""
        self._in[:] = x
        status = self.ggml.compute(self._graph, ctypes.byref(self._plan))
        if status != 0:
            raise WorkloadError(f"ggml_graph_compute: status {status}")
        return self._out.copy()

    def time_forward(self, x: F32, loops: int) -> float:
        """The native loop of the toolkit: it calls a function of up to four word-sized arguments,
        of which ``ggml_graph_compute`` takes the first two.
        """
        self._in[:] = x
        timing = ctypes.CDLL(str(kernel_build.build("release").support)).moe_time_forward
        timing.restype = c_int32
        timing.argtypes = (
            c_void_p, c_void_p, c_void_p, c_void_p, c_int64, c_int64, c_int64, c_void_p,
        )  # fmt: skip
        time_ns = np.zeros(1, np.uint64)
        function = ctypes.cast(self.ggml.compute, c_void_p)
        status = timing(
            function, self._graph, ctypes.addressof(self._plan), None, 0, loops, 1,
            time_ns.ctypes.data,
        )  # fmt: skip
        if status != 0:
            raise WorkloadError(f"ggml_graph_compute: status {status}")
        return float(time_ns[0]) * 1e-9

    def _layer(self) -> Tensor:
        """y = x + shared + the weighted sum of the chosen experts."""
        op, w, n = self.ggml.op, self.w, self.tokens
        affinity = op("sigmoid", op("mul_mat", self._router, self.x))
        ids = op("top_k", op("add", affinity, self._bias), c_int(w.top_k))
        rows = op("reshape_3d", affinity, c_int64(1), c_int64(w.num_experts), c_int64(n))
        gates = op("get_rows", rows, ids)
        gates = op("reshape_2d", gates, c_int64(w.top_k), c_int64(n))
        gates = op("div", gates, op("sum_rows", gates))
        gates = op("reshape_3d", gates, c_int64(1), c_int64(w.top_k), c_int64(n))
        experts = op("mul_mat_id", self.down, self.routed(ids), ids)
        routed = self.summed(experts, gates)
        shared = op("mul_mat", self.shared_down, self.shared())
        self._y = op("add", op("add", self.x, shared), routed)
        return self._y

    def _load_weights(self, kinds: Types) -> None:
        w, new = self.w, self.ggml.new
        experts, d, h = w.num_experts, w.d_model, w.d_ff
        self._router, self._bias = new(0, d, experts), new(0, experts)
        self.ggml.array(self._router, (experts, d))[:] = w.router
        self.ggml.array(self._bias, (experts,))[:] = w.bias
        first, second = (self.ggml.type_number(name) for name in (kinds.gate_up, kinds.down))
        self.gate, self.up = new(first, d, h, experts), new(first, d, h, experts)
        self.down = new(second, h, d, experts)
        self.shared_gate, self.shared_up = new(first, d, h), new(first, d, h)
        self.shared_down = new(second, h, d)
        for values, scale, number, routed, shared in (
            (w.gate, w.gate_scale_per_channel, first, self.gate, self.shared_gate),
            (w.up, w.up_scale_per_channel, first, self.up, self.shared_up),
            (w.down, w.down_scale_per_channel, second, self.down, self.shared_down),
        ):
            for expert in range(experts + 1):
                rows = values[expert] * scale[expert][:, None]
                place, into = (expert, routed) if expert < experts else (0, shared)
                self.ggml.quantize(number, rows, into, place * rows.shape[0])

    def weighted_views(self, outputs: Tensor, weights: Tensor) -> Tensor:
        """The sum as llama.cpp writes it: a product, then K - 1 additions of views."""
        op, d, k, n = self.ggml.op, self.w.d_model, self.w.top_k, self.tokens
        outputs = op("mul", outputs, weights)
        parts = [
            op(
                "view_2d", outputs, c_int64(d), c_int64(n), c_size_t(4 * d * k),
                c_size_t(4 * d * slot),
            )
            for slot in range(k)
        ]  # fmt: skip
        total = parts[0]
        for part in parts[1:]:
            total = op("add", total, part)
        return total if k > 1 else op("cont", total)


def _bytes_needed(w: Weights, tokens: int) -> int:
    """Room for the weights in any 8-bit type and for every intermediate tensor."""
    stored = w.gate.size + w.up.size + w.down.size
    per_token = 4 * (
        6 * w.num_experts + w.top_k * (4 * w.d_ff + 4 * w.d_model + 16) + 4 * w.d_ff + 8 * w.d_model
    )
    return int(1.2 * stored) + 4 * w.router.size + tokens * per_token + SLACK_BYTES
