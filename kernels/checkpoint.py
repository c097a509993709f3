"""A layer's weights from a model's checkpoint: found by name pattern and layer number.

Read is the W8A8 form of compressed-tensors: for every matrix an int8 ``NAME.weight`` (out, in) and
a floating-point ``NAME.weight_scale`` of one scale, or one per output channel, symmetric. The files
are mapped; experts are copied one by one into the arrays that kernels take.

Source: the names of the models' published checkpoints, and the compressed-tensors format.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from moe_prof.errors import InputError, UsageError
from moe_prof.kernels.inputs import random_weights
from moe_prof.kernels.memory import check_memory, required_bytes
from moe_prof.kernels.safetensors_file import Tensor, files_at, tensors_at
from moe_prof.kernels.weights import F32, I8, Weights
from moe_prof.scenario import Checkpoint, Scenario

PATTERNS = (
    "model.layers.{layer}.mlp.experts.{expert}.{matrix}_proj",
    "model.layers.{layer}.block_sparse_moe.experts.{expert}.w{w}",
)
"""``{matrix}`` is gate, up or down, ``{w}`` the same as 1, 3 or 2 (Mixtral)."""
SHARED = ("shared_experts", "shared_expert")
_W = {"gate": "1", "up": "3", "down": "2"}
_EXPERTS = ".experts."


def layer_weights(scenario: Scenario, seed: int = 0) -> Weights:
    """The scenario's weights: of its checkpoint, or seeded ones.

    Raises:
        InputError: the checkpoint lacks a tensor or holds one of other shape or type.
        UsageError: memory would not do.
    """
    if scenario.checkpoint is None:
        return random_weights(scenario, seed)
    check_memory(f"scenario {scenario.label}", required_bytes(scenario))
    return _Layer.open(scenario.checkpoint).weights(scenario)


def files_of(source: Checkpoint) -> list[Path]:
    """The files in which a checkpoint's tensors lie.

    Raises:
        InputError: there is none, or its index is damaged.
    """
    return files_at(Path(source.path))


def has_shared(source: Checkpoint) -> bool:
    """Whether the layer of a checkpoint has a shared expert.

    Raises:
        InputError: it has no experts of that pattern and layer at all.
    """
    return _Layer.open(source).shared is not None


def check_pattern(text: str) -> str:
    """The pattern, when names can be made from it.

    Raises:
        UsageError: it lacks a part.
    """
    lacking = [part for part in ("{layer}", _EXPERTS + "{expert}") if part not in text]
    if "{matrix}" not in text and "{w}" not in text:
        lacking.append("{matrix} (gate, up, down) or {w} (1, 3, 2)")
    if lacking:
        raise UsageError(
            f"--pattern {text}: it lacks {', '.join(lacking)}; an example: {PATTERNS[0]}"
        )
    return text


class _Matrix(NamedTuple):
    values: I8
    scales: F32


@dataclass(frozen=True, slots=True)
class _Layer:
    """One layer of an opened checkpoint; ``shared`` is the pattern of its shared expert."""

    source: Checkpoint
    pattern: str
    tensors: dict[str, Tensor]
    shared: str | None

    @classmethod
    def open(cls, source: Checkpoint) -> _Layer:
        tensors = tensors_at(Path(source.path))
        wanted = (source.pattern,) if source.pattern else PATTERNS
        for pattern in wanted:
            if _name(pattern, source.layer, "gate", 0) + ".weight" in tensors:
                break
        else:
            tried = " or ".join(_name(p, source.layer, "gate", 0) + ".weight" for p in wanted)
            raise InputError(
                f"{source.path}: layer {source.layer} has no tensor {tried}; see --layer, --pattern"
            )
        head, _, tail = pattern.partition(_EXPERTS)
        for name in SHARED:
            shared = f"{head}.{name}.{tail.partition('.')[2]}"
            if _name(shared, source.layer, "gate") + ".weight" in tensors:
                return cls(source, pattern, tensors, shared)
        return cls(source, pattern, tensors, None)

    def weights(self, scenario: Scenario) -> Weights:
        """All of the layer as one set of arrays."""
        _, d, h, e, k = scenario.shape
        options, stored = scenario.options, scenario.stored_experts
        if options.has_shared and self.shared is None:
            raise InputError(
                f"{self.source.path}: layer {self.source.layer} has no shared expert, which "
                f"scenario {scenario.label} has"
            )
        self._refuse_more_experts(scenario)
        shapes = {"gate": (h, d), "up": (h, d), "down": (d, h)}
        arrays: dict[str, I8] = {}
        scales: dict[str, F32] = {}
        for name, shape in shapes.items():
            arrays[name] = np.empty((stored, *shape), np.int8)
            scales[name] = np.empty((stored, shape[0]), np.float32)
            for expert in range(stored):
                found = self._matrix(name, expert if expert < e else None, shape)
                arrays[name][expert], scales[name][expert] = found
        prefix = self.pattern.partition(_EXPERTS)[0].replace("{layer}", str(self.source.layer))
        router = self._floats(f"{prefix}.gate.weight", ((e, d),)).reshape(e, d)
        return Weights(
            router=router,
            bias=self._bias(f"{prefix}.gate.e_score_correction_bias", e),
            gate=arrays["gate"], up=arrays["up"], down=arrays["down"],
            gate_scale=scales["gate"], up_scale=scales["up"], down_scale=scales["down"],
            top_k=k, **asdict(options),
        )  # fmt: skip

    def _matrix(self, matrix: str, expert: int | None, shape: tuple[int, int]) -> _Matrix:
        pattern = self.pattern if expert is not None else self.shared
        assert pattern is not None
        name = _name(pattern, self.source.layer, matrix, expert)
        zero_point = f"{name}.weight_zero_point"
        if zero_point in self.tensors:
            raise InputError(
                f"{self.tensors[zero_point].file}: tensor {zero_point} means asymmetric weights; "
                "only symmetric ones can be run"
            )
        weight = self._find(f"{name}.weight")
        _check_shape(weight, (shape,))
        out = shape[0]
        scale = self._floats(f"{name}.weight_scale", ((out, 1), (out,), (1, 1), (1,), ()))
        return _Matrix(weight.int8(), np.broadcast_to(scale.reshape(-1), (out,)))

    def _bias(self, name: str, experts: int) -> F32:
        if name not in self.tensors:
            return np.zeros(experts, np.float32)
        return self._floats(name, ((experts,),))

    def _floats(self, name: str, shapes: tuple[tuple[int, ...], ...]) -> F32:
        tensor = self._find(name)
        _check_shape(tensor, shapes)
        values = tensor.float32()
        if not np.isfinite(values).all():
            raise InputError(f"{tensor.file}: tensor {name} holds values that are not finite")
        return values

    def _find(self, name: str) -> Tensor:
        found = self.tensors.get(name)
        if found is None:
            raise InputError(f"{self.source.path}: it has no tensor {name}")
        return found

    def _refuse_more_experts(self, scenario: Scenario) -> None:
        name = _name(self.pattern, self.source.layer, "gate", scenario.num_experts) + ".weight"
        if name in self.tensors:
            raise InputError(
                f"{self.tensors[name].file}: tensor {name} is of an expert beyond the "
                f"{scenario.num_experts} of scenario {scenario.label}"
            )


def _name(pattern: str, layer: int, matrix: str, expert: int | None = None) -> str:
    parts = {"{layer}": str(layer), "{matrix}": matrix, "{w}": _W[matrix]}
    if expert is not None:
        parts["{expert}"] = str(expert)
    for part, text in parts.items():
        pattern = pattern.replace(part, text)
    return pattern


def _check_shape(tensor: Tensor, shapes: tuple[tuple[int, ...], ...]) -> None:
    if tensor.shape not in shapes:
        wanted = " or ".join(str(shape) for shape in shapes)
        raise InputError(
            f"{tensor.file}: tensor {tensor.name} has shape {tensor.shape}, {wanted} is needed"
        )
