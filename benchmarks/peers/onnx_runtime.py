"""onnxruntime: QMoE, its own operator for quantized experts, and DynamicQuantizeMatMul by expert.

QMoE takes int8 weights as they are (as uint8 around 128, one scale an output channel or a block)
and does its own choice of experts; the shared expert beside it is made of MatMulNBits. The
composition runs one session an expert, called from Python on the expert's tokens.
"""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.contender import F32, Contender
from benchmarks.peers.numpy_blas import buckets, chosen
from moe_prof.errors import UnavailableError
from moe_prof.kernels import Weights

DOMAIN = "com.microsoft"
OPSET, IR_VERSION = 17, 10
SHARED_BLOCK = 32
"""Values along a row that share a scale in MatMulNBits."""
Module = Any
"""onnx and onnxruntime are no dependencies, so their types are not known."""


class _Graph:
    """Nodes and constants of a model in the making; values are named by what makes them."""

    def __init__(self) -> None:
        self._onnx: Module = importlib.import_module("onnx")
        self._nodes: list[Module] = []
        self._constants: list[Module] = []

    def constant(self, name: str, values: npt.NDArray[np.generic]) -> str:
        """A constant tensor."""
        self._constants.append(self._onnx.numpy_helper.from_array(values, name))
        return name

    def node(self, kind: str, *inputs: str, out: str = "", domain: str = "", **options: Any) -> str:  # noqa: ANN401
        """An operator with one output."""
        name = out or f"{kind}_{len(self._nodes)}"
        make = self._onnx.helper.make_node
        self._nodes.append(make(kind, inputs, [name], name=name, domain=domain, **options))
        return name

    def session(self, width: int, threads: int | None) -> Module:
        """A session from ``x`` (N, width) f32 to ``y``.

        Args:
            threads: of its own pool; None: it uses the pool of the process.

        Raises:
            UnavailableError: onnxruntime refuses the model.
        """
        runtime: Module = importlib.import_module("onnxruntime")
        helper, f32 = self._onnx.helper, self._onnx.TensorProto.FLOAT
        ports = [helper.make_tensor_value_info(name, f32, ("n", width)) for name in ("x", "y")]
        graph = helper.make_graph(self._nodes, "layer", ports[:1], ports[1:], self._constants)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(DOMAIN, 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
        options = runtime.SessionOptions()
        if threads is None:
            options.use_per_session_threads = False
        else:
            options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = 4
        state = runtime.capi.onnxruntime_pybind11_state
        try:
            return runtime.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
        except (state.Fail, state.NotImplemented, state.InvalidArgument) as error:
            first = str(error).splitlines()[0]
            raise UnavailableError(f"onnxruntime refuses the model: {first}") from error


class OnnxQMoE(Contender):
    """The whole layer in one session around QMoE.

    Args:
        block: values along a row that share a scale; 0: one scale a row.
    """

    def __init__(self, block: int) -> None:
        self._block = block

    def availability(self) -> str:
        """Whether both packages are installed."""
        return _missing()

    def prepare(self, weights: Weights, threads: int, max_tokens: int) -> None:
        """Build the model and its session."""
        graph = _Graph()
        affinity = graph.node(
            "Sigmoid",
            graph.node("MatMul", "x", graph.constant("router", weights.router.T.copy())),
        )
        scores = graph.node("Add", affinity, graph.constant("bias", weights.bias))
        routed = self._experts(graph, weights, scores, affinity)
        shared = self._shared(graph, weights)
        graph.node("Add", graph.node("Add", "x", shared), routed, out="y")
        self._session = graph.session(weights.d_model, threads)
        version = importlib.import_module("onnxruntime").__version__
        self.path = f"{version}, QMoE {f'block {self._block}' if self._block else 'per row'}"

    def forward(self, x: F32) -> F32:
        """One run."""
        y: F32 = self._session.run(None, {"x": x})[0]
        return y

    def _experts(self, graph: _Graph, w: Weights, scores: str, affinity: str) -> str:
        count = w.num_experts
        gate_up = np.stack((w.gate[:count], w.up[:count]), axis=2)
        gate_up_scale = np.stack(
            (w.gate_scale_per_channel[:count], w.up_scale_per_channel[:count]), axis=2
        )
        inputs = [
            "x", scores,
            graph.constant("fc1", _unsigned(gate_up.reshape(count, 2 * w.d_ff, w.d_model))),
            graph.constant(
                "fc1_scale", self._scales(gate_up_scale.reshape(count, -1), w.d_model)
            ),
            "",
            graph.constant("fc2", _unsigned(w.down[:count])),
            graph.constant("fc2_scale", self._scales(w.down_scale_per_channel[:count], w.d_ff)),
            "", "", "", "", "", "", "", affinity,
        ]  # fmt: skip
        options: dict[str, Any] = {"block_size": self._block} if self._block else {}
        return graph.node(
            "QMoE", *inputs, domain=DOMAIN, k=w.top_k, activation_type="swiglu", swiglu_fusion=1,
            activation_alpha=1.0, activation_beta=0.0, normalize_routing_weights=1,
            expert_weight_bits=8, weights_prepacked=0, **options,
        )  # fmt: skip

    def _scales(self, scale: F32, length: int) -> F32:
        """(E, rows), or (E, rows, blocks): the same scale for every block of a row."""
        if not self._block:
            return scale
        if length % self._block:
            raise UnavailableError(f"QMoE needs sizes that are multiples of {self._block}")
        return np.repeat(scale[:, :, None], length // self._block, axis=2)

    def _shared(self, graph: _Graph, w: Weights) -> str:
        gate = _matmul_nbits(graph, "shared_gate", "x", w.gate[-1], w.gate_scale_per_channel[-1])
        up = _matmul_nbits(graph, "shared_up", "x", w.up[-1], w.up_scale_per_channel[-1])
        h = graph.node("Mul", graph.node("Mul", gate, graph.node("Sigmoid", gate)), up)
        return _matmul_nbits(graph, "shared_down", h, w.down[-1], w.down_scale_per_channel[-1])


class OnnxDynamic(Contender):
    """DynamicQuantizeMatMul: activations as uint8 with one scale a matrix, weights as int8.

    One session an expert, called from Python on the expert's tokens.
    """

    def availability(self) -> str:
        """Whether both packages are installed."""
        return _missing()

    def prepare(self, weights: Weights, threads: int, max_tokens: int) -> None:
        """A session for the router and one for each expert, on one pool of threads."""
        self._w = weights
        runtime: Module = importlib.import_module("onnxruntime")
        runtime.set_global_thread_pool_sizes(threads, 1)
        self._experts = [_expert(weights, expert) for expert in range(weights.num_stored)]
        self.path = f"{runtime.__version__}, DynamicQuantizeMatMul"

    def forward(self, x: F32) -> F32:
        """Router in NumPy, then a run for every expert that is needed."""
        w = self._w
        affinity = 1 / (1 + np.exp(-(x @ w.router.T)))
        ids = chosen(affinity + w.bias, w.top_k)
        gates = np.take_along_axis(affinity, ids, axis=1)
        gates *= w.routed_scaling_factor / gates.sum(axis=1, keepdims=True)
        y: F32 = x + self._experts[-1].run(None, {"x": x})[0]
        for expert, rows, slots in buckets(ids):
            out = self._experts[expert].run(None, {"x": x[rows]})[0]
            y[rows] += gates[rows, slots, None] * out
        return y


def _expert(w: Weights, expert: int) -> Module:
    graph = _Graph()
    gate_up = np.concatenate((w.gate[expert], w.up[expert]))
    scale = np.concatenate((w.gate_scale_per_channel[expert], w.up_scale_per_channel[expert]))
    both = _dynamic(graph, "gate_up", "x", gate_up, scale)
    parts = [
        graph.node("Slice", both, *(graph.constant(f"{name}_{k}", np.array([v])) for k, v in place))
        for name, place in (
            ("gate", (("from", 0), ("to", w.d_ff), ("axis", 1))),
            ("up", (("from", w.d_ff), ("to", 2 * w.d_ff), ("axis", 1))),
        )
    ]
    h = graph.node("Mul", graph.node("Mul", parts[0], graph.node("Sigmoid", parts[0])), parts[1])
    _dynamic(graph, "down", h, w.down[expert], w.down_scale_per_channel[expert], out="y")
    return graph.session(w.d_model, None)


def _dynamic(  # noqa: PLR0917
    graph: _Graph, name: str, x: str, matrix: npt.NDArray[np.int8], scale: F32, out: str = ""
) -> str:
    values = graph.constant(f"{name}_values", np.ascontiguousarray(matrix.T))
    scales = graph.constant(f"{name}_scale", scale)
    zeros = graph.constant(f"{name}_zero", np.zeros(len(scale), np.int8))
    return graph.node("DynamicQuantizeMatMul", x, values, scales, zeros, out=out, domain=DOMAIN)


def _matmul_nbits(
    graph: _Graph, name: str, x: str, matrix: npt.NDArray[np.int8], scale: F32
) -> str:
    (rows, length), block = matrix.shape, SHARED_BLOCK
    if length % block:
        raise UnavailableError(f"MatMulNBits needs sizes that are multiples of {block}")
    blocks = length // block
    values = graph.constant(f"{name}_values", _unsigned(matrix).reshape(rows, blocks, block))
    scales = graph.constant(f"{name}_scale", np.repeat(scale, blocks))
    return graph.node(
        "MatMulNBits", x, values, scales, domain=DOMAIN, K=length, N=rows, bits=8,
        block_size=block, accuracy_level=4,
    )  # fmt: skip


def _unsigned(values: npt.NDArray[np.int8]) -> npt.NDArray[np.uint8]:
    """The same numbers as distances from -128."""
    return (values.astype(np.int16) + 128).astype(np.uint8)


def _missing() -> str:
    missing = [name for name in ("onnxruntime", "onnx") if find_spec(name) is None]
    return f"{' and '.join(missing)} not installed" if missing else ""
