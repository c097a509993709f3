"""The library of ``moe_ep.h``: loading it for a path, and turning its statuses into errors."""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Sequence
from ctypes import c_void_p as Handle
from pathlib import Path
from typing import Any, Protocol

import ml_dtypes
import numpy as np
import numpy.typing as npt

from moe_prof.ep import abi
from moe_prof.ep.abi import STAGES
from moe_prof.ep.record import Record
from moe_prof.errors import (
    InputError,
    MoeProfError,
    PeerError,
    UnavailableError,
    UsageError,
    WorkloadError,
)
from moe_prof.kernels.build import build
from moe_prof.kernels.features import isa_path
from moe_prof.kernels.table import BY_NAME
from moe_prof.progress import SILENT, Progress

Array = npt.NDArray[Any]

BF16 = np.dtype(ml_dtypes.bfloat16)
FP16 = np.dtype(np.float16)
_DTYPES = {BF16: 0, FP16: 1}
_ISAS = (*BY_NAME["packed"].isas, *BY_NAME["portable"].isas)


@functools.cache
def load(path: Path) -> ctypes.CDLL:
    """The library of a path, with typed functions.

    Raises:
        InputError: it cannot be loaded or speaks another version.
    """
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise InputError(f"the library {path} cannot be loaded: {error}") from error
    for name, (result, arguments) in abi.SIGNATURES.items():
        function = getattr(library, name, None)
        if function is None:
            raise InputError(f"{path}: it does not export {name}; see kernels/include/moe_ep.h")
        function.restype = result
        function.argtypes = arguments
    version = library.moe_ep_abi_version()
    if version != abi.ABI_VERSION:
        raise InputError(f"{path}: its core has version {version}, not {abi.ABI_VERSION}")
    return library


def usable_isas(progress: Progress = SILENT) -> tuple[str, ...]:
    """Paths of the core that run here, best first."""
    built = build("release", progress)
    return tuple(isa for isa in _ISAS if isa in built.isas)


def library(isa: str | None = None, progress: Progress = SILENT) -> ctypes.CDLL:
    """The core of a path; ``isa`` or MOE_PROF_ISA forces it, else the best that runs here.

    Raises:
        UsageError: the path is not usable here.
        BuildError: the kernels cannot be compiled.
    """
    wish = isa if isa is not None else os.environ.get("MOE_PROF_ISA") or None
    if wish is not None and isa_path(wish).name not in _ISAS:
        raise UsageError(f"the operator has no ISA path {wish!r}; it has: {', '.join(_ISAS)}")
    built = build("release", progress)
    if wish is None:
        wish = next((path for path in _ISAS if path in built.isas), "portable")
    return load(built.library(wish))


class Waiting(Protocol):
    """Who waits for other ranks, and how long."""

    @property
    def rank(self) -> int:
        """This rank."""

    @property
    def timeout_s(self) -> float:
        """Of each wait."""


def check(
    status: int, what: str, record: Record | None = None, view: Waiting | None = None
) -> None:
    """Turn a status into the error that fits.

    Raises:
        PeerError: a rank did not come, stopped, or called with another setup.
        UsageError: the engine is busy, or memory does not suffice.
        InputError: sizes that do not fit together.
        UnavailableError: not for these sizes.
    """
    if status == abi.OK:
        return
    if record is not None and view is not None and status in _PEER_TEXTS:
        peer, index = record.raw.peer, record.raw.stage
        stage = STAGES[index] if 0 <= index < len(STAGES) else what
        text = _PEER_TEXTS[status].format(peer=peer, stage=stage, timeout_s=view.timeout_s)
        raise PeerError(f"rank {view.rank}: {text}", peer, stage)
    kind, text = _TEXTS.get(status, (WorkloadError, f"unknown status {status}"))
    raise kind(f"{what}: {text}")


_PEER_TEXTS = {
    abi.TIMEOUT: "rank {peer} did not come within {timeout_s:g} s ({stage}); "
    "see whether it still runs, or raise the group's timeout",
    abi.ABORTED: "rank {peer} has stopped the call ({stage}); its own message says why",
    abi.MISMATCH: "rank {peer} called with another setup; sizes, dtype, experts and global_bs "
    "must be the same on all ranks",
}
_TEXTS: dict[int, tuple[type[MoeProfError], str]] = {
    abi.BAD_ARGUMENT: (InputError, "sizes or pointers do not fit together"),
    abi.NO_MEMORY: (UsageError, "not enough memory for the packed weights; use fewer experts"),
    abi.UNSUPPORTED: (UnavailableError, "not for these sizes"),
    abi.BUSY: (UsageError, "these experts already run a call; wait for it, or prepare others"),
}


def dtype_code(dtype: np.dtype[Any]) -> int:
    """The core's number of bf16 or fp16.

    Raises:
        InputError: another dtype.
    """
    code = _DTYPES.get(np.dtype(dtype))
    if code is None:
        raise InputError(f"dtype {dtype} is neither bfloat16 nor float16")
    return code


def at(array: Array | None) -> int | None:
    """Where an array's values lie; None for None."""
    return None if array is None else array.ctypes.data


def pointers(addresses: Sequence[int]) -> ctypes.Array[Handle]:
    """Addresses as a C array of pointers."""
    return (Handle * len(addresses))(*addresses)
