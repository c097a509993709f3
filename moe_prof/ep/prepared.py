"""A rank's experts, checked and packed once: from the operator's weight arguments to an engine.

Weights come as one tensor over the local experts or as a list of tensors, one per expert; scales
in fp32 or in x's dtype. Packing copies them, so that a call after the first one reads packed
weights only: change weights in place, and ``PreparedCache.clear`` must follow.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from moe_prof.ep.native import Array, Engine, ExpertArrays, library
from moe_prof.ep.operands import Weights, check_int8, check_scale, check_width
from moe_prof.ep.workspace import WorkspaceMemory, WorkspaceSizes, workspace
from moe_prof.errors import InputError
from moe_prof.progress import SILENT, Progress

MAX_LAYERS = 256  # whose packed weights a group keeps; the longest unused one leaves first


@dataclass(frozen=True, slots=True)
class WeightArguments:
    """The operator's weight arguments, by their names."""

    gmm1_weight: Weights
    gmm1_weight_scale: Weights
    gmm2_weight: Weights
    gmm2_weight_scale: Weights
    share_gmm1_weight: Array | None = None
    share_gmm1_weight_scale: Array | None = None
    share_gmm2_weight: Array | None = None
    share_gmm2_weight_scale: Array | None = None

    @property
    def has_shared(self) -> bool:
        """Whether there is a shared expert."""
        return self.share_gmm1_weight is not None

    @property
    def is_list(self) -> bool:
        """Whether experts come as a list; a list of one tensor over all experts is none."""
        weight = self.gmm1_weight
        return not isinstance(weight, np.ndarray) and not (
            len(weight) == 1 and getattr(weight[0], "ndim", 0) == 3
        )

    def arrays(self) -> tuple[Array, ...]:
        """All arrays, in a fixed order."""
        found: list[Array] = []
        for value in (
            self.gmm1_weight, self.gmm1_weight_scale, self.gmm2_weight, self.gmm2_weight_scale,
            self.share_gmm1_weight, self.share_gmm1_weight_scale, self.share_gmm2_weight,
            self.share_gmm2_weight_scale,
        ):  # fmt: skip
            if isinstance(value, np.ndarray):
                found.append(value)
            elif value is not None:
                found.extend(value)
        return tuple(found)


@dataclass(slots=True)
class Prepared:
    """Packed experts of a rank and the workspace of their last call."""

    engine: Engine
    tensor_list: bool
    _workspace: WorkspaceMemory | None = None

    def workspace(self, sizes: WorkspaceSizes) -> WorkspaceMemory:
        """Memory for these sizes, that of the last call where they are the same."""
        if self._workspace is None or self._workspace.layout.sizes != sizes:
            self._workspace = WorkspaceMemory(workspace(sizes))
        return self._workspace


def prepare_experts(
    weights: WeightArguments, local_experts: int, h: int, dtype: np.dtype[Any], *,
    threads: int = 1, pin: bool = False, isa: str | None = None, strict: bool = False,
    progress: Progress = SILENT,
) -> Prepared:  # fmt: skip
    """Check the weights and pack them.

    Args:
        weights: the operator's arguments.
        local_experts: L.
        h: hidden size.
        dtype: of x: scales may have it.
        threads: of the engine's team.
        pin: bind thread i to the i-th allowed CPU.
        isa: force an instruction-set path.
        strict: widths must be multiples of 1024 in the operator's range.
        progress: told when something is compiled.

    Raises:
        InputError, UsageError: a weight or scale does not fit; the message names it.
        BuildError: the kernels cannot be compiled.
    """
    routed = _routed(weights, local_experts, h, dtype, strict=strict)
    shared = _shared(weights, h, dtype, strict=strict)
    engine = Engine(routed, shared, threads=threads, pin=pin, core=library(isa, progress))
    return Prepared(engine, weights.is_list)


@dataclass(frozen=True, slots=True)
class _Seen:
    """Packed experts of arrays that were seen before, while these very arrays live."""

    prepared: Prepared
    arrays: tuple[weakref.ref[Array], ...]

    def holds(self, arrays: tuple[Array, ...]) -> bool:
        """Whether they are these arrays: an address alone may be another array's by now."""
        return all(ref() is array for ref, array in zip(self.arrays, arrays, strict=True))


@dataclass(slots=True, weakref_slot=True, eq=False)
class PreparedCache:
    """Packed experts by the arrays they came from: kept while those arrays live."""

    _entries: OrderedDict[tuple[Any, ...], Prepared] = field(default_factory=OrderedDict)
    _recent: OrderedDict[tuple[Any, ...], _Seen] = field(default_factory=OrderedDict)

    def get(
        self, weights: WeightArguments, local_experts: int, h: int, dtype: np.dtype[Any], *,
        threads: int, isa: str | None, strict: bool,
    ) -> Prepared:  # fmt: skip
        """The packed experts, packed now if these arrays come for the first time.

        Raises:
            InputError, UsageError, BuildError: see ``prepare_experts``.
        """
        arrays = weights.arrays()
        setup = (weights.has_shared, local_experts, h, dtype, threads, isa, strict)
        quick = (*map(id, arrays), *setup)
        seen = self._recent.get(quick)
        if seen is not None and seen.holds(arrays):
            return seen.prepared
        found = self._find(weights, arrays, setup)
        self._recent[quick] = _Seen(found, tuple(map(weakref.ref, arrays)))
        while len(self._recent) > MAX_LAYERS:
            self._recent.popitem(last=False)
        return found

    def clear(self) -> None:
        """Forget all: the next call packs again."""
        self._entries.clear()
        self._recent.clear()

    def drop(self, key: tuple[Any, ...]) -> None:
        """Forget one layer."""
        gone = self._entries.pop(key, None)
        for quick in [quick for quick, seen in self._recent.items() if seen.prepared is gone]:
            del self._recent[quick]

    def _find(
        self, weights: WeightArguments, arrays: tuple[Array, ...], setup: tuple[Any, ...]
    ) -> Prepared:
        """By what the arrays are views of: other views of the same memory are the same weights."""
        key = (
            *map(_identity, arrays), *setup,
        )  # fmt: skip
        found = self._entries.get(key)
        if found is None:
            _, local_experts, h, dtype, threads, isa, strict = setup
            found = prepare_experts(
                weights, local_experts, h, dtype, threads=threads, isa=isa, strict=strict
            )
            self._entries[key] = found
            while len(self._entries) > MAX_LAYERS:
                self.drop(next(iter(self._entries)))
            for owner in {id(_owner(array)): _owner(array) for array in arrays}.values():
                weakref.finalize(owner, _forget, weakref.ref(self), key).atexit = False
        else:
            self._entries.move_to_end(key)
        return found


def _forget(cache: weakref.ref[PreparedCache], key: tuple[Any, ...]) -> None:
    """An array behind these packed experts is gone, and nobody can ask for them again."""
    alive = cache()
    if alive is not None:
        alive.drop(key)


def _identity(array: Array) -> tuple[Any, ...]:
    if not isinstance(array, np.ndarray):
        raise InputError(f"a weight is a {type(array).__name__}; it must be a numpy array")
    return (
        array.__array_interface__["data"][0], array.shape, array.strides, array.dtype.str,
        array.dtype.name,
    )  # fmt: skip


def _owner(array: Array) -> Array:
    """The array at the end of a chain of views."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _routed(
    w: WeightArguments, local: int, h: int, dtype: np.dtype[Any], *, strict: bool
) -> tuple[ExpertArrays, ...]:
    tensors = {
        name: _per_expert(name, getattr(w, name), local, as_list=w.is_list)
        for name in ("gmm1_weight", "gmm1_weight_scale", "gmm2_weight", "gmm2_weight_scale")
    }
    first = tensors["gmm1_weight"][0]
    check_int8("gmm1_weight", first, (h, None))
    n = first.shape[1]
    check_width("gmm1HLen (columns of gmm1_weight)", n, strict=strict)
    experts = []
    for e in range(local):
        at = f"[{e}]"
        check_int8(f"gmm1_weight{at}", tensors["gmm1_weight"][e], (h, n))
        check_scale(f"gmm1_weight_scale{at}", tensors["gmm1_weight_scale"][e], (n,), dtype)
        check_int8(f"gmm2_weight{at}", tensors["gmm2_weight"][e], (n // 2, h))
        check_scale(f"gmm2_weight_scale{at}", tensors["gmm2_weight_scale"][e], (h,), dtype)
        experts.append(_arrays(*(values[e] for values in tensors.values())))
    return tuple(experts)


def _per_expert(name: str, value: Weights, local: int, *, as_list: bool) -> Sequence[Array]:
    """One array per expert, of a tensor or of a list."""
    if isinstance(value, np.ndarray):
        if as_list:
            raise InputError(
                f"{name} is one tensor, gmm1_weight a list; all four weight inputs must agree"
            )
        tensor = value
    elif as_list:
        if len(value) != local:
            raise InputError(f"{name} is a list of {len(value)} tensors; it must have {local}")
        return value
    elif len(value) == 1 and isinstance(value[0], np.ndarray):
        tensor = value[0]
    else:
        raise InputError(
            f"{name} is a list, gmm1_weight one tensor; all four weight inputs must agree"
        )
    if tensor.ndim < 2 or len(tensor) != local:
        raise InputError(
            f"{name} has shape {tensor.shape}; its first size must be the {local} local experts"
        )
    return list(tensor)


def _shared(
    w: WeightArguments, h: int, dtype: np.dtype[Any], *, strict: bool
) -> ExpertArrays | None:
    names = (
        "share_gmm1_weight", "share_gmm1_weight_scale", "share_gmm2_weight",
        "share_gmm2_weight_scale",
    )  # fmt: skip
    given = [name for name in names if getattr(w, name) is not None]
    if not given:
        return None
    if len(given) != len(names):
        missing = next(name for name in names if name not in given)
        raise InputError(f"{missing} is missing; the shared expert needs {', '.join(names)}")
    gmm1, scale1, gmm2, scale2 = (getattr(w, name) for name in names)
    check_int8("share_gmm1_weight", gmm1, (h, None))
    n = gmm1.shape[1]
    check_width("shareGmm1HLen (columns of share_gmm1_weight)", n, strict=strict)
    check_scale("share_gmm1_weight_scale", scale1, (n,), dtype)
    check_int8("share_gmm2_weight", gmm2, (n // 2, h))
    check_scale("share_gmm2_weight_scale", scale2, (h,), dtype)
    return _arrays(gmm1, scale1, gmm2, scale2)


def _arrays(gmm1: Array, scale1: Array, gmm2: Array, scale2: Array) -> ExpertArrays:
    """Dense arrays for packing; a scale in x's dtype becomes fp32, which is exact."""
    return ExpertArrays(
        np.ascontiguousarray(gmm1), np.ascontiguousarray(scale1, np.float32),
        np.ascontiguousarray(gmm2), np.ascontiguousarray(scale2, np.float32),
    )  # fmt: skip
