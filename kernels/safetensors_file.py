"""Tensors of a .safetensors file, memory-mapped.

Such a file is: 8 bytes with the header's length, a JSON header with dtype, shape and byte range of
every tensor, the bytes. The format's own package is not used: it
would answer in NumPy, which has no bfloat16.

Source: the description of the format at https://github.com/huggingface/safetensors.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from moe_prof.errors import InputError
from moe_prof.kernels.weights import F32, I8

LARGEST_HEADER = 100_000_000
"""As the format's own readers limit it."""
INDEX = "model.safetensors.index.json"
_ITEM_BYTES = {"I8": 1, "F32": 4, "BF16": 2, "F16": 2}
_FLOATS = ("F32", "BF16", "F16")


@dataclass(frozen=True, slots=True)
class Tensor:
    """Where a tensor lies: dtype as the file calls it, first byte in the file."""

    file: Path
    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int

    def int8(self) -> I8:
        """The values of an I8 tensor, mapped and read-only.

        Raises:
            InputError: it has another dtype.
        """
        if self.dtype != "I8":
            raise InputError(
                f"{self.file}: tensor {self.name} has dtype {self.dtype}, I8 is needed: weights "
                "quantized to int8 (compressed-tensors, W8A8)"
            )
        return self._mapped(np.dtype(np.int8))

    def float32(self) -> F32:
        """The values of a floating-point tensor in f32, exactly.

        Raises:
            InputError: it has another dtype.
        """
        if self.dtype not in _FLOATS:
            raise InputError(
                f"{self.file}: tensor {self.name} has dtype {self.dtype}, one of "
                f"{', '.join(_FLOATS)} is needed"
            )
        if self.dtype == "BF16":
            bits = self._mapped(np.dtype("<u2")).astype(np.uint32) << np.uint32(16)
            return bits.view(np.float32)
        return self._mapped(np.dtype("<f4" if self.dtype == "F32" else "<f2")).astype(np.float32)

    def _mapped(self, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        try:
            flat = np.memmap(
                self.file, np.uint8, mode="r", offset=self.begin,
                shape=(math.prod(self.shape) * dtype.itemsize,),
            )  # fmt: skip
        except (OSError, ValueError) as error:
            raise InputError(f"{self.file}: tensor {self.name} cannot be read: {error}") from error
        return np.asarray(flat).view(dtype).reshape(self.shape)


def tensors_at(path: Path) -> dict[str, Tensor]:
    """All tensors of a file, of the files of a folder's index, or of all .safetensors files in it.

    Raises:
        InputError: there is none, or one is damaged.
    """
    return {name: tensor for file in files_at(path) for name, tensor in _tensors_of(file).items()}


def files_at(path: Path) -> list[Path]:
    """The file, the files of a folder's index, or all .safetensors files in the folder.

    Raises:
        InputError: the folder has none, or its index is damaged.
    """
    if not path.is_dir():
        return [path]
    index = path / INDEX
    if index.is_file():
        names = sorted(set(_weight_map(index).values()))
        files = [path / name for name in names]
    else:
        files = sorted(path.glob("*.safetensors"))
    if not files:
        raise InputError(f"{path}: neither {INDEX} nor a .safetensors file is in this folder")
    return files


def _weight_map(index: Path) -> dict[str, str]:
    try:
        found = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        return {str(name): Path(file).name for name, file in found.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{index}: no weight_map can be read from it ({error})") from error


def _tensors_of(file: Path) -> dict[str, Tensor]:
    try:
        size = file.stat().st_size
        with file.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            if size < 8 or not 2 <= length <= min(LARGEST_HEADER, size - 8):
                raise InputError(f"{file}: this is no .safetensors file (its header has no end)")
            header = json.loads(stream.read(length))
    except OSError as error:
        raise InputError(f"{file}: it cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{file}: this is no .safetensors file (its header: {error})") from error
    if not isinstance(header, dict):
        raise InputError(f"{file}: this is no .safetensors file (its header is no table)")
    return {
        name: _tensor(file, name, entry, 8 + length, size)
        for name, entry in header.items()
        if name != "__metadata__"
    }


def _tensor(file: Path, name: str, entry: Any, start: int, size: int) -> Tensor:  # noqa: ANN401
    try:
        dtype, shape = str(entry["dtype"]), tuple(int(extent) for extent in entry["shape"])
        begin, end = (int(offset) for offset in entry["data_offsets"])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{file}: the header's entry of tensor {name} is damaged") from error
    if not 0 <= begin <= end <= size - start or min(shape, default=0) < 0:
        raise InputError(f"{file}: tensor {name} lies outside of the file; is the file cut off?")
    item_bytes = _ITEM_BYTES.get(dtype)
    if item_bytes is not None and math.prod(shape) * item_bytes != end - begin:
        raise InputError(
            f"{file}: tensor {name} has {end - begin} bytes, which do not fit its shape {shape}"
        )
    return Tensor(file, name, dtype, shape, start + begin)
