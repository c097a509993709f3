"""Checking the operator's operands: names, shapes, dtypes, ranges, ids, mask, finite values.

Every message names the argument, its value and what is allowed. Source of the ranges: the
operator's interface; h and B are always checked, the widths' range and alignment in strict mode
only, since the compute core takes any even width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntFlag
from typing import Any

import numpy as np
import numpy.typing as npt

from moe_prof.ep.native import BF16, FP16
from moe_prof.errors import InputError, UsageError

Array = npt.NDArray[Any]
Weights = Array | Sequence[Array]

MAX_BS = 256
MIN_H, MAX_H = 512, 7168
MIN_N, MAX_N, N_STEP = 1024, 6144, 1024
MAX_WIDTH = 2 * 132_104  # beyond it an int32 sum of the second product could overflow
MAX_EXPERTS = 512
MAX_K = 12


class ExecFlag(IntFlag):
    """How a call is executed; bits as in the operator."""

    DEEP_FUSE = 1
    TENSOR_LIST = 2
    X_ACTIVE_MASK = 4
    SHARED_EXPERT = 8
    SMOOTH_QUANT = 16


@dataclass(frozen=True, slots=True)
class Attributes:
    """The operator's attributes beside the group."""

    ep_rank_size: int
    ep_rank_id: int
    moe_expert_num: int
    quant_mode: int = 0
    global_bs: int = 0

    @property
    def local_experts(self) -> int:
        """L = E / P."""
        return self.moe_expert_num // self.ep_rank_size


def check_attributes(a: Attributes, k: int) -> None:
    """Check attributes among themselves and with top-k.

    Raises:
        UsageError: one is out of range.
    """
    for name in ("ep_rank_size", "ep_rank_id", "moe_expert_num", "quant_mode", "global_bs"):
        value = getattr(a, name)
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise UsageError(f"{name} = {value!r} is not an integer")
    in_range("ep_rank_size", a.ep_rank_size, 1, MAX_EXPERTS)
    in_range("ep_rank_id", a.ep_rank_id, 0, a.ep_rank_size - 1)
    in_range("moe_expert_num", a.moe_expert_num, 1, MAX_EXPERTS)
    if a.moe_expert_num % a.ep_rank_size:
        raise UsageError(
            f"moe_expert_num = {a.moe_expert_num} is not a multiple of "
            f"ep_rank_size = {a.ep_rank_size}"
        )
    if a.quant_mode != 0:
        raise UsageError(f"quant_mode = {a.quant_mode} is unknown; only 0 (int8 per token) is")
    in_range("global_bs", a.global_bs, 0, MAX_BS * a.ep_rank_size)
    if a.global_bs % a.ep_rank_size:
        raise UsageError(
            f"global_bs = {a.global_bs} is not a multiple of ep_rank_size = {a.ep_rank_size}"
        )
    in_range("top-k (expert_ids.shape[1])", k, 0, min(MAX_K, a.moe_expert_num))


def check_tokens(
    x: Array, expert_ids: Array, expert_scales: Array, mask: Array | None, a: Attributes
) -> int:
    """Check a call's own operands but for their values; returns how many rows are active.

    Raises:
        InputError: a shape, dtype or the mask is wrong.
        UsageError: a size or attribute is out of range.
    """
    if not isinstance(x, np.ndarray) or x.dtype not in (BF16, FP16):
        raise InputError(f"x has dtype {getattr(x, 'dtype', type(x).__name__)}; "
                         "it must be an array of bfloat16 (ml_dtypes) or float16")  # fmt: skip
    if x.ndim != 2:
        raise InputError(f"x has shape {x.shape}; it must be (bs, h)")
    bs, h = x.shape
    in_range("bs (x.shape[0])", bs, 0, MAX_BS)
    in_range("h (x.shape[1])", h, MIN_H, MAX_H)
    _array("expert_ids", expert_ids, np.int32, None)
    if expert_ids.ndim != 2 or len(expert_ids) != bs:
        raise InputError(f"expert_ids has shape {expert_ids.shape}; it must be ({bs}, k)")
    check_attributes(a, expert_ids.shape[1])
    if a.global_bs and bs > a.global_bs // a.ep_rank_size:
        raise UsageError(
            f"bs = {bs} is above global_bs / ep_rank_size = {a.global_bs // a.ep_rank_size}"
        )
    _array("expert_scales", expert_scales, np.float32, expert_ids.shape)
    return _check_mask(mask, bs)


def check_values(x: Array, expert_ids: Array, expert_scales: Array, experts: int) -> None:
    """Check the values of a call's operands; the core's ``moe_ep_valid`` says whether it is needed.

    Args:
        x, expert_scales: of all rows.
        expert_ids: of the active rows: what stands behind the mask is padding.
        experts: E.

    Raises:
        InputError: a value is not finite, or an id is out of range or repeated; says where.
    """
    _finite("x", x)
    _finite("expert_scales", expert_scales)
    _check_ids(expert_ids, experts)


def check_smooth(
    smooth: Array | None, share_smooth: Array | None, experts: int, h: int, *, shared: bool
) -> None:
    """Check the smoothing scales.

    Raises:
        InputError: a shape, dtype or value is wrong, or one is missing.
    """
    if smooth is not None:
        _array("expert_smooth_scales", smooth, np.float32, (experts, h))
        _finite("expert_smooth_scales", smooth)
        if shared and share_smooth is None:
            raise InputError("share_smooth_scales is missing; with expert_smooth_scales and a "
                             "shared expert it is required")  # fmt: skip
    if share_smooth is not None:
        _array("share_smooth_scales", share_smooth, np.float32, (h,))
        _finite("share_smooth_scales", share_smooth)


def check_width(name: str, n: int, *, strict: bool) -> None:
    """Check the width of a first product.

    Raises:
        UsageError: it is out of range, odd, or in strict mode not a multiple of 1024.
    """
    if strict:
        in_range(name, n, MIN_N, MAX_N)
        if n % N_STEP:
            raise UsageError(f"{name} = {n} is not a multiple of {N_STEP} (strict mode)")
    in_range(name, n, 2, MAX_WIDTH)
    if n % 2:
        raise UsageError(f"{name} = {n} is odd; gate and up are its two halves")


def check_scale(name: str, scale: Array, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Check a weight scale: fp32 or x's dtype, finite.

    Raises:
        InputError: it is not.
    """
    if not isinstance(scale, np.ndarray) or scale.dtype not in (np.dtype(np.float32), dtype):
        raise InputError(
            f"{name} has dtype {getattr(scale, 'dtype', type(scale).__name__)}; "
            f"it must be float32 or x's dtype, {dtype}"
        )
    if scale.shape != shape:
        raise InputError(f"{name} has shape {scale.shape}; it must be {shape}")
    _finite(name, scale)


def check_int8(name: str, weight: Array, shape: tuple[int | None, ...]) -> None:
    """Check a weight: int8 of that shape, None for any size.

    Raises:
        InputError: it is not.
    """
    if not isinstance(weight, np.ndarray) or weight.dtype != np.int8:
        raise InputError(
            f"{name} has dtype {getattr(weight, 'dtype', type(weight).__name__)}; it must be int8"
        )
    fits = weight.ndim == len(shape) and all(
        want in (None, have) for want, have in zip(shape, weight.shape, strict=True)
    )
    if not fits:
        wanted = ", ".join("n" if want is None else str(want) for want in shape)
        raise InputError(f"{name} has shape {weight.shape}; it must be ({wanted})")


def _check_mask(mask: Array | None, bs: int) -> int:
    if mask is None:
        return bs
    _array("x_active_mask", mask, np.bool_, (bs,))
    active = int(np.count_nonzero(mask))
    if not mask[:active].all():
        row = int(np.argmin(mask))
        raise InputError(
            f"x_active_mask is no prefix: row {row} is false, yet row "
            f"{row + int(np.argmax(mask[row:]))} is true; true rows must come first"
        )
    return active


def _check_ids(ids: Array, experts: int) -> None:
    """Ids in -1..E-1, none twice in a row, on all rows."""
    if ids.size == 0:
        return
    wrong = (ids < -1) | (ids >= experts)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise InputError(
            f"expert_ids[{row}, {column}] = {ids[row, column]} is not in -1..{experts - 1}"
        )
    ordered = np.sort(ids, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    if twice.any():
        row = int(np.argwhere(twice)[0][0])
        expert = ordered[row, 1:][twice[row]][0]
        column = int(np.flatnonzero(ids[row] == expert)[1])
        raise InputError(
            f"expert_ids[{row}, {column}] = {expert} repeats expert {expert} in its row"
        )


def _array(name: str, array: Array, dtype: type[np.generic], shape: tuple[int, ...] | None) -> None:
    if not isinstance(array, np.ndarray) or array.dtype != dtype:
        raise InputError(
            f"{name} has dtype {getattr(array, 'dtype', type(array).__name__)}; "
            f"it must be an array of {np.dtype(dtype)}"
        )
    if shape is not None and array.shape != shape:
        raise InputError(f"{name} has shape {array.shape}; it must be {shape}")


def _finite(name: str, array: Array) -> None:
    """Refuse NaN and infinity, naming the first place."""
    if array.dtype.itemsize == 2:  # an exponent of ones; isfinite goes through fp32
        ones = 0x7F80 if array.dtype == BF16 else 0x7C00
        bad = (array.view(np.uint16) & ones) == ones
    else:
        bad = ~np.isfinite(array)
    if bad.any():
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        raise InputError(f"{name}[{', '.join(map(str, place))}] is {array[place]}; "
                         "NaN and infinity are refused")  # fmt: skip


def in_range(name: str, value: int, low: int, high: int) -> None:
    """Refuse a size out of range.

    Raises:
        UsageError: it is.
    """
    if not low <= value <= high:
        raise UsageError(f"{name} = {value} is not in {low}..{high}")
