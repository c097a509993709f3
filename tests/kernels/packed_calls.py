"""Calling one path's packed microkernels through ctypes: their rows, panels and products."""

import ctypes

import numpy as np

FLOATS = ("f32_absmax", "f32_qs8_quantize", "f32_qu8_quantize", "s32_swiglu_16", "s32_swiglu_32",
          "f32_sum_squares", "f32_qs16_quantize")  # fmt: skip


class Kernels:
    """One path's kernels in a library of their own, with their contracts checked."""

    def __init__(self, path, file, cpu=None):
        self.path, self.file = path, file
        self._library = ctypes.CDLL(str(file))
        self._cpu = cpu

    def __getitem__(self, name):
        """A kernel by its name without prefix and path, the path's own if it has one."""
        for isa in self.path.folders:
            try:
                function = self._library[f"moe_{name}__{isa}"]
            except AttributeError:
                continue
            function.restype = ctypes.c_float if name in FLOATS else ctypes.c_int
            if name == "f32_find_above":
                function.restype = ctypes.c_size_t
            if self._cpu is not None:
                return self._cpu.function(function)
            return function
        raise AssertionError(f"{self.path.isa} has no kernel {name}")

    def of(self, role):
        """The kernel of a role that has another name on every path."""
        return self[self.path.names[role]]

    def multiply(self, k, rows, panel, acc):
        """acc: (m, >= panels * nr) int32 = the products of m rows of bytes with panels."""
        m = len(rows)
        tiles = 0 < self.path.least_tile_rows <= m
        if tiles:
            self["configure_tiles"](size(m))
        self.multiply_panels(self.path.gemm(m), k, rows, panel, acc)
        if tiles:
            self["release_tiles"]()

    def multiply_panels(self, name, k, rows, panels, acc):
        """By the kernel `name`, with all the panels in those bytes."""
        panel_bytes = self.path.panel_bytes(k)
        self[name](
            size(k), size(panels.size // panel_bytes), size(panel_bytes), pointers([*rows]),
            pointer(panels), pointer(acc), size(acc.shape[-1]),
        )  # fmt: skip


def size(n):
    """A C size_t."""
    return ctypes.c_size_t(n)


def pointer(array):
    """The address of an array's first element."""
    return ctypes.c_void_p(array.ctypes.data)


def pointers(arrays):
    """A C array of the addresses of arrays, None for null."""
    addresses = [None if array is None else array.ctypes.data for array in arrays]
    return (ctypes.c_void_p * len(addresses))(*addresses)


def aligned(byte_count):
    """Bytes that start on a cache line, filled with a pattern that no kernel may rely on."""
    raw = np.full(byte_count + 64, 0xA5, dtype=np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + byte_count]


def packed_panel(lib, weights):
    """weights: (<= nr, K) int8; the panel's bytes."""
    k = weights.shape[1]
    panel = aligned(lib.path.panel_bytes(k))
    channels = pointers([*weights, *[None] * (lib.path.nr - len(weights))])
    lib.of("pack")(size(k), channels, pointer(panel))
    return panel


def quantized_row(lib, values):
    """values: (K,) f32; the row's bytes and the scale."""
    row = aligned(row_bytes(lib, values.size))
    largest = ctypes.c_float(np.abs(values).max())
    scale = lib.of("quantize")(size(values.size), pointer(values), largest, pointer(row))
    return row, scale


def row_bytes(lib, n):
    """Bytes of a row of n values."""
    padded = -(-n // lib.path.step) * lib.path.step
    return lib.path.head + (2 if lib.path.signs_apart else 1) * padded


def values_of(lib, row):
    """The quantized values in a row's bytes, the padding included."""
    values = row[lib.path.head :].astype(np.int16)
    if lib.path.signs_apart:
        sizes, signs = values.reshape(-1, 2, 4).transpose(1, 0, 2).reshape(2, -1)
        assert set(signs) <= {0, 255}
        assert row[:4].view(np.int32) == sizes[signs != 0].sum()
        values = np.where(signs != 0, -sizes, sizes)
    return values - lib.path.offset


def row_of(lib, q):
    """q: (K,) int8 in -127..127, one of them of size 127, as a row."""
    row, scale = quantized_row(lib, q.astype(np.float32))
    assert scale == 1.0
    return row


def side_by_side(rows):
    """Rows of bytes an odd number of lines apart, as kernels with tiles want them."""
    lines = -(-rows[0].size // 64) | 1
    together = aligned(64 * lines * len(rows)).reshape(len(rows), -1)
    together[:, : rows[0].size] = rows
    return together


def product(lib, weights, quantized):
    """int32 products of rows (m, K) with weights (<= nr, K), by the tile of m rows."""
    m, k = quantized.shape
    nr = lib.path.nr
    panel = packed_panel(lib, weights)
    rows = side_by_side([row_of(lib, q) for q in quantized])
    acc = np.full((m, nr + 3), 77, dtype=np.int32)
    lib.multiply(k, rows, panel, acc)
    assert (acc[:, nr:] == 77).all()
    return acc[:, : len(weights)]


def random_rows(rng, m, k):
    """(m, K) int8 in -127..127 with 127 in each row."""
    q = rng.integers(-127, 128, (m, k)).astype(np.int8)
    q[:, k // 2] = 127
    return q
