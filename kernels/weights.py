"""The weights of one W8A8 Mixture-of-Experts layer, checked once at construction.

Everything after this module may rely on the dtypes, the shapes, C order and finite values; the
bounds of the integer arithmetic are checked here as well, so that int32 accumulation is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, get_args

import numpy as np
import numpy.typing as npt

from moe_prof.errors import InputError
from moe_prof.presets import Score

F32 = npt.NDArray[np.float32]
I8 = npt.NDArray[np.int8]
Scalar = TypeVar("Scalar", bound=np.generic)

SMALLEST_F32 = float(np.finfo(np.float32).smallest_normal)
LARGEST_F32 = float(np.finfo(np.float32).max)
MAX_REDUCTION = (2**31 - 1) // (127 * 128)
"""Longest dot product of int8 weights (at most 128 in size) and int8 activations (at most 127)
whose int32 sum cannot overflow."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Weights:
    """The weights of one layer: E routed experts and, last, a shared one where ``has_shared``.

    D is d_model, H is d_ff, S is 1 with a shared expert and 0 without. Arrays that are not aligned
    and in C order are copied; nothing is ever cast.

    Attributes:
        router: (E, D) f32.
        bias: (E,) f32, added to the affinity for the choice of experts only.
        gate / up: (E + S, H, D) int8, the whole range, -128 included.
        down: (E + S, D, H) int8.
        gate_scale / up_scale: (E + S,) f32, or (E + S, H) per output channel.
        down_scale: (E + S,) f32, or (E + S, D) per output channel.
        top_k: routed experts per token, K.
        score: how a router output becomes an affinity.
        n_group: routing groups of equal size, 1 = off.
        topk_group: groups kept before the top-K choice.
        routed_scaling_factor: multiplies every gate; within the normal range of f32.
        has_shared: the last expert serves every token.
        has_residual: the layer's output starts from its input.
        normalize_gates: gates are divided by their sum over the chosen experts.

    Raises:
        InputError: an array or option breaks the above.
    """

    router: F32
    bias: F32
    gate: I8
    up: I8
    down: I8
    gate_scale: F32
    up_scale: F32
    down_scale: F32
    top_k: int
    score: Score = "sigmoid"
    n_group: int = 1
    topk_group: int = 1
    routed_scaling_factor: float = 1.0
    has_shared: bool = True
    has_residual: bool = True
    normalize_gates: bool = True

    def __post_init__(self) -> None:
        router = _checked("router", self.router, np.float32, ((None, None),), shape_text="(E, D)")
        experts, d_model = router.shape
        stored = experts + (1 if self.has_shared else 0)
        gate_text = f"({stored}, H, {d_model})"
        gate = _checked(
            "gate", self.gate, np.int8, ((stored, None, d_model),), shape_text=gate_text
        )
        d_ff = gate.shape[1]
        _check_reduction("D (d_model)", d_model)
        _check_reduction("H (d_ff)", d_ff)
        arrays: dict[str, npt.NDArray[np.float32] | npt.NDArray[np.int8]] = {
            "router": router,
            "gate": gate,
            "bias": _checked("bias", self.bias, np.float32, ((experts,),)),
            "up": _checked("up", self.up, np.int8, ((stored, d_ff, d_model),)),
            "down": _checked("down", self.down, np.int8, ((stored, d_model, d_ff),)),
        }
        for name, width in (("gate_scale", d_ff), ("up_scale", d_ff), ("down_scale", d_model)):
            shapes = ((stored,), (stored, width))
            arrays[name] = _checked(name, getattr(self, name), np.float32, shapes)
        for name, array in arrays.items():
            object.__setattr__(self, name, array)
        self._check_options(experts)

    def _check_options(self, experts: int) -> None:
        for name in ("has_shared", "has_residual", "normalize_gates"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"weights: {name} = {getattr(self, name)!r} must be True or False")
        for name in ("top_k", "n_group", "topk_group"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise InputError(f"weights: {name} = {value!r} must be an int")
        if not 1 <= self.top_k <= experts:
            raise InputError(f"weights: top_k = {self.top_k} is not in 1..{experts} (E)")
        if self.score not in get_args(Score):
            known = " or ".join(get_args(Score))
            raise InputError(f"weights: score = {self.score!r} is unknown; use {known}")
        if self.n_group < 1 or experts % self.n_group:
            raise InputError(f"weights: n_group = {self.n_group} does not divide E = {experts}")
        if not 1 <= self.topk_group <= self.n_group:
            raise InputError(
                f"weights: topk_group = {self.topk_group} is not in 1..{self.n_group} (n_group)"
            )
        reachable = self.topk_group * (experts // self.n_group)
        if self.top_k > reachable:
            raise InputError(
                f"weights: top_k = {self.top_k} is more than the {reachable} experts "
                f"of the {self.topk_group} groups kept"
            )
        factor = self.routed_scaling_factor
        if isinstance(factor, bool) or not isinstance(factor, int | float):
            raise InputError(f"weights: routed_scaling_factor = {factor!r} must be a float")
        if not SMALLEST_F32 <= factor <= LARGEST_F32:
            raise InputError(
                f"weights: routed_scaling_factor = {factor!r:.40s} must be finite and > 0 as f32"
            )

    @property
    def num_experts(self) -> int:
        """E, the routed experts (the shared one not counted)."""
        return int(self.router.shape[0])

    @property
    def num_stored(self) -> int:
        """E + S, the experts held in the arrays."""
        return int(self.gate.shape[0])

    @property
    def d_model(self) -> int:
        """D, the length of a token vector."""
        return int(self.router.shape[1])

    @property
    def d_ff(self) -> int:
        """H, the inner length of an expert."""
        return int(self.gate.shape[1])

    @property
    def nbytes(self) -> int:
        """Size of all arrays together, in bytes."""
        matrices = self.router.nbytes + self.gate.nbytes + self.up.nbytes + self.down.nbytes
        scales = self.gate_scale.nbytes + self.up_scale.nbytes + self.down_scale.nbytes
        return matrices + scales + self.bias.nbytes

    @property
    def gate_scale_per_channel(self) -> F32:
        """(E + S, H) f32, C-order: the scale of every output channel of ``gate``."""
        return _per_channel(self.gate_scale, self.d_ff)

    @property
    def up_scale_per_channel(self) -> F32:
        """(E + S, H) f32, C-order: the scale of every output channel of ``up``."""
        return _per_channel(self.up_scale, self.d_ff)

    @property
    def down_scale_per_channel(self) -> F32:
        """(E + S, D) f32, C-order: the scale of every output channel of ``down``."""
        return _per_channel(self.down_scale, self.d_model)


def check_weights(w: object) -> Weights:
    """Give ``w`` back when it is Weights.

    Raises:
        InputError: it is something else.
    """
    if not isinstance(w, Weights):
        raise InputError(f"w: kernels.Weights is needed, got {type(w).__name__}")
    return w


def check_tokens(x: object, d_model: int) -> F32:
    """Give ``x`` back in C order when it is (tokens, d_model) f32 and finite.

    Raises:
        InputError: it is no such array; nothing is cast.
    """
    text = f"(tokens, {d_model})"
    return _checked("x", x, np.float32, ((None, d_model),), shape_text=text, least=0)


def _checked(
    name: str,
    value: object,
    dtype: type[Scalar],
    shapes: tuple[tuple[int | None, ...], ...],
    *,
    shape_text: str = "",
    least: int = 1,
) -> npt.NDArray[Scalar]:
    """The array, aligned and in C order, after checks of type, dtype, shape and finiteness."""
    if not isinstance(value, np.ndarray):
        raise InputError(f"{name}: a NumPy array is needed, got {type(value).__name__}")
    if value.dtype != dtype:
        wanted = np.dtype(dtype).name
        raise InputError(
            f"{name}: dtype is {value.dtype}, {wanted} is needed; convert it with .astype"
        )
    if not any(_matches(value.shape, shape, least) for shape in shapes):
        wanted = shape_text or " or ".join(str(shape) for shape in shapes)
        raise InputError(f"{name}: shape is {value.shape}, {wanted} is needed")
    array: npt.NDArray[Scalar] = np.require(value, requirements=["C", "ALIGNED", "ENSUREARRAY"])
    if np.issubdtype(dtype, np.floating) and not bool(np.isfinite(array).all()):
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise InputError(f"{name}: not finite at {where} ({array[where]}); all must be finite")
    return array


def _matches(shape: tuple[int, ...], wanted: tuple[int | None, ...], least: int) -> bool:
    return len(shape) == len(wanted) and all(
        size >= least if want is None else size == want
        for size, want in zip(shape, wanted, strict=True)
    )


def _check_reduction(label: str, length: int) -> None:
    if length > MAX_REDUCTION:
        raise InputError(
            f"weights: {label} = {length} is larger than {MAX_REDUCTION}; "
            "an int32 accumulator could overflow"
        )


def _per_channel(scale: F32, width: int) -> F32:
    if scale.ndim == 2:
        return scale
    return np.repeat(scale[:, None], width, axis=1)
